//! Finds a process and connects to it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::ids::{ProcessId, SessionId};

use super::Network;
use super::frame::{Frame, FrameError, FrameReader, Welcome, encode, encode_greeting};

const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Shorter, as somebody waits for its own greeting to be answered meanwhile.
const PROBE_MAX: Duration = Duration::from_secs(2);

/// Why a process is out of reach.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    #[error("nobody knows where {0} is")]
    Unknown(ProcessId),
    #[error("cannot connect to {endpoint}: {error}")]
    Connect { endpoint: SocketAddr, error: std::io::Error },
    #[error("{endpoint} does not answer")]
    Silent { endpoint: SocketAddr },
    #[error("{endpoint} refuses: {reason}")]
    Refused { endpoint: SocketAddr, reason: String },
    #[error("{process} is already running at {endpoint} (session {:016x}): stop it first", .session.0)]
    Occupied { process: ProcessId, endpoint: SocketAddr, session: SessionId },
    #[error("{endpoint}: {error}")]
    Protocol { endpoint: SocketAddr, error: FrameError },
}

/// A connection whose other side has shown who it is.
pub struct Connection {
    pub reader: FrameReader<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
    pub session: SessionId,
}

pub async fn connect(network: &Network, to: ProcessId) -> Result<Connection, ReachError> {
    let endpoint = resolve(network, to).await?;
    open(network, to, endpoint).await
}

/// Whether the session still answers at its endpoint.
pub async fn is_alive(network: &Network, to: ProcessId, session: SessionId, endpoint: SocketAddr) -> bool {
    let answer = timeout(PROBE_MAX, open(network, to, endpoint)).await;
    matches!(answer, Ok(Ok(connection)) if connection.session == session)
}

async fn open(network: &Network, to: ProcessId, endpoint: SocketAddr) -> Result<Connection, ReachError> {
    let greet = async {
        let stream =
            TcpStream::connect(endpoint).await.map_err(|error| ReachError::Connect { endpoint, error })?;
        let _ = stream.set_nodelay(true);
        greet(network, to, stream).await.map_err(|error| ReachError::Protocol { endpoint, error })
    };
    let (reader, writer, welcome) =
        timeout(CONNECT_MAX, greet).await.map_err(|_| ReachError::Silent { endpoint })??;
    match welcome {
        Welcome::Accepted { session } => {
            network.seen(to, session);
            Ok(Connection { reader, writer, session })
        }
        Welcome::Refused { reason } => Err(ReachError::Refused { endpoint, reason }),
        Welcome::Occupied { session, endpoint } => {
            Err(ReachError::Occupied { process: network.process, endpoint, session })
        }
    }
}

async fn greet(
    network: &Network,
    to: ProcessId,
    stream: TcpStream,
) -> Result<(FrameReader<OwnedReadHalf>, OwnedWriteHalf, Welcome), FrameError> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = FrameReader::new(reader);
    let mut bytes = BytesMut::new();
    encode_greeting(&network.hello(to), &mut bytes)?;
    writer.write_all(&bytes).await?;
    let welcome = reader.greeting().await?;
    Ok((reader, writer, welcome))
}

/// Where the process is, as the high-availability process knows it now.
async fn resolve(network: &Network, process: ProcessId) -> Result<SocketAddr, ReachError> {
    let Some(high_availability) = network.high_availability else {
        return network.locate(process).ok_or(ReachError::Unknown(process));
    };
    if process == ProcessId::HighAvailability {
        return Ok(high_availability);
    }
    let mut connection = open(network, ProcessId::HighAvailability, high_availability).await?;
    let ask = async {
        let mut bytes = BytesMut::new();
        encode(&Frame::Resolve { process }, &mut bytes)?;
        connection.writer.write_all(&bytes).await?;
        connection.reader.frame().await
    };
    let endpoint = high_availability;
    match timeout(CONNECT_MAX, ask).await.map_err(|_| ReachError::Silent { endpoint })? {
        Ok(Some(Frame::Resolved { endpoint })) => endpoint.ok_or(ReachError::Unknown(process)),
        Ok(_) => Err(ReachError::Protocol { endpoint, error: FrameError::Foreign }),
        Err(error) => Err(ReachError::Protocol { endpoint, error }),
    }
}
