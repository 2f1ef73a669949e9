//! Messages between processes: one TCP connection per destination, made when it is first needed,
//! in the order of sending. A message to a process that cannot be reached is dropped, and logged;
//! the protocol repeats what matters. The high-availability process knows where everyone is.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::actor::Boot;
use crate::ids::{Address, ProcessId, SessionId};
use crate::message::Message;

mod dial;
pub mod frame;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub use dial::ReachError;
use frame::{Frame, Hello};

use super::process::Shared;

/// Messages that wait for one destination. Those that are large are bounded by credit, so that this
/// is only reached when the destination takes nothing.
const QUEUE_MAX: usize = 8192;

/// How long a process waits for an earlier one of its name to end.
const OCCUPIED_MAX: Duration = Duration::from_secs(3);

/// A process in the directory: its session, and where it listens.
type Entry = (SessionId, SocketAddr);

type Queue = mpsc::Sender<Frame>;

pub struct Network {
    process: ProcessId,
    session: SessionId,
    endpoint: SocketAddr,
    /// `None` in the high-availability process, which has the directory.
    high_availability: Option<SocketAddr>,
    /// Where processes are: filled in the high-availability process only.
    directory: Mutex<BTreeMap<ProcessId, Entry>>,
    /// The newest session seen of each process: a connection to an older one is dropped.
    sessions: watch::Sender<BTreeMap<ProcessId, SessionId>>,
    outgoing: Mutex<BTreeMap<ProcessId, Queue>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    closing: watch::Sender<bool>,
    runtime: Handle,
}

impl Network {
    pub async fn listen(
        boot: &Boot,
        address: SocketAddr,
        high_availability: Option<SocketAddr>,
    ) -> io::Result<(TcpListener, Self)> {
        let listener = TcpListener::bind(address).await?;
        let network = Self {
            process: boot.process,
            session: boot.session,
            endpoint: listener.local_addr()?,
            high_availability,
            directory: Mutex::default(),
            sessions: watch::Sender::default(),
            outgoing: Mutex::default(),
            tasks: Mutex::default(),
            closing: watch::Sender::new(false),
            runtime: Handle::current(),
        };
        Ok((listener, network))
    }

    pub const fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }

    /// Tries until the high-availability process answers. Another process of the same name, which
    /// may be about to die, gets a short while in any case.
    pub async fn find_high_availability(&self, patience: Duration) -> Result<(), ReachError> {
        let started = Instant::now();
        let mut told = false;
        loop {
            let Err(error) = dial::connect(self, ProcessId::HighAvailability).await else {
                return Ok(());
            };
            let limit = if matches!(error, ReachError::Occupied { .. }) { OCCUPIED_MAX } else { patience };
            if started.elapsed() >= limit {
                return Err(error);
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("not in the cluster yet: {error}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn hello(&self, to: ProcessId) -> Hello {
        Hello { process: self.process, session: self.session, endpoint: self.endpoint, to }
    }

    /// Where a process is, in the high-availability process.
    fn locate(&self, process: ProcessId) -> Option<SocketAddr> {
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        directory.get(&process).map(|&(_, endpoint)| endpoint)
    }

    /// Enters a process into the directory, if no other session of it is there than the one that
    /// is known to be `dead`; gives the one that is in the way. Two processes cannot listen at one
    /// endpoint, so who is there now is the only one.
    fn enter(&self, process: ProcessId, newcomer: Entry, dead: Option<Entry>) -> Option<Entry> {
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&holder) = directory.get(&process)
            && holder.0 != newcomer.0
            && holder.1 != newcomer.1
            && Some(holder) != dead
        {
            return Some(holder);
        }
        if directory.insert(process, newcomer) != Some(newcomer) {
            tracing::debug!("{process} is at {}", newcomer.1);
        }
        None
    }

    /// A process showed itself: connections to its earlier sessions are of no use any more.
    fn seen(&self, process: ProcessId, session: SessionId) {
        self.sessions.send_if_modified(|sessions| sessions.insert(process, session) != Some(session));
    }

    /// Ends all connections once what was sent is out, or after `patience`.
    pub async fn close(&self, patience: Duration) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(patience, all).await;
        self.abandon();
    }

    /// Ends all connections at once.
    pub fn abandon(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.closing.send_replace(true);
    }

    async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|closing| *closing).await;
    }
}

/// Begins to accept connections, and keeps one to the high-availability process, so that it always
/// knows where this process is.
pub fn serve(shared: &Arc<Shared>, listener: TcpListener) {
    shared.network.runtime.spawn(incoming::accept(Arc::clone(shared), listener));
    if shared.network.high_availability.is_some() {
        let mut outgoing = shared.network.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        queue(shared, &mut outgoing, ProcessId::HighAvailability);
    }
}

/// Queues a message, or drops it if the destination takes nothing: an actor that waited for one
/// destination would keep its heartbeats from all others.
pub fn send(shared: &Arc<Shared>, from: Address, to: Address, message: Message) {
    let queue = {
        let mut outgoing = shared.network.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        queue(shared, &mut outgoing, to.process)
    };
    offer(&queue, Frame::Message { from, to, message }, to);
}

fn offer(queue: &Queue, frame: Frame, to: Address) {
    if let Err(error) = queue.try_send(frame) {
        tracing::warn!("dropped a message to {to}: {error}");
    }
}

fn queue(shared: &Arc<Shared>, outgoing: &mut BTreeMap<ProcessId, Queue>, to: ProcessId) -> Queue {
    let network = &shared.network;
    let start = || {
        let (sender, messages) = mpsc::channel(QUEUE_MAX);
        let task = network.runtime.spawn(outgoing::run(Arc::clone(shared), to, messages));
        network.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        sender
    };
    outgoing.entry(to).or_insert_with(start).clone()
}
