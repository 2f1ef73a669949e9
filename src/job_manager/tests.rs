//! The JobMaster called by hand. The job is a source of two splits, read by a sink of two subtasks
//! over a hash exchange; there are two TaskManagers of one slot.

mod adaptive;
mod cancel;
mod commit;
mod consistency;
mod coordinators;
mod enumeration;
mod failures;
mod late_workers;
mod recovery;
mod running;
mod shuffle;
mod store;

use bytes::Bytes;

use super::*;
use crate::actor::{DiskOpId, Effect, ExitStatus};
use crate::config::{Configuration, ShuffleServiceKind};
use crate::coordinator::{SplitAssignment, SplitEnumeratorFactory};
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput, DiskResult};
use crate::graph::{Determinacy, JobEdge, JobVertex, Partitioner};
use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, IntermediateDataSetId, ProcessId, ResultPartitionId, SessionId,
};
use crate::job_event::{Finish, JobEvent, Replay};
use crate::message::{
    CommitDecided, CommitDecision, Committable, HeartbeatResponse, IndexRange, IoMetrics, JobOutcome,
    JobResult, JobResultRecorded, LeadershipGranted, PartitionReport, PartitionWithMetrics, RecordedJob,
    RegisterTaskManager, RequestSplit, SourceSplit, TaskFailure, TaskState, UpdateTaskExecutionState,
};
use crate::task::{TaskBody, TaskBodyFactory, TaskContext};

const SOURCE: JobVertexId = JobVertexId(0);
const SINK: JobVertexId = JobVertexId(1);
const EXCHANGE: IntermediateDataSetId = IntermediateDataSetId(0);
const TM1: ProcessId = ProcessId::TaskManager(1);
const TM2: ProcessId = ProcessId::TaskManager(2);
const OLD: FencingToken = FencingToken(6);
const NOW: FencingToken = FencingToken(7);

struct Nothing;

impl TaskBodyFactory for Nothing {
    fn start(&self, _context: TaskContext) -> TaskBody {
        Box::pin(async { Ok(()) })
    }
}

struct TwoSplits;

impl SplitEnumeratorFactory for TwoSplits {
    fn splits(&self) -> Vec<SourceSplit> {
        (0..2).map(|id| SourceSplit { id, payload: Bytes::new() }).collect()
    }
}

/// The same splits, with another enumerator.
struct OtherKind(SplitAssignment, bool);

impl SplitEnumeratorFactory for OtherKind {
    fn splits(&self) -> Vec<SourceSplit> {
        TwoSplits.splits()
    }

    fn assignment(&self) -> SplitAssignment {
        self.0
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.1
    }
}

fn graph(source: Arc<dyn SplitEnumeratorFactory>) -> Arc<JobGraph> {
    graph_of(source, Determinacy::Indeterminate)
}

fn graph_of(source: Arc<dyn SplitEnumeratorFactory>, determinacy: Determinacy) -> Arc<JobGraph> {
    let vertex = |id, source: Option<Arc<dyn SplitEnumeratorFactory>>, inputs, outputs| JobVertex {
        id,
        name: format!("{id}"),
        parallelism: Some(2),
        max_parallelism: None,
        inputs,
        outputs,
        source,
        uids: vec![],
        determinacy,
        recovery_obstacles: vec![],
        body: Arc::new(Nothing),
    };
    Arc::new(JobGraph {
        name: "two".to_owned(),
        options: vec![],
        vertices: vec![
            vertex(SOURCE, Some(source), vec![], vec![EXCHANGE]),
            vertex(SINK, None, vec![EXCHANGE], vec![]),
        ],
        edges: vec![JobEdge {
            data_set: EXCHANGE,
            producer: SOURCE,
            consumer: SINK,
            partitioner: Partitioner::Hash,
        }],
        fingerprint: 1,
    })
}

fn attempt(vertex: JobVertexId, subtask: u32, epoch: FencingToken) -> ExecutionAttemptId {
    ExecutionAttemptId { subtask: ExecutionVertexId::new(vertex, subtask), epoch, number: 1 }
}

fn partition(producer: ExecutionAttemptId) -> PartitionWithMetrics {
    let partition = ResultPartitionId { data_set: EXCHANGE, producer };
    PartitionWithMetrics { partition, subpartition_bytes: vec![10, 10] }
}

fn registration(process: ProcessId, session: SessionId) -> RegisterTaskManager {
    RegisterTaskManager {
        token: NOW,
        process,
        session,
        slots: 1,
        retains: true,
        holds: false,
        shuffle_service: ShuffleServiceKind::TaskManager,
    }
}

fn decision(committables: Vec<Committable>) -> CommitDecision {
    CommitDecision { committables, accumulators: [].into() }
}

fn committable(attempt: ExecutionAttemptId) -> Committable {
    Committable { pending: format!(".pending/{attempt}"), target: format!("out/{}", attempt.subtask.subtask) }
}

struct Fixture {
    master: JobMaster,
    now: Time,
    /// Effects since the last `take`.
    effects: Vec<Effect>,
}

impl Fixture {
    fn new(options: &[(&str, &str)]) -> Self {
        Self::with_source(options, Arc::new(TwoSplits))
    }

    fn with_source(options: &[(&str, &str)], source: Arc<dyn SplitEnumeratorFactory>) -> Self {
        Self::with_graph(options, graph(source))
    }

    fn of(determinacy: Determinacy, options: &[(&str, &str)]) -> Self {
        Self::with_graph(options, graph_of(Arc::new(TwoSplits), determinacy))
    }

    fn with_graph(options: &[(&str, &str)], graph: Arc<JobGraph>) -> Self {
        let mut config = Configuration::default();
        config.set("execution.batch.job-recovery.enabled", "true").unwrap();
        for (key, value) in options {
            config.set(key, value).unwrap();
        }
        let boot = Boot { process: ProcessId::JOB_MANAGER, session: SessionId(3), config, volumes: vec![] };
        let record = JobRecord { name: "two".to_owned(), arguments: vec![], fingerprint: 1 };
        let master = JobMaster::with_graph(&boot, record, graph);
        Self { master, now: Time(0), effects: Vec::new() }
    }

    fn event(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.master.handle(self.now, event, &mut out);
        assert_eq!(self.master.contradiction(), None);
        self.effects.extend(out.take());
    }

    fn tell(&mut self, from: Address, message: impl Into<Message>) {
        self.event(Event::Message { from, message: message.into() });
    }

    fn sent<T>(&self, pick: impl Fn(Address, &Message) -> Option<T>) -> Vec<T> {
        let sent = self.effects.iter().filter_map(|effect| match effect {
            Effect::Send { to, message } => pick(*to, message),
            _ => None,
        });
        sent.collect()
    }

    /// Attempts that were sent to TaskManagers.
    fn submitted(&self) -> Vec<ExecutionAttemptId> {
        self.sent(|_, message| match message {
            Message::SubmitTask(message) => Some(message.task.attempt),
            _ => None,
        })
    }

    fn released(&self) -> Vec<ResultPartitionId> {
        let released = self.sent(|_, message| match message {
            Message::ReleasePartitions(message) => Some(message.partitions.clone()),
            _ => None,
        });
        released.concat()
    }

    fn recorded(&self) -> Vec<JobEvent> {
        self.sent(|_, message| match message {
            Message::WriteJobEvent(message) => Some(JobEvent::clone(&message.event)),
            _ => None,
        })
    }

    /// What was asked to be recorded as the job's end.
    fn outcomes(&self) -> Vec<JobOutcome> {
        self.sent(|_, message| match message {
            Message::RecordJobResult(message) => Some(message.outcome.clone()),
            _ => None,
        })
    }

    fn cancelled(&self) -> Vec<ExecutionAttemptId> {
        self.sent(|_, message| match message {
            Message::CancelTask(message) => Some(message.attempt),
            _ => None,
        })
    }

    fn fail(&mut self, attempt: ExecutionAttemptId, missing: Option<ResultPartitionId>) {
        let failure = TaskFailure { message: "boom".to_owned(), missing };
        self.state(attempt, TaskState::Failed(failure));
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.sent(|_, message| Some(message.kind()))
    }

    /// What an earlier leader of this job stored.
    fn recorded_job(&self) -> RecordedJob {
        RecordedJob { record: JobRecord::clone(&self.master.record), splits: BTreeMap::new() }
    }

    fn grant(&mut self, job: bool, result: Option<JobResult>) {
        let job = job.then(|| self.recorded_job());
        let granted = LeadershipGranted { token: NOW, session: SessionId(3), job, result };
        self.tell(Address::HIGH_AVAILABILITY, granted);
    }

    /// Leads with what an earlier leader recorded.
    fn lead(&mut self, events: Vec<JobEvent>) {
        self.event(Event::Start);
        self.grant(true, None);
        assert!(self.kinds().contains(&"OpenJobEventStore"));
        let replay = Arc::new(Replay { events, damage: None });
        self.tell(Address::WRITER, crate::message::JobEventStoreOpened { token: NOW, replay });
    }

    fn register(&mut self, process: ProcessId, session: u64, kept: Vec<PartitionWithMetrics>) {
        let session = SessionId(session);
        let executor = Address::executor(process);
        self.tell(executor, registration(process, session));
        self.tell(executor, PartitionReport { token: NOW, session, partitions: kept });
    }

    fn state(&mut self, attempt: ExecutionAttemptId, state: TaskState) {
        let location = self.master.execution.deployed_at(attempt).expect("the attempt runs");
        let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt, state };
        self.tell(Address::executor(location), message);
    }

    fn finish(&mut self, attempt: ExecutionAttemptId) {
        let is_source = attempt.subtask.vertex == SOURCE;
        let partitions = if is_source { vec![partition(attempt)] } else { vec![] };
        let committables = if is_source { vec![] } else { vec![committable(attempt)] };
        self.state(
            attempt,
            TaskState::Finished {
                partitions,
                committables,
                metrics: IoMetrics::default(),
                accumulators: [].into(),
            },
        );
    }

    fn durable(&mut self) {
        let written = self.sent(|_, message| match message {
            Message::WriteJobEvent(message) => Some(message.sequence),
            _ => None,
        });
        let sequence = written.into_iter().max().unwrap();
        self.tell(Address::WRITER, crate::message::JobEventsDurable { token: NOW, sequence });
    }

    /// Everything from the start until both sources are finished and the sinks run.
    fn run_until_sinks(&mut self) {
        self.lead(vec![]);
        self.register(TM1, 1, vec![]);
        self.register(TM2, 2, vec![]);
        self.finish(attempt(SOURCE, 0, NOW));
        self.finish(attempt(SOURCE, 1, NOW));
    }
}

fn initialized(vertex: JobVertexId) -> JobEvent {
    let input = |subtask| (IndexRange::new(0, 1), IndexRange::new(subtask, subtask));
    let inputs = |subtask| if vertex == SINK { vec![input(subtask)] } else { vec![] };
    JobEvent::ExecutionJobVertexInitialized { vertex, parallelism: 2, inputs: vec![inputs(0), inputs(1)] }
}

/// A finish that an earlier leader recorded; a source's subtask `i` consumed split `i`.
fn finished(vertex: JobVertexId, subtask: u32) -> JobEvent {
    let attempt = attempt(vertex, subtask, OLD);
    let mut coordinator = SourceCoordinator::new(&TwoSplits);
    for subtask in 0..=subtask {
        coordinator.next_split(subtask);
    }
    let finish = Finish {
        attempt,
        location: TM1,
        partitions: if vertex == SOURCE { vec![partition(attempt)] } else { vec![] },
        committables: if vertex == SINK { vec![committable(attempt)] } else { vec![] },
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    let snapshot = (vertex == SOURCE).then(|| (SOURCE, coordinator.checkpoint_coordinator().unwrap()));
    JobEvent::ExecutionVertexFinished { finish, coordinators: snapshot.into_iter().collect() }
}

fn sources_finished() -> Vec<JobEvent> {
    vec![initialized(SOURCE), finished(SOURCE, 0), finished(SOURCE, 1)]
}

/// Carries the commit's disk operations out on an output volume that holds `files`.
fn carry_out(fixture: &mut Fixture, files: &mut Vec<String>) {
    while let Some(at) = fixture.effects.iter().position(|effect| matches!(effect, Effect::Disk { .. })) {
        let Effect::Disk { op, action, .. } = fixture.effects.remove(at) else { unreachable!() };
        let result = perform(action, files);
        fixture.event(Event::Disk { op, result });
    }
}

fn perform(action: DiskOp, files: &mut Vec<String>) -> DiskResult {
    let exists = |path: &String, files: &Vec<String>| {
        files.contains(path).then_some(DiskOutput::Done).ok_or(crate::disk::DiskError {
            kind: crate::disk::DiskErrorKind::NotFound,
            operation: String::new(),
            volume: crate::disk::Volume::Output,
            path: path.clone(),
            message: String::new(),
        })
    };
    match action {
        DiskOp::List { path } => {
            let entry = |path: &String| DirectoryEntry { path: path.clone(), length: 0 };
            Ok(DiskOutput::Entries(files.iter().filter(|file| file.starts_with(&path)).map(entry).collect()))
        }
        DiskOp::Rename { from, to } => {
            let done = exists(&from, files)?;
            files.retain(|file| *file != from);
            files.push(to);
            Ok(done)
        }
        DiskOp::ReadRange { path, .. } => exists(&path, files),
        DiskOp::Delete { path } => {
            files.retain(|file| *file != path);
            Ok(DiskOutput::Done)
        }
        _ => Ok(DiskOutput::Done),
    }
}
