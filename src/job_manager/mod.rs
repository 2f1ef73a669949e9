//! The JobMaster: leads one job, with the scheduler, the coordinators of its sources and the slots
//! of its TaskManagers as plain state. It never touches a disk but to make sinks' files visible
//! when the job commits, and it never waits: whatever takes time comes back as an event.
//!
//! A leader lives through phases, each in a file of its own: `leadership` (until the fencing
//! token), `enumeration` (what there is to read, once per job), `recovery` (replay, and waiting for partitions), `scheduling` and `failover` (running),
//! `commit` (making the output visible). `workers` keeps the TaskManagers.

mod commit;
mod consistency;
mod enumeration;
mod failover;
mod leadership;
mod recording;
mod recovery;
mod scheduling;
mod shuffle_master;
pub mod submission;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actor::{Actor, Boot, Event, ExitStatus, Outbox, Pending, Time, TimerId};
use crate::api::Program;
use crate::coordinator::{SnapshotPause, SourceCoordinator};
use crate::graph::JobGraph;
use crate::ids::{ActorId, Address, FencingToken, JobVertexId};
use crate::message::{
    CommitDecision, JobOutcome, JobRecord, JobStatus, JobStatusReport, Message, SourceSplit,
};
use crate::note::Note;
use crate::planted::{PlantedBug, is_planted};
use crate::scheduler::{ExecutionGraph, PartitionTracker, RestartBackoff, SlotPool};

use commit::{Commit, Leftovers};
use enumeration::Enumeration;
use recording::Recording;
use shuffle_master::ShuffleMaster;
use workers::Workers;

const CONTEND: TimerId = TimerId(1);
const RENEW_LEASE: TimerId = TimerId(2);
const HEARTBEAT: TimerId = TimerId(3);
const RECOVERY_TIMEOUT: TimerId = TimerId(4);
const RESTART: TimerId = TimerId(5);
const ASK_AGAIN: TimerId = TimerId(6);

/// The JobMaster actor of a JobManager process.
#[derive(Debug)]
pub struct JobMaster {
    boot: Boot,
    record: Arc<JobRecord>,
    /// Of sources whose splits follow from files: as they are stored with the job.
    splits: BTreeMap<JobVertexId, Vec<SourceSplit>>,
    /// Zero until this incarnation leads.
    token: FencingToken,
    phase: Phase,
    execution: ExecutionGraph,
    coordinators: BTreeMap<JobVertexId, SourceCoordinator>,
    tracker: PartitionTracker,
    slots: SlotPool,
    shuffle_master: ShuffleMaster,
    workers: Workers,
    snapshots: SnapshotPause,
    /// Finished vertices whose coordinators could not be recovered: all of one runs again, or nothing.
    unrecovered: BTreeSet<JobVertexId>,
    /// When the recovery stops waiting, for the event store or for partitions.
    recovery_until: Time,
    recording: Recording,
    disk: Pending<commit::Step>,
    restarts: RestartBackoff,
    /// No deployment before this time, when the pause of the last restart is over.
    restart_at: Option<Time>,
    /// A client asked for the job's end before this incarnation knew that it leads.
    cancel_asked: bool,
}

#[derive(Debug)]
enum Phase {
    /// Does not lead yet.
    Contending,
    /// Waits for the lists of files that sources want to read.
    EnumeratingSplits(Enumeration),
    /// Waits for the HA service to store the job.
    RecordingJob,
    /// Waits for the event store to be read and opened, at most as long as for partitions.
    OpeningStore,
    /// Waits for the partitions that the log says exist.
    Reconciling,
    /// Waits until what recovery decided is durable; then runs.
    LoggingRecovery {
        sequence: u64,
    },
    Running,
    /// All tasks are finished: waits for the decision in the job result store.
    DecidingCommit {
        decision: CommitDecision,
    },
    /// Makes the decided list visible.
    Committing(Commit),
    /// The job's end goes into the job result store.
    RecordingResult {
        outcome: JobOutcome,
    },
    /// The end is durable: waits until no task runs any more that could write.
    StoppingTasks {
        outcome: JobOutcome,
    },
    /// What sinks left uncommitted is deleted.
    CleaningUp {
        outcome: JobOutcome,
        leftovers: Leftovers,
    },
    Done {
        outcome: JobOutcome,
    },
}

impl JobMaster {
    /// The job's graph comes from `program`; the error says why it cannot be built or run.
    pub fn new(boot: &Boot, program: &Program) -> Result<Self, String> {
        let job = boot.config.job.as_ref().ok_or("no job was named for this JobManager")?;
        let graph = program.build(job).map_err(|error| error.to_string())?;
        let config = graph.configured(&boot.config).into_owned();
        let boot = &Boot { config, ..boot.clone() };
        submission::check(&boot.config, &graph, &boot.volumes)?;
        let record = JobRecord {
            name: job.name.clone(),
            arguments: job.arguments.clone(),
            fingerprint: graph.fingerprint,
        };
        Ok(Self::with_graph(boot, record, graph))
    }

    fn with_graph(boot: &Boot, record: JobRecord, graph: Arc<JobGraph>) -> Self {
        Self {
            boot: boot.clone(),
            record: Arc::new(record),
            splits: BTreeMap::new(),
            token: FencingToken::default(),
            phase: Phase::Contending,
            execution: ExecutionGraph::new(graph),
            coordinators: BTreeMap::new(),
            tracker: PartitionTracker::default(),
            slots: SlotPool::default(),
            shuffle_master: ShuffleMaster::new(boot.config.shuffle_service),
            workers: Workers::default(),
            snapshots: SnapshotPause::default(),
            unrecovered: BTreeSet::new(),
            recovery_until: Time(0),
            recording: Recording::default(),
            disk: Pending::default(),
            restarts: RestartBackoff::new(&boot.config, FencingToken::default()),
            restart_at: None,
            cancel_asked: false,
        }
    }

    /// The writer of this process's job event store.
    const fn writer(&self) -> Address {
        Address::writer(self.boot.process)
    }

    fn is_planted(&self, bug: PlantedBug) -> bool {
        is_planted(&self.boot.config, bug)
    }

    fn status(&self) -> JobStatus {
        match &self.phase {
            Phase::Contending | Phase::EnumeratingSplits(_) | Phase::RecordingJob | Phase::OpeningStore => {
                JobStatus::Created
            }
            Phase::Reconciling | Phase::LoggingRecovery { .. } => JobStatus::Reconciling,
            Phase::Running if self.restart_at.is_some() => JobStatus::Restarting,
            Phase::Running => JobStatus::Running,
            Phase::DecidingCommit { .. } | Phase::Committing(_) => JobStatus::Committing,
            Phase::RecordingResult { outcome: JobOutcome::Finished { .. } } => JobStatus::Committing,
            Phase::RecordingResult { outcome }
            | Phase::StoppingTasks { outcome }
            | Phase::CleaningUp { outcome, .. }
            | Phase::Done { outcome } => match outcome {
                JobOutcome::Finished { .. } => JobStatus::Finished,
                JobOutcome::Failed { .. } => JobStatus::Failed,
                JobOutcome::Canceled => JobStatus::Canceled,
            },
        }
    }

    fn enter(&mut self, phase: Phase, out: &mut Outbox) {
        self.change(out, |master| master.phase = phase);
    }

    /// Makes a change that may be one of the job's status.
    fn change(&mut self, out: &mut Outbox, change: impl FnOnce(&mut Self)) {
        let before = self.status();
        change(self);
        let status = self.status();
        if status != before {
            out.note(Note::JobStatusChanged { token: self.token, status });
        }
    }

    fn message(&mut self, now: Time, from: Address, message: Message, out: &mut Outbox) {
        match from.actor {
            ActorId::HighAvailability => self.high_availability_said(now, message, out),
            ActorId::Writer if from == self.writer() => self.writer_said(now, message, out),
            _ => self.worker_said(now, from, message, out),
        }
    }

    fn high_availability_said(&mut self, now: Time, message: Message, out: &mut Outbox) {
        match message {
            Message::LeadershipGranted(message) => self.granted(now, message, out),
            Message::LeadershipRevoked(message) if message.token == self.token => self.lost_leadership(out),
            Message::Fenced(message) if message.token == self.token => self.lost_leadership(out),
            Message::JobRecorded(message) if message.token == self.token => self.job_recorded(now, out),
            Message::CommitDecided(message) if message.token == self.token => {
                self.commit_decided(message.decision, out);
            }
            Message::JobResultRecorded(message) if message.token == self.token => {
                self.result_recorded(message.outcome, out);
            }
            _ => {}
        }
    }

    fn writer_said(&mut self, now: Time, message: Message, out: &mut Outbox) {
        match message {
            Message::JobEventStoreOpened(message) if message.token == self.token => {
                if matches!(self.phase, Phase::OpeningStore) {
                    self.recording.begin();
                    self.store_opened(now, &message.replay, out);
                } else {
                    self.store_recovered(now, out);
                }
            }
            Message::JobEventStoreFailed(message) if message.token == self.token => {
                self.store_failed(now, &message.failure, out);
            }
            Message::JobEventStoreRecovered(message) if message.token == self.token => {
                self.store_recovered(now, out);
            }
            Message::Fenced(message) if message.token == self.token => {
                self.fenced_by_log(message.current, out);
            }
            Message::JobEventsCleared(_) if matches!(self.phase, Phase::Done { .. }) => {
                out.exit(ExitStatus::Success);
            }
            Message::JobEventsDurable(message) if message.token == self.token => {
                self.events_durable(now, message.sequence, out);
            }
            _ => {}
        }
    }

    fn worker_said(&mut self, now: Time, from: Address, message: Message, out: &mut Outbox) {
        match message {
            Message::RegisterTaskManager(message) if message.process == from.process => {
                self.register(now, &message, out);
            }
            Message::PartitionReport(message) => self.partition_report(now, from, message, out),
            Message::UpdateTaskExecutionState(message) => self.task_state(now, from, message, out),
            Message::HeartbeatResponse(message) => self.heartbeat_response(now, from, &message, out),
            Message::RequestSplit(message) => self.split_requested(now, from, &message, out),
            Message::CancelJob(_) if from.actor == ActorId::Client => self.cancel(out),
            Message::RequestJobStatus(_) => self.report_status(from, out),
            _ => {}
        }
    }

    fn report_status(&self, to: Address, out: &mut Outbox) {
        let (finished, running, total) = self.execution.progress();
        let recording = self.recording.status();
        out.send(to, JobStatusReport { status: self.status(), total, finished, running, recording });
    }
}

impl Actor for JobMaster {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => self.contend(now, out),
            Event::Message { from, message } => self.message(now, from, message, out),
            Event::Timer(CONTEND) => self.contend(now, out),
            Event::Timer(RENEW_LEASE) => self.renew_lease(now, out),
            Event::Timer(HEARTBEAT) => self.heartbeat(now, out),
            Event::Timer(ASK_AGAIN) => self.ask_again(now, out),
            Event::Timer(RECOVERY_TIMEOUT) => self.recovery_timed_out(now, out),
            Event::Timer(RESTART) => {
                self.change(out, |master| master.restart_at = None);
                self.schedule(out);
            }
            Event::Timer(_) => {}
            Event::Disk { op, result } => self.disk_completed(op, result, out),
        }
    }

    fn contradiction(&self) -> Option<String> {
        self.state_contradicts()
    }
}
