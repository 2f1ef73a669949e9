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
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use crate::actor::Boot;
use crate::ids::{Address, ProcessId, SessionId};
use crate::message::Message;

mod dial;
mod frame;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

pub use dial::ReachError;
use frame::{Frame, Hello};

use super::process::Shared;

/// Messages that wait for one destination.
const QUEUE_MAX: usize = 1024;
/// Messages from other processes that wait in all mailboxes of this one.
const MAILBOX_MAX: usize = 4096;
/// How long a sender waits for room in a queue before the message is given up.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(10);

type Queue = mpsc::Sender<Frame>;

pub struct Network {
    process: ProcessId,
    session: SessionId,
    endpoint: SocketAddr,
    /// `None` in the high-availability process, which has the directory.
    high_availability: Option<SocketAddr>,
    /// Where processes are: filled in the high-availability process only.
    directory: Mutex<BTreeMap<ProcessId, (SessionId, SocketAddr)>>,
    /// The newest session seen of each process: a connection to an older one is dropped.
    sessions: watch::Sender<BTreeMap<ProcessId, SessionId>>,
    outgoing: Mutex<BTreeMap<ProcessId, Queue>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    room: Arc<Semaphore>,
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
            room: Arc::new(Semaphore::new(MAILBOX_MAX)),
            closing: watch::Sender::new(false),
            runtime: Handle::current(),
        };
        Ok((listener, network))
    }

    pub const fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }

    /// Tries until the high-availability process answers.
    pub async fn find_high_availability(&self, patience: Duration) -> Result<(), ReachError> {
        let started = Instant::now();
        let mut told = false;
        loop {
            let Err(error) = dial::connect(self, ProcessId::HighAvailability).await else {
                return Ok(());
            };
            if started.elapsed() >= patience {
                return Err(error);
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("waiting for the high-availability process: {error}");
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

/// Queues a message. Waits for room if the destination is slow, but not for ever.
pub fn send(shared: &Arc<Shared>, from: Address, to: Address, message: Message) {
    let queue = {
        let mut outgoing = shared.network.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        queue(shared, &mut outgoing, to.process)
    };
    let mut frame = Frame::Message { from, to, message };
    let started = Instant::now();
    loop {
        match queue.try_send(frame) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(back)) if started.elapsed() < ROOM_WAIT_MAX => frame = back,
            Err(error) => {
                tracing::warn!("dropped a message to {to}: {error}");
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(1));
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
