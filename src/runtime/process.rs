//! One process of the cluster: its actors, their mailboxes and what they share. Several can live
//! in one operating-system process, each with its own port. It never restarts anything.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use crate::actor::{Actor, Boot, Event, ExitStatus, Time};
use crate::disk::{DiskError, Volume};
use crate::ids::{ActorId, Address};
use crate::message::{Message, TaskDeploymentDescriptor};
use crate::note::Note;

use super::Engine;
use super::actor_thread::{self, Envelope, Mailbox};
use super::disk::Disk;
use super::disk_pool::DiskPool;
use super::log;
use super::network::{self, Network, ReachError};
use super::recording::Origin;

/// Messages from other processes that wait in one mailbox.
const MAILBOX_MAX: usize = 8192;
/// How long the end of a process may wait for its actors, and then for its connections.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

/// Sees every note, after the log did.
pub type Observer = Arc<dyn Fn(ActorId, &Note) + Send + Sync>;

#[derive(Clone)]
pub struct ProcessOptions {
    /// `boot.volumes` is taken from `volumes`.
    pub boot: Boot,
    pub engine: Arc<dyn Engine>,
    /// The directory of each volume.
    pub volumes: BTreeMap<Volume, PathBuf>,
    /// Where other processes reach this one; port 0 takes any.
    pub listen: SocketAddr,
    /// Where the high-availability process listens; `None` in that process itself.
    pub high_availability: Option<SocketAddr>,
    /// How long the high-availability process may be out of reach at the start.
    pub patience: Duration,
    /// Directory for recordings of all actors.
    pub record: Option<PathBuf>,
    pub observer: Option<Observer>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {error}; choose another address or port 0")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot use the storage directory: {0}")]
    Storage(#[from] DiskError),
    #[error("the high-availability process at {address} was not reached within {patience:?}: {error}")]
    Unreachable { address: SocketAddr, patience: Duration, error: ReachError },
    #[error("{0}")]
    Occupied(ReachError),
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
}

/// What the threads and tasks of a process share.
pub struct Shared {
    pub boot: Boot,
    pub disk: DiskPool,
    pub network: Network,
    pub record: Option<PathBuf>,
    engine: Arc<dyn Engine>,
    observer: Option<Observer>,
    started: Instant,
    mailboxes: RwLock<BTreeMap<ActorId, Mailbox>>,
    ended: watch::Sender<Option<ExitStatus>>,
}

/// A process that was started. Dropping it ends it at once.
pub struct RunningProcess {
    shared: Arc<Shared>,
}

impl RunningProcess {
    /// Listens, finds the high-availability process, and starts the actors. Needs a tokio runtime.
    pub async fn start(options: ProcessOptions) -> Result<Self, StartError> {
        let disk = Disk::new(options.volumes);
        disk.prepare()?;
        let boot = Boot { volumes: disk.volumes(), ..options.boot };
        let address = options.listen;
        let (listener, network) = Network::listen(&boot, address, options.high_availability)
            .await
            .map_err(|error| StartError::Listen { address, error })?;
        if let Some(address) = options.high_availability {
            network.find_high_availability(options.patience).await.map_err(|error| match error {
                ReachError::Occupied { .. } => StartError::Occupied(error),
                error => StartError::Unreachable { address, patience: options.patience, error },
            })?;
        }
        let shared = Arc::new(Shared {
            boot,
            disk: DiskPool::start(Arc::new(disk)).map_err(StartError::Thread)?,
            network,
            record: options.record,
            engine: options.engine,
            observer: options.observer,
            started: Instant::now(),
            mailboxes: RwLock::default(),
            ended: watch::Sender::new(None),
        });
        network::serve(&shared, listener);
        shared.start_actors().map_err(StartError::Thread)?;
        Ok(Self { shared })
    }

    /// Where other processes reach this one.
    pub fn endpoint(&self) -> SocketAddr {
        self.shared.network.endpoint()
    }

    /// Tells one of its actors something, as if it told itself.
    pub fn tell(&self, actor: ActorId, message: impl Into<Message>) {
        let from = Address::new(self.shared.boot.process, actor);
        self.shared.deliver(actor, Envelope::Event(Event::Message { from, message: message.into() }));
    }

    /// Waits until an actor ends the process.
    pub async fn ended(&self) -> ExitStatus {
        let mut ended = self.shared.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or(ExitStatus::Success),
            Err(_) => ExitStatus::Success,
        }
    }

    /// Stops the actors, waits for those that are busy, sends what they have sent and does what they
    /// asked of the disk, all within limits.
    pub async fn shut_down(self) {
        let started = Instant::now();
        self.shared.stop_all();
        while self.shared.is_running() && started.elapsed() < GOODBYE_MAX {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.shared.network.close(GOODBYE_MAX).await;
        let _ = tokio::time::timeout(GOODBYE_MAX, self.shared.disk.settled()).await;
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.shared.stop_all();
        self.shared.network.abandon();
        self.shared.disk.close();
    }
}

impl Shared {
    pub fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// All mailboxes are there before the first actor runs.
    fn start_actors(self: &Arc<Self>) -> std::io::Result<()> {
        let ids = self.engine.actor_ids(self.boot.process);
        let opened: Vec<_> = ids.iter().map(|&id| (id, self.open_mailbox(id))).collect();
        for (id, (mailbox, envelopes)) in opened {
            let shared = Arc::clone(self);
            let make = move || shared.engine.actor(&shared.boot, id);
            let origin = Origin { boot: self.boot.clone(), actor: id, task: None };
            self.start_thread(origin, mailbox, envelopes, make)?;
        }
        Ok(())
    }

    pub fn spawn_task(self: &Arc<Self>, task: TaskDeploymentDescriptor) {
        let id = ActorId::Task(task.attempt);
        let (mailbox, envelopes) = self.open_mailbox(id);
        let origin = Origin { boot: self.boot.clone(), actor: id, task: Some(task.clone()) };
        let shared = Arc::clone(self);
        let make = move || Some(shared.engine.task(&shared.boot, task));
        if let Err(error) = self.start_thread(origin, mailbox, envelopes, make) {
            self.exit(ExitStatus::Failure(format!("the system gives no thread for {id}: {error}")));
        }
    }

    fn open_mailbox(&self, id: ActorId) -> (Mailbox, mpsc::Receiver<Envelope>) {
        let (sender, envelopes) = mpsc::channel();
        let room = Arc::new(Semaphore::new(MAILBOX_MAX));
        let mailbox = Mailbox { sender, stopped: Arc::new(AtomicBool::new(false)), room };
        let replaced =
            self.mailboxes.write().unwrap_or_else(PoisonError::into_inner).insert(id, mailbox.clone());
        if let Some(replaced) = replaced {
            tracing::error!("actor {id} is started while it runs; the old one is stopped");
            replaced.stop();
        }
        (mailbox, envelopes)
    }

    fn start_thread(
        self: &Arc<Self>,
        origin: Origin,
        mailbox: Mailbox,
        envelopes: mpsc::Receiver<Envelope>,
        make: impl FnOnce() -> Option<Box<dyn Actor>> + Send + 'static,
    ) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        thread::Builder::new()
            .name(origin.actor.to_string())
            .spawn(move || actor_thread::run(&shared, origin, mailbox, envelopes, make))
            .map(drop)
    }

    pub fn send(self: &Arc<Self>, from: Address, to: Address, message: Message) {
        if to.process == self.boot.process {
            let envelope = Envelope::Event(Event::Message { from, message });
            self.deliver(to.actor, envelope);
        } else {
            network::send(self, from, to, message);
        }
    }

    pub fn deliver(&self, actor: ActorId, envelope: Envelope) {
        let mailboxes = self.mailboxes.read().unwrap_or_else(PoisonError::into_inner);
        let delivered = mailboxes.get(&actor).is_some_and(|mailbox| mailbox.sender.send(envelope).is_ok());
        if !delivered {
            tracing::debug!("dropped a message: there is no actor {actor}");
        }
    }

    /// Delivers what came from another process, unless the actor is so far behind that its mailbox
    /// is full: waiting here would hold up what came for its neighbours.
    pub fn deliver_remote(&self, actor: ActorId, event: Event) {
        let room = {
            let mailboxes = self.mailboxes.read().unwrap_or_else(PoisonError::into_inner);
            mailboxes.get(&actor).map(|mailbox| Arc::clone(&mailbox.room))
        };
        let Some(room) = room else {
            tracing::debug!("dropped a message: there is no actor {actor}");
            return;
        };
        if let Ok(permit) = room.try_acquire_owned() {
            self.deliver(actor, Envelope::Remote(event, permit));
        } else {
            tracing::warn!("dropped a message to {actor}: {MAILBOX_MAX} wait for it");
        }
    }

    pub fn stop(&self, actor: ActorId) {
        let removed = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner).remove(&actor);
        if let Some(mailbox) = removed {
            mailbox.stop();
        }
    }

    /// The actor's thread ends.
    pub fn forget(&self, actor: ActorId, mailbox: &Mailbox) {
        let mut mailboxes = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner);
        if mailboxes.get(&actor).is_some_and(|other| Arc::ptr_eq(&other.stopped, &mailbox.stopped)) {
            mailboxes.remove(&actor);
        }
    }

    /// The first exit counts; no actor gets an event after it.
    pub fn exit(&self, status: ExitStatus) {
        self.stop_all();
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                tracing::info!("process {} ends: {status:?}", self.boot.process);
                *ended = Some(status);
            }
            first
        });
    }

    fn is_running(&self) -> bool {
        !self.mailboxes.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn stop_all(&self) {
        for mailbox in self.mailboxes.read().unwrap_or_else(PoisonError::into_inner).values() {
            mailbox.stop();
        }
    }

    pub fn note(&self, actor: ActorId, note: &Note) {
        log::write(note);
        if let Some(observer) = &self.observer {
            observer(actor, note);
        }
    }
}
