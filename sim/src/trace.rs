//! The one event schema of a run: what logs, reports and oracles read.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use revenant::actor::Time;
use revenant::disk::{DiskError, Volume};
use revenant::ids::{ActorId, Address, ProcessId};
use revenant::message::Message;
use revenant::note::Note;
use revenant::probe::Probe;

use crate::clock::Clock;
use crate::point::CrashPoint;
use crate::run::{ProcessStates, Profile};
use crate::scenario::{ClockFault, DiskFault, HaFault, NetworkFault, Span, Unsynced};

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    pub time: Time,
    pub process: ProcessId,
    /// From 1, for each process.
    pub incarnation: u32,
    /// The actor that noted it, if an actor did.
    pub actor: Option<ActorId>,
    pub what: TraceKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// An actor's decision.
    Note(Note),
    /// A process started.
    Started,
    /// A process died, with the crash point if one was hit.
    Crashed { point: Option<String>, machine: bool },
    /// A process ended by itself.
    Exited { failure: Option<String> },
    /// The JobMaster of the process is told to cancel the job, whatever it makes of it.
    CancelReached,
    /// The process stands still from now on.
    Paused,
    /// The process goes on.
    Resumed,
    /// The content of the process's own volumes was remembered.
    DiskRemembered,
    /// The process's own volumes are as they were when they were remembered.
    DiskRestored,
    /// From now on the clock of the process's machine goes so: by a fault, or, at a start, as it was.
    ClockChanged { clock: Clock, fault: Option<ClockFault> },
    /// A fault of the scenario took effect.
    FaultFired { fault: usize },
    /// Bytes were added to a file of the job event store (not yet durable).
    LogAppended { volume: Volume, path: String, bytes: Bytes },
    /// The file of the job event store is durable up to this length.
    LogSynced { volume: Volume, path: String, length: u64 },
    /// A file of the job event store was deleted.
    LogDeleted { volume: Volume, path: String },
    /// A fault of the scenario changed what the disk does, or bytes on it.
    DiskFault(DiskFault),
    /// A standing fault of the network began, or a heal ended some, or connections began anew.
    NetworkFault(NetworkFault),
    /// Something befell a message between two processes.
    Message(Touched),
    /// A bit of the byte at this offset of a file of the job event store was flipped.
    LogCorrupted { volume: Volume, path: String, offset: u64 },
    /// A fault ended the leadership of whoever held it.
    HaFault(HaFault),
    /// A fault of the scenario made an operation fail.
    DiskRefused { error: DiskError },
    /// These bytes of a file of the job event store are zeros since a crash of its machine.
    LogZeroed { volume: Volume, path: String, from: u64, to: u64 },
    /// What a crash of its machine left of a file of the job event store.
    LogAfterCrash { volume: Volume, path: String, length: u64 },
}

/// A message that did not go as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    pub kind: &'static str,
    pub from: Address,
    pub to: Address,
    pub what: What,
}

/// What befell a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It alone is lost.
    Dropped,
    /// It was sent while there was no way for it.
    Cut,
    /// There was no way for it any more when it should have arrived.
    LostOnTheWay,
    /// It was under way when its connection was reset.
    Reset,
    /// It is so much later, and what follows it waits.
    Delayed(Duration),
    /// It is so much later, as is every message on its way.
    Slowed(Duration),
    /// It alone is so much later.
    Overtaken(Duration),
    /// It arrives once more, so much later.
    Repeated(Duration),
}

impl fmt::Display for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, from, to, what } = self;
        write!(f, "{kind} from {from} to {to} ")?;
        match what {
            What::Dropped => f.write_str("IS LOST"),
            What::Cut => f.write_str("IS LOST: there is no way"),
            What::LostOnTheWay => f.write_str("IS LOST on its way: there is no way any more"),
            What::Reset => f.write_str("IS LOST: its connection was reset"),
            What::Delayed(by) => write!(f, "is {} late, and what follows it waits", Span(*by)),
            What::Slowed(by) => write!(f, "is {} slower", Span(*by)),
            What::Overtaken(by) => write!(f, "is {} late: what follows it OVERTAKES it", Span(*by)),
            What::Repeated(after) => write!(f, "comes TWICE, again {} later", Span(*after)),
        }
    }
}

/// What a run was and left.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    pub trace: Vec<TraceEvent>,
    /// Fold over the digests of all events that were delivered, in order.
    pub hash: u64,
    pub events: u64,
    pub messages: u64,
    pub end: Time,
    /// Why the run stopped.
    pub ended: RunEnd,
    /// Every file on the output volume at the end, by path.
    pub output: BTreeMap<String, Bytes>,
    /// Files left on the other volumes at the end: (owner if the volume is a process's own, volume,
    /// path).
    pub leftovers: Vec<(Option<ProcessId>, Volume, String)>,
    /// What became of files of another cluster that lay on the shared volume, if they are not as they were.
    pub foreign: Vec<String>,
    /// Positions in the scenario of the faults that did not fire: the run shows nothing about them.
    pub vacuous: Vec<usize>,
    /// The keys of rates in the scenario that never struck: the run shows nothing about them either.
    pub idle_rates: Vec<&'static str>,
    /// How often rare branches of the engine were taken.
    pub probes: BTreeMap<Probe, u64>,
    /// What only some callers ask for.
    pub detail: RunDetail,
}

/// Kept only if [`crate::run::RunOptions`] asks for it.
#[derive(Clone, Debug, Default)]
pub struct RunDetail {
    /// The hash after each delivered event.
    pub chain: Vec<u64>,
    /// Each delivered event as text.
    pub text: Vec<String>,
    /// With the text: how long the trace was when each event was delivered.
    pub starts: Vec<usize>,
    /// Each delivered message.
    pub messages: Vec<Delivered>,
    pub points: Vec<FoundPoint>,
    pub profile: Profile,
    /// What every process looks like where the run was cut.
    pub states: Vec<ProcessStates>,
    /// What the run took from the allocator. Nothing, if the program does not count it.
    pub allocated: Allocated,
}

impl RunDetail {
    /// The number, from 1, of the delivered event during or behind which this event of the trace happened: what
    /// `replay --until` takes. It needs the text.
    pub fn delivered_at(&self, trace_event: usize) -> u64 {
        self.starts.partition_point(|&start| start <= trace_event) as u64
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Allocations, with those that grow or shrink an earlier one.
    pub count: u64,
    /// All of them added up, whatever was freed meanwhile.
    pub bytes: u64,
}

/// A message as it reached its actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// How many trace events there were before it.
    pub position: usize,
    pub time: Time,
    pub from: Address,
    pub process: ProcessId,
    pub incarnation: u32,
    pub actor: ActorId,
    pub message: Message,
}

/// A crash point that the run passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPoint {
    /// By number.
    pub point: CrashPoint,
    /// The same place by name: after the effect that left last, before the one that leaves next.
    pub names: Vec<CrashPoint>,
    pub time: Time,
    /// Position of the actor's event among all delivered events, from 1.
    pub event: u64,
    /// What lives on if the process dies here, if [`crate::run::RunOptions::survivors`] asks.
    pub survivors: u64,
    /// If its machine dies here and there is something that was not synced: what then lives on, by what
    /// becomes of that. Each image once.
    pub images: Vec<(Unsynced, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The client saw the job's result.
    Finished,
    /// The client saw that the job failed.
    Failed { reason: String },
    /// The client saw that the job was cancelled.
    Canceled,
    /// Simulated time ran out, or nothing was left that could ever happen; with who waits for what.
    Stuck { why: String },
    /// An actor panicked.
    Panicked { process: ProcessId, actor: ActorId, message: String },
    /// An actor's state contradicts itself.
    Contradicted { process: ProcessId, actor: ActorId, message: String },
}
