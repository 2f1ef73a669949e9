//! The connection to one destination: made when a message waits, kept until it breaks or the
//! destination comes back as a new session, made again with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::actor::ExitStatus;
use crate::ids::ProcessId;

use super::super::process::Shared;
use super::Network;
use super::dial::{Connection, ReachError, connect};
use super::frame::{Frame, encode};

const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Frames that wait are written together up to this size.
const BATCH_BYTES: usize = 256 << 10;
/// A destination that takes no bytes for so long is given up.
const WRITE_MAX: Duration = Duration::from_secs(30);

enum Ended {
    /// Nobody will send any more.
    Done,
    /// The connection is of no use any more.
    Lost(String),
}

pub async fn run(shared: Arc<Shared>, to: ProcessId, mut queue: mpsc::Receiver<Frame>) {
    let network = &shared.network;
    tokio::select! {
        biased;
        () = network.closed() => {}
        () = keep_connected(&shared, to, &mut queue) => {}
    }
}

async fn keep_connected(shared: &Shared, to: ProcessId, queue: &mut mpsc::Receiver<Frame>) {
    let network = &shared.network;
    let mut pause = PAUSE_MIN;
    loop {
        // The high-availability process must always know this process: no message is waited for.
        let first = if to == ProcessId::HighAvailability {
            if queue.is_closed() && queue.is_empty() {
                return;
            }
            None
        } else {
            match queue.recv().await {
                Some(frame) => Some(frame),
                None => return,
            }
        };
        match connect(network, to).await {
            Ok(connection) => {
                pause = PAUSE_MIN;
                match pump(network, to, connection, first, queue).await {
                    Ended::Done => return,
                    Ended::Lost(why) => tracing::debug!("the connection to {to} ended: {why}"),
                }
            }
            // It was taken for dead: nobody finds this process any more.
            Err(error @ ReachError::Occupied { .. }) => {
                return shared.exit(ExitStatus::Failure(error.to_string()));
            }
            Err(error) => {
                let mut dropped = usize::from(first.is_some());
                while queue.try_recv().is_ok() {
                    dropped += 1;
                }
                tracing::debug!("dropped {dropped} messages to {to}: {error}");
                if queue.is_closed() {
                    return;
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

async fn pump(
    network: &Network,
    to: ProcessId,
    connection: Connection,
    first: Option<Frame>,
    queue: &mut mpsc::Receiver<Frame>,
) -> Ended {
    let Connection { mut reader, mut writer, session } = connection;
    let mut sessions = network.sessions.subscribe();
    let mut bytes = BytesMut::new();
    if let Some(frame) = first {
        add(to, &frame, &mut bytes);
    }
    loop {
        while bytes.len() < BATCH_BYTES
            && let Ok(frame) = queue.try_recv()
        {
            add(to, &frame, &mut bytes);
        }
        if !bytes.is_empty() {
            match timeout(WRITE_MAX, writer.write_all(&bytes)).await {
                Ok(Ok(())) => bytes.clear(),
                Ok(Err(error)) => return Ended::Lost(error.to_string()),
                Err(_) => return Ended::Lost(format!("it took nothing for {WRITE_MAX:?}")),
            }
        }
        let replaced = async {
            let newer = sessions.wait_for(|all| all.get(&to).is_some_and(|seen| *seen != session)).await;
            drop(newer);
        };
        tokio::select! {
            biased;
            // The other side says nothing on this connection: whatever is read is its end.
            end = reader.frame() => return Ended::Lost(match end {
                Ok(_) => "closed by the other side".to_owned(),
                Err(error) => error.to_string(),
            }),
            () = replaced => return Ended::Lost("the process came back as a new one".to_owned()),
            frame = queue.recv() => {
                let Some(frame) = frame else {
                    let _ = writer.shutdown().await;
                    return Ended::Done;
                };
                add(to, &frame, &mut bytes);
            }
        }
    }
}

fn add(to: ProcessId, frame: &Frame, bytes: &mut BytesMut) {
    let before = bytes.len();
    if let Err(error) = encode(frame, bytes) {
        bytes.truncate(before);
        tracing::error!("a message to {to} cannot be sent and is dropped: {error}");
    }
}
