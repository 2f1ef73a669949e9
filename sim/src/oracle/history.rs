//! What a run's trace says, as facts with the span of the trace over which they held. Built once a
//! run; every oracle asks it. Never judges.

use std::collections::BTreeMap;
use std::time::Duration;

use revenant::actor::{Purpose, Time};
use revenant::config::{Configuration, RestartStrategy, ShuffleServiceKind};
use revenant::graph::JobGraph;
use revenant::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId, ProcessId, ResultPartitionId,
};

use revenant::message::{IndexRange, JobStatus};
use revenant::note::Note;

use super::Violation;
use super::index;
use super::log::{Inputs, Log};
use crate::reference::Shape;
use crate::scenario::{DiskFaultKind, Profile, Scenario};
use crate::trace::{RunOutcome, TraceKind};

/// "Not ended within the trace."
pub const END: usize = usize::MAX;

/// About so many operations of the disk, one after the other, open the event store.
const OPENING: u32 = 8;

/// What the scenario allows to take as long as it takes: how long things are waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A new leader waits so long for the partitions of earlier workers.
    pub recovery: Duration,
    /// A TaskManager keeps partitions so long without a leader that claims them.
    pub retention: Duration,
    /// The longest that a question and its answer are under way.
    pub round_trip: Duration,
    /// Whether a job is recovered at all. If not, no finish is ever durable, and a partition is kept for
    /// nobody but the leader that knows it.
    pub recovers: bool,
    /// A leader waits so long for its event store.
    pub store: Duration,
    /// A leader and its workers may take each other for dead after so long.
    pub silence: Duration,
    /// Whether the disk is so slow that the event store may take longer than that, without any fault.
    pub slow_store: bool,
    /// Whether results are kept by shuffle services: then a task needs one, too.
    pub services: bool,
    /// The most that may be waited for, one after the other, until a job goes on after a fault: an old
    /// lease, a worker that does not answer, the store and the partitions in a recovery, a restart's pause, and
    /// between them questions that are asked again.
    pub waits: Duration,
    /// How long the job takes without faults; zero as long as nobody had to know.
    pub calm: Duration,
    pub task_managers: u32,
    /// Whether what breaks is made good.
    pub profile: Profile,
}

impl Patience {
    pub fn of(scenario: &Scenario) -> Self {
        let config = scenario.configuration();
        let recovers = config.job_recovery_enabled;
        let store = config.previous_worker_recovery_timeout.max(config.registration_retry);
        Self {
            recovery: config.previous_worker_recovery_timeout,
            retention: if recovers { config.registration_timeout } else { Duration::ZERO },
            round_trip: (scenario.network.latency.max + scenario.longest_lateness()) * 2,
            recovers,
            store,
            silence: config.heartbeat_timeout.saturating_sub(config.heartbeat_interval),
            slow_store: (scenario.disk.latency.max + scenario.disk.sync_latency.max) * OPENING >= store,
            services: config.shuffle_service == ShuffleServiceKind::External,
            waits: waits(&config),
            calm: Duration::ZERO,
            task_managers: scenario.cluster.task_managers,
            profile: scenario.expect.profile,
        }
    }
}

fn waits(config: &Configuration) -> Duration {
    let pause = match config.restart_strategy {
        RestartStrategy::None => Duration::ZERO,
        RestartStrategy::FixedDelay => config.restart_delay,
        RestartStrategy::FailureRate => config.failure_rate_delay,
        // With its jitter, which is at most as long again.
        RestartStrategy::ExponentialDelay => config.exponential_max * 2,
    };
    let store = config.previous_worker_recovery_timeout.max(config.registration_retry);
    config.session_timeout
        + config.heartbeat_timeout
        + config.heartbeat_interval
        + store * 2
        + pause
        + config.registration_retry * 2
}

/// A leader's time in office.
#[derive(Clone, Copy, Debug)]
pub struct Leader {
    pub process: ProcessId,
    pub token: FencingToken,
    pub acquired: usize,
    /// Where it had read the log; `acquired` if it does not say. One that it replaces may write until then.
    pub read: usize,
    /// Where its predecessor's memory was lost; `acquired` if there was none.
    pub lost: usize,
    pub recovered: Option<usize>,
    /// Where its own memory is lost, or [`END`].
    pub until: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Initialized<'a> {
    pub at: usize,
    pub token: FencingToken,
    pub vertex: JobVertexId,
    pub parallelism: u32,
    pub inputs: &'a Inputs,
}

#[derive(Clone, Copy, Debug)]
pub struct Deployed {
    pub at: usize,
    pub attempt: ExecutionAttemptId,
}

/// A finish that counted from `from` until `until`.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    pub attempt: ExecutionAttemptId,
    pub splits: &'a [u32],
    pub inputs: &'a [Vec<ResultPartitionId>],
    pub from: usize,
    pub until: usize,
}

/// A finished partition on a TaskManager or shuffle service.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub partition: ResultPartitionId,
    pub process: ProcessId,
    pub incarnation: u32,
    pub from: usize,
    pub until: usize,
}

/// A TaskManager or shuffle service said that a partition is gone.
#[derive(Clone, Copy, Debug)]
pub struct Released {
    pub at: usize,
    pub partition: ResultPartitionId,
    pub process: ProcessId,
    pub incarnation: u32,
}

#[derive(Debug)]
pub struct History<'a> {
    pub graph: &'a JobGraph,
    pub shape: &'a Shape,
    pub outcome: &'a RunOutcome,
    pub log: Log,
    pub leaders: Vec<Leader>,
    pub initialized: Vec<Initialized<'a>>,
    pub deployed: Vec<Deployed>,
    pub started: Vec<Deployed>,
    /// All spans of counted finishes, by subtask, in order.
    pub finishes: BTreeMap<ExecutionVertexId, Vec<Finish<'a>>>,
    pub held: Vec<Held>,
    pub released: Vec<Released>,
    /// Crashes of the JobManager.
    pub crashes: Vec<usize>,
    /// Crashes of TaskManagers and shuffle services.
    pub workers_lost: Vec<usize>,
    /// Failures after which everything runs again.
    pub global_failures: Vec<usize>,
    /// Where a JobMaster was told to cancel the job.
    pub cancels: Vec<usize>,
    pub commit_decided: Option<usize>,
    /// Where it was decided that the job fails or is cancelled.
    pub failure_decided: Option<usize>,
    /// When TaskManagers were registered at a leader: (trace index, process).
    pub registered: Vec<(usize, ProcessId)>,
    /// When TaskManagers lost their leader: (trace index, process).
    pub abandoned: Vec<(usize, ProcessId)>,
    pub patience: Patience,
    /// Where the finishes that the commit stands on were last complete.
    pub complete: Option<usize>,
}

impl<'a> History<'a> {
    pub fn new(graph: &'a JobGraph, shape: &'a Shape, patience: Patience, outcome: &'a RunOutcome) -> Self {
        index::index(graph, shape, patience, outcome)
    }

    /// The time of a trace event; the run's end beyond the trace.
    pub fn time(&self, event: usize) -> Time {
        self.outcome.trace.get(event).map_or(self.outcome.end, |event| event.time)
    }

    /// What passed between two trace events by the clock of a process's machine, which is what the
    /// process goes by.
    pub fn waited(&self, process: ProcessId, from: usize, until: usize) -> Duration {
        self.local(process, until).since(self.local(process, from))
    }

    fn local(&self, process: ProcessId, at: usize) -> Time {
        let until = at.saturating_add(1).min(self.outcome.trace.len());
        let changed = self.outcome.trace[..until].iter().rev().find_map(|event| match event.what {
            TraceKind::ClockChanged { clock, .. } if event.process == process => Some(clock),
            _ => None,
        });
        changed.unwrap_or_default().shows(self.time(at))
    }

    /// What passed for a leader between two trace events.
    fn leader_waited(&self, leader: &Leader, from: usize, until: usize) -> Duration {
        self.waited(leader.process, from, until)
    }

    /// What had passed for a leader between two trace events a moment before the second, as long as it takes to
    /// hear and answer: by its own clock, which may jump at that moment, and without the time in which its
    /// process stood still. What it waits for is overdue if this is longer than that may take.
    pub fn worked(&self, leader: &Leader, from: usize, until: usize) -> Duration {
        let process = leader.process;
        let ago = self.patience.round_trip.max(Duration::from_nanos(1));
        let moment = self.time(until).since(Time(0)).saturating_sub(ago);
        let until = Time(0) + moment;
        let waited = |from: Time, until: Time| {
            self.local_at(process, until).since(self.local_at(process, from.min(until)))
        };
        let from = self.time(from).min(until);
        let mut stood_still = Duration::ZERO;
        let mut since = None;
        for event in self.outcome.trace.iter().filter(|event| event.process == process && event.time <= until)
        {
            match event.what {
                TraceKind::Paused => since = Some(event.time.max(from)),
                TraceKind::Resumed | TraceKind::Crashed { .. } | TraceKind::Exited { .. } => {
                    let paused = since.take().filter(|_| event.time > from);
                    stood_still += paused.map_or(Duration::ZERO, |since| waited(since, event.time));
                }
                _ => {}
            }
        }
        stood_still += since.map_or(Duration::ZERO, |since| waited(since, until));
        waited(from, until).saturating_sub(stood_still)
    }

    /// What the clock of a process's machine shows.
    fn local_at(&self, process: ProcessId, time: Time) -> Time {
        let before = self.outcome.trace.iter().rev().filter(|event| event.time <= time);
        let changed = before.filter(|event| event.process == process).find_map(|event| match event.what {
            TraceKind::ClockChanged { clock, .. } => Some(clock),
            _ => None,
        });
        changed.unwrap_or_default().shows(time)
    }

    /// Where behind one trace event and before another the leader says so first.
    pub fn says(
        &self,
        leader: &Leader,
        from: usize,
        until: usize,
        wanted: impl Fn(&Note) -> bool,
    ) -> Option<usize> {
        (from + 1..until.min(self.outcome.trace.len())).find(|&at| {
            let event = &self.outcome.trace[at];
            event.process == leader.process && matches!(&event.what, TraceKind::Note(note) if wanted(note))
        })
    }

    /// Where between two trace events the leader decided the job's failure or its cancelling.
    pub fn ends_otherwise(&self, leader: &Leader, from: usize, until: usize) -> Option<usize> {
        self.says(leader, from, until, ended_otherwise)
    }

    /// Whether a JobManager said this that another had replaced by then. It has no effect: S9 sees to that.
    pub fn is_of_replaced(&self, at: usize) -> bool {
        let process = self.outcome.trace[at].process;
        let leads = self.leaders.iter().rev().find(|leader| leader.acquired <= at);
        matches!(process, ProcessId::JobManager(_)) && leads.is_some_and(|leader| leader.process != process)
    }

    /// Whether the leader waited for partitions as long as it has to, and this TaskManager had not
    /// registered early enough to report: then its partitions may count as lost.
    pub fn too_late_for(&self, leader: &Leader, process: ProcessId) -> bool {
        let waited = self.leader_waited(leader, leader.acquired, leader.recovered.unwrap_or(leader.until));
        let recovered = self.time(leader.recovered.unwrap_or(leader.until));
        waited >= self.patience.recovery
            && !self.registered.iter().any(|&(at, registered)| {
                registered == process
                    && at > leader.acquired
                    && self.time(at) + self.patience.round_trip <= recovered
            })
    }

    /// Whether a leader waited for its event store as long as it has to, and a fault of the disk, or how slow it
    /// is, kept it from reading the log: nothing that the log says binds it.
    pub fn is_blind(&self, leader: &Leader) -> bool {
        let recovered = leader.recovered.unwrap_or(leader.until).min(self.outcome.trace.len());
        let waited = self.leader_waited(leader, leader.acquired, recovered);
        waited >= self.patience.recovery
            && (!self.log.had_begun(leader.token, recovered) || self.lost_its_log(leader.acquired, recovered))
            && (self.patience.slow_store || self.log_disk_was_broken(leader.acquired, recovered))
    }

    /// Whether the name of a file of the event log could not be made durable: then it does not count, whatever
    /// is in it.
    fn lost_its_log(&self, from: usize, until: usize) -> bool {
        self.outcome.trace[from.min(until)..until].iter().any(|event| {
            matches!(&event.what, TraceKind::DiskRefused { error }
                if error.operation == "sync-directory" && error.path.ends_with("/job-events"))
        })
    }

    /// Whether the disk of the event log failed, was full or slow at some time between two trace events.
    fn log_disk_was_broken(&self, from: usize, until: usize) -> bool {
        let faults =
            self.outcome.trace[..until].iter().enumerate().filter_map(|(at, event)| match event.what {
                TraceKind::DiskFault(fault) if fault.purpose == Purpose::JobEvent => Some((at, fault.kind)),
                _ => None,
            });
        let refused = self.outcome.trace[from.min(until)..until].iter().any(|event| {
            matches!(&event.what, TraceKind::DiskRefused { error } if error.path.contains("/job-events"))
        });
        if refused {
            return true;
        }
        let mut broken = false;
        for (at, kind) in faults {
            if broken && at >= from {
                return true;
            }
            match kind {
                DiskFaultKind::Fail | DiskFaultKind::Full | DiskFaultKind::Slow(_) => broken = true,
                DiskFaultKind::Heal => broken = false,
                DiskFaultKind::FailOnce { .. } | DiskFaultKind::Corrupt { .. } => {}
            }
        }
        broken
    }

    /// The finish of the subtask that counts at trace index `at`.
    pub fn counted(&self, subtask: ExecutionVertexId, at: usize) -> Option<&Finish<'a>> {
        self.finishes.get(&subtask)?.iter().rev().find(|finish| finish.from <= at && at < finish.until)
    }

    /// The finish by this attempt, whether or not it counts any more.
    pub fn accepted(&self, attempt: ExecutionAttemptId) -> Option<&Finish<'a>> {
        self.finishes.get(&attempt.subtask)?.iter().find(|finish| finish.attempt == attempt)
    }

    /// All finishes that count at trace index `at`.
    pub fn all_counted(&self, at: usize) -> impl Iterator<Item = &Finish<'a>> {
        self.finishes.values().flatten().filter(move |finish| finish.from <= at && at < finish.until)
    }

    /// Whether all subtasks of all vertices count as finished at trace index `at`.
    pub fn is_complete(&self, at: usize) -> bool {
        self.graph.vertices.iter().all(|vertex| {
            self.initialized(vertex.id, at).is_some_and(|decision| {
                (0..decision.parallelism)
                    .all(|subtask| self.counted(ExecutionVertexId::new(vertex.id, subtask), at).is_some())
            })
        })
    }

    /// The decision about the vertex that stands at trace index `at`.
    pub fn initialized(&self, vertex: JobVertexId, at: usize) -> Option<&Initialized<'a>> {
        self.initialized.iter().rev().find(|decision| decision.vertex == vertex && decision.at <= at)
    }

    /// What a finish was to read of its inputs, by gate.
    pub fn ranges_of(&self, finish: &Finish) -> Option<&'a [(IndexRange, IndexRange)]> {
        let subtask = finish.attempt.subtask;
        let decision = self.initialized(subtask.vertex, finish.from)?;
        decision.inputs.get(subtask.subtask as usize).map(Vec::as_slice)
    }

    /// The partitions that an attempt leaves, one for each output of its vertex.
    pub fn partitions(&self, attempt: ExecutionAttemptId) -> impl Iterator<Item = ResultPartitionId> {
        let outputs = &self.graph.vertex(attempt.subtask.vertex).outputs;
        outputs.iter().map(move |&data_set| ResultPartitionId { data_set, producer: attempt })
    }

    pub fn violation(&self, oracle: &'static str, event: usize, message: String) -> Violation {
        Violation { oracle, at: self.time(event), event: event.min(self.outcome.trace.len()), message }
    }
}

/// Whether a leader decided the job's failure or its cancelling.
pub fn ended_otherwise(note: &Note) -> bool {
    matches!(note, Note::JobStatusChanged { status: JobStatus::Failed | JobStatus::Canceled, .. })
}

/// Whether a subtask with these inputs reads partition `index` through its gate `gate`.
pub fn reads(inputs: &Inputs, subtask: u32, gate: usize, index: u32) -> bool {
    inputs
        .get(subtask as usize)
        .and_then(|gates| gates.get(gate))
        .is_some_and(|(partitions, _)| partitions.start <= index && index <= partitions.end)
}
