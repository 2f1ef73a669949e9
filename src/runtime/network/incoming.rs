//! Connections that others make. Whoever does not greet as a process of this cluster is refused.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::actor::Event;
use crate::ids::ProcessId;

use super::super::process::Shared;
use super::Network;
use super::dial;
use super::frame::{Frame, FrameError, FrameReader, Hello, Welcome, encode, encode_greeting};

const GREETING_MAX: Duration = Duration::from_secs(10);

pub async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    tokio::spawn(serve(Arc::clone(&shared), stream, peer));
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = shared.network.closed() => {}
        () = accepting => {}
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let _ = stream.set_nodelay(true);
    let (reader, writer) = stream.into_split();
    let mut reader = FrameReader::new(reader);
    let result = tokio::select! {
        biased;
        () = shared.network.closed() => return,
        result = talk(&shared, &mut reader, writer, peer) => result,
    };
    if let Err(error) = result {
        tracing::warn!("closed the connection from {peer}: {error}");
    }
}

async fn talk(
    shared: &Arc<Shared>,
    reader: &mut FrameReader<OwnedReadHalf>,
    mut writer: OwnedWriteHalf,
    peer: SocketAddr,
) -> Result<(), FrameError> {
    let network = &shared.network;
    let hello: Hello = timeout(GREETING_MAX, reader.greeting()).await.map_err(|_| FrameError::Ended)??;
    let mut bytes = BytesMut::new();
    if hello.to != network.process {
        let reason = format!("this is {}, not {}", network.process, hello.to);
        encode_greeting(&Welcome::Refused { reason }, &mut bytes)?;
        return Ok(writer.write_all(&bytes).await?);
    }
    if let Some(refusal) = register(network, &hello, peer).await {
        encode_greeting(&refusal, &mut bytes)?;
        return Ok(writer.write_all(&bytes).await?);
    }
    encode_greeting(&Welcome::Accepted { session: network.session }, &mut bytes)?;
    writer.write_all(&bytes).await?;
    while let Some(frame) = reader.frame().await? {
        match frame {
            Frame::Message { from, to, message }
                if from.process == hello.process && to.process == network.process =>
            {
                shared.deliver_remote(to.actor, Event::Message { from, message });
            }
            Frame::Resolve { process } => {
                let endpoint = network.locate(process);
                bytes.clear();
                encode(&Frame::Resolved { endpoint }, &mut bytes)?;
                writer.write_all(&bytes).await?;
            }
            Frame::Message { .. } | Frame::Resolved { .. } => return Err(FrameError::Foreign),
        }
    }
    Ok(())
}

/// Remembers the session, and where the process is if this is the directory. There, a process that
/// is alive keeps its name: gives the answer for whoever comes by the same one. What counts is that
/// it answers, as the end of a connection to a machine that lost its power is never seen.
async fn register(network: &Network, hello: &Hello, peer: SocketAddr) -> Option<Welcome> {
    if network.process != ProcessId::HighAvailability {
        network.seen(hello.process, hello.session);
        return None;
    }
    // Who listens on all addresses is reached at the one that it comes from.
    let mut endpoint = hello.endpoint;
    if endpoint.ip().is_unspecified() {
        endpoint.set_ip(peer.ip());
    }
    let newcomer = (hello.session, endpoint);
    let mut dead = None;
    while let Some((session, endpoint)) = network.enter(hello.process, newcomer, dead) {
        if dial::is_alive(network, hello.process, session, endpoint).await {
            tracing::warn!(
                "refused a second {} at {}: the one at {endpoint} (session {:016x}) is alive",
                hello.process,
                newcomer.1,
                session.0
            );
            return Some(Welcome::Occupied { session, endpoint });
        }
        dead = Some((session, endpoint));
    }
    network.seen(hello.process, hello.session);
    None
}
