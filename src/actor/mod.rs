//! Actors, their events and their effects: the one seam between decisions and the world.
//!
//! An actor is a plain struct. [`Actor::handle`] turns one event into effects in the [`Outbox`];
//! it never waits, reads no clock, touches no file and draws no random number. Whoever runs actors
//! (the simulator, the real runtime, a unit test) carries the effects out in their order; they
//! complete independently, so an actor that needs an order waits for the completion.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Configuration;
use crate::disk::{DiskOp, DiskResult, Volume};
use crate::ids::{ActorId, Address, ProcessId, SessionId};
use crate::message::{Message, TaskDeploymentDescriptor};
use crate::note::Note;
use crate::probe::Probe;

mod pending;
pub use pending::Pending;

/// Nanoseconds on the process's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub u64);

impl Time {
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

/// Names a timer within its actor. Setting a timer that is already set moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TimerId(pub u64);

/// Names a disk operation within its actor, until it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskOpId(pub u64);

/// What an actor can be told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// The first event of every actor.
    Start,
    Message {
        from: Address,
        message: Message,
    },
    Timer(TimerId),
    Disk {
        op: DiskOpId,
        result: DiskResult,
    },
}

/// What an actor can ask for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Effect {
    Send {
        to: Address,
        message: Message,
    },
    SetTimer {
        timer: TimerId,
        at: Time,
    },
    CancelTimer {
        timer: TimerId,
    },
    Disk {
        op: DiskOpId,
        volume: Volume,
        action: DiskOp,
        purpose: Purpose,
    },
    /// Starts the actor of a task in this process.
    Spawn(Box<TaskDeploymentDescriptor>),
    /// Ends an actor of this process: no event reaches it any more.
    Stop(ActorId),
    /// Tells the trace what was decided. Never part of the protocol.
    Note(Note),
    /// Ends the process in an orderly way, with its exit status.
    Exit(ExitStatus),
}

/// What a file is for; crash points are named by it (`job_event.sync#3.before`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Purpose {
    JobEvent,
    HighAvailability,
    Partition,
    Spill,
    Sink,
    Source,
}

impl Purpose {
    pub const fn name(self) -> &'static str {
        match self {
            Self::JobEvent => "job_event",
            Self::HighAvailability => "high_availability",
            Self::Partition => "partition",
            Self::Spill => "spill",
            Self::Sink => "sink",
            Self::Source => "source",
        }
    }
}

/// How an orderly process ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExitStatus {
    Success,
    /// With what went wrong and what to do.
    Failure(String),
    /// The job that the process followed was cancelled.
    Canceled,
}

impl Effect {
    /// Whether a crash point lies before and after this effect. Timers and notes change nothing
    /// that outlives the process.
    pub const fn counts(&self) -> bool {
        !matches!(self, Self::SetTimer { .. } | Self::CancelTimer { .. } | Self::Note(_))
    }

    /// Stable name of the kind of effect, as crash points use it: `SubmitTask`, `job_event.sync`.
    pub fn name(&self) -> String {
        match self {
            Self::Send { message, .. } => message.kind().to_owned(),
            Self::SetTimer { .. } => "set-timer".to_owned(),
            Self::CancelTimer { .. } => "cancel-timer".to_owned(),
            Self::Disk { action, purpose, .. } => format!("{}.{}", purpose.name(), action.kind()),
            Self::Spawn(_) => "spawn".to_owned(),
            Self::Stop(_) => "stop".to_owned(),
            Self::Note(_) => "note".to_owned(),
            Self::Exit(_) => "exit".to_owned(),
        }
    }
}

/// Collects the effects of one event, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    effects: Vec<Effect>,
    #[cfg(feature = "probes")]
    probes: Vec<Probe>,
}

impl Outbox {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn send(&mut self, to: Address, message: impl Into<Message>) {
        self.effects.push(Effect::Send { to, message: message.into() });
    }

    pub fn set_timer(&mut self, timer: TimerId, at: Time) {
        self.effects.push(Effect::SetTimer { timer, at });
    }

    pub fn cancel_timer(&mut self, timer: TimerId) {
        self.effects.push(Effect::CancelTimer { timer });
    }

    pub fn disk(&mut self, op: DiskOpId, volume: Volume, purpose: Purpose, action: DiskOp) {
        self.effects.push(Effect::Disk { op, volume, action, purpose });
    }

    pub fn spawn(&mut self, task: TaskDeploymentDescriptor) {
        self.effects.push(Effect::Spawn(Box::new(task)));
    }

    pub fn stop(&mut self, actor: ActorId) {
        self.effects.push(Effect::Stop(actor));
    }

    pub fn note(&mut self, note: Note) {
        self.effects.push(Effect::Note(note));
    }

    pub fn exit(&mut self, status: ExitStatus) {
        self.effects.push(Effect::Exit(status));
    }

    /// A rare branch is reached. No effect: it is nothing without the feature `probes`.
    #[inline]
    pub fn probe(&mut self, probe: Probe) {
        #[cfg(feature = "probes")]
        self.probes.push(probe);
        #[cfg(not(feature = "probes"))]
        let _ = probe;
    }

    /// As [`Self::probe`], if it is so.
    #[inline]
    pub fn probe_if(&mut self, is_so: bool, probe: Probe) {
        if is_so {
            self.probe(probe);
        }
    }

    /// The probes that were reached since this was asked.
    #[cfg(feature = "probes")]
    pub fn take_probes(&mut self) -> Vec<Probe> {
        std::mem::take(&mut self.probes)
    }

    /// Moves all effects of `other` behind those that are here.
    pub fn append(&mut self, other: &mut Self) {
        #[cfg(feature = "probes")]
        self.probes.append(&mut other.probes);
        self.effects.append(&mut other.effects);
    }

    /// Takes the effects out, leaving the outbox empty and its memory with the effects.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes the effects out one by one, keeping the memory.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }
}

/// A part of the system that decides. Its state can be printed, to see what it knows when a run is stopped.
pub trait Actor: fmt::Debug {
    /// Turns one event into effects. Total: whatever arrives, it never panics and never blocks.
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox);

    /// What in its state contradicts what, if anything does: what must hold between any two events. A simulation
    /// asks after each of them; a real process never does.
    fn contradiction(&self) -> Option<String> {
        None
    }
}

/// All that an incarnation of a process knows when it starts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    pub process: ProcessId,
    pub session: SessionId,
    pub config: Configuration,
    /// The volumes that this process can reach.
    pub volumes: Vec<Volume>,
}

/// Without what all processes of a cluster have in common.
impl fmt::Debug for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boot")
            .field("process", &self.process)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
