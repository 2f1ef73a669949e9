//! Traces made by hand for the oracles' tests: a job of two vertices, `Source` (4 splits, 2
//! subtasks) and by hash `Sink` (2 subtasks), told step by step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use revenant::actor::{Purpose, Time};
use revenant::coordinator::SplitEnumeratorFactory;
use revenant::disk::Volume;
use revenant::graph::{Determinacy, JobEdge, JobGraph, JobVertex, Partitioner};
use revenant::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use revenant::job_event::{AcceptedFile, Finish, JobEvent, record};
use revenant::message::{CommitDecision, IndexRange, IoMetrics, JobOutcome, JobStatus, SourceSplit};
use revenant::note::Note;
use revenant::task::{TaskBody, TaskBodyFactory, TaskContext};

use super::log::Inputs;
use super::{History, Patience, Violation};
use crate::reference::{Reference, ReferenceJob, Shape, Witness, in_order};
use crate::scenario::{DiskFault, DiskFaultKind, Profile};
use crate::trace::{RunDetail, RunEnd, RunOutcome, TraceEvent, TraceKind};

pub const SPLITS: u32 = 4;

/// Subtask `subtask` of vertex `vertex`, by the leader `epoch`.
pub fn attempt(vertex: u32, subtask: u32, epoch: u64, number: u32) -> ExecutionAttemptId {
    let subtask = ExecutionVertexId::new(JobVertexId(vertex), subtask);
    ExecutionAttemptId { subtask, epoch: FencingToken(epoch), number }
}

pub fn partition(producer: ExecutionAttemptId) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(0), producer }
}

/// The record of a finish.
pub fn finished(attempt: ExecutionAttemptId) -> JobEvent {
    let finish = Finish {
        attempt,
        location: worker_of(attempt),
        partitions: vec![],
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    };
    let snapshot = (JobVertexId(0), Bytes::new());
    JobEvent::ExecutionVertexFinished { finish, coordinators: vec![snapshot] }
}

/// The record of a finish without a snapshot.
pub fn finished_without_snapshot(attempt: ExecutionAttemptId) -> JobEvent {
    let JobEvent::ExecutionVertexFinished { finish, .. } = finished(attempt) else { unreachable!() };
    JobEvent::ExecutionVertexFinished { finish, coordinators: vec![] }
}

fn worker_of(attempt: ExecutionAttemptId) -> ProcessId {
    ProcessId::TaskManager(attempt.subtask.subtask + 1)
}

/// The files of an epoch.
#[derive(Clone, Default)]
struct StoryLog {
    files: Vec<Vec<u8>>,
    next_sequence: u64,
}

#[derive(Clone)]
pub struct Story {
    outcome: RunOutcome,
    /// By epoch: what was written to it.
    logs: BTreeMap<u64, StoryLog>,
    sources: [ExecutionAttemptId; 2],
    restarted: Vec<u32>,
    determinacy: Determinacy,
    token: u64,
    /// Nanoseconds.
    waited: u64,
}

impl Story {
    pub fn new() -> Self {
        Self {
            outcome: RunOutcome {
                trace: vec![],
                hash: 0,
                events: 0,
                messages: 0,
                end: Time(0),
                ended: RunEnd::Finished,
                output: BTreeMap::new(),
                leftovers: vec![],
                foreign: vec![],
                vacuous: vec![],
                idle_rates: vec![],
                probes: BTreeMap::new(),
                detail: RunDetail::default(),
            },
            logs: BTreeMap::new(),
            sources: [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)],
            restarted: vec![],
            determinacy: Determinacy::Indeterminate,
            token: 0,
            waited: 0,
        }
    }

    /// As [`Self::new`], of vertices that always have the same result.
    pub fn determinate() -> Self {
        Self { determinacy: Determinacy::Determinate, ..Self::new() }
    }

    pub fn trace(&self) -> &[TraceEvent] {
        &self.outcome.trace
    }

    fn push(&mut self, process: ProcessId, what: TraceKind) -> &mut Self {
        let time = Time(self.outcome.trace.len() as u64 * 1_000_000 + self.waited);
        let incarnation = match process {
            ProcessId::TaskManager(n) if self.restarted.contains(&n) => 2,
            _ => 1,
        };
        self.outcome.trace.push(TraceEvent { time, process, incarnation, actor: None, what });
        self.outcome.end = time;
        self
    }

    /// Something else happens to a process.
    pub fn happens(&mut self, process: ProcessId, what: TraceKind) -> &mut Self {
        self.push(process, what)
    }

    /// So many seconds pass.
    pub fn wait(&mut self, seconds: u64) -> &mut Self {
        self.waited += seconds * 1_000_000_000;
        self
    }

    /// The last event happened at the moment of the one before it.
    pub fn in_the_same_instant(&mut self) -> &mut Self {
        if let [.., before, last] = &mut self.outcome.trace[..] {
            last.time = before.time;
        }
        self
    }

    /// The TaskManager loses its leader.
    pub fn abandon(&mut self, worker: u32) -> &mut Self {
        let note = Note::JobManagerLost { token: FencingToken(self.token) };
        self.push(ProcessId::TaskManager(worker), TraceKind::Note(note))
    }

    pub fn note(&mut self, note: Note) -> &mut Self {
        self.push(ProcessId::JOB_MANAGER, TraceKind::Note(note))
    }

    /// A leader comes and writes the first record of its epoch.
    pub fn lead(&mut self, token: u64) -> &mut Self {
        self.token = token;
        self.note(Note::LeadershipAcquired { token: FencingToken(token) });
        let accepted = self.logs.iter().flat_map(|(&epoch, log)| {
            (0..).zip(&log.files).map(move |(index, bytes)| AcceptedFile {
                epoch: FencingToken(epoch),
                index,
                length: bytes.len() as u64,
            })
        });
        let accepted = accepted.collect();
        self.next_file(token);
        self.log(token, JobEvent::EpochStarted { token: FencingToken(token), fingerprint: 1, accepted })
    }

    /// The epoch's log goes on in another file.
    pub fn next_file(&mut self, epoch: u64) -> &mut Self {
        self.logs.entry(epoch).or_default().files.push(Vec::new());
        self.append(epoch, Bytes::copy_from_slice(&record::header()));
        self
    }

    /// The newest file of an epoch.
    fn path(&self, epoch: u64) -> String {
        format!("default/job-events/events.{epoch}.{}", self.logs[&epoch].files.len() - 1)
    }

    fn append(&mut self, epoch: u64, bytes: Bytes) {
        let path = self.path(epoch);
        if let Some(file) = self.logs.get_mut(&epoch).and_then(|log| log.files.last_mut()) {
            file.extend_from_slice(&bytes);
        }
        self.push(ProcessId::JOB_MANAGER, TraceKind::LogAppended { volume: Volume::Ha, path, bytes });
    }

    pub fn unsynced(&mut self, epoch: u64, event: JobEvent) -> &mut Self {
        let mut bytes = Vec::new();
        let log = self.logs.entry(epoch).or_default();
        record::write_record(&mut bytes, log.next_sequence, FencingToken(epoch), &event);
        log.next_sequence += 1;
        self.append(epoch, bytes.into());
        self
    }

    pub fn log(&mut self, epoch: u64, event: JobEvent) -> &mut Self {
        self.unsynced(epoch, event).sync(epoch)
    }

    pub fn log_length(&self, epoch: u64) -> u64 {
        self.logs[&epoch].files.last().map_or(0, Vec::len) as u64
    }

    pub fn sync(&mut self, epoch: u64) -> &mut Self {
        let path = self.path(epoch);
        let length = self.log_length(epoch);
        self.push(ProcessId::JOB_MANAGER, TraceKind::LogSynced { volume: Volume::Ha, path, length })
    }

    /// A bit of the newest file is flipped.
    pub fn corrupt(&mut self, epoch: u64, offset: u64) -> &mut Self {
        let path = self.path(epoch);
        self.push(ProcessId::JOB_MANAGER, TraceKind::LogCorrupted { volume: Volume::Ha, path, offset })
    }

    /// The disk does not work from now on.
    pub fn disk_fails(&mut self) -> &mut Self {
        let fault = DiskFault { purpose: Purpose::JobEvent, process: None, kind: DiskFaultKind::Fail };
        self.push(ProcessId::JOB_MANAGER, TraceKind::DiskFault(fault))
    }

    /// A leader that comes and reads nothing.
    pub fn lead_blindly(&mut self, token: u64) -> &mut Self {
        self.token = token;
        self.note(Note::LeadershipAcquired { token: FencingToken(token) })
    }

    pub fn after_crash(&mut self, epoch: u64, length: u64) -> &mut Self {
        let path = self.path(epoch);
        self.push(ProcessId::JOB_MANAGER, TraceKind::LogAfterCrash { volume: Volume::Ha, path, length })
    }

    pub fn crash(&mut self) -> &mut Self {
        self.push(ProcessId::JOB_MANAGER, TraceKind::Crashed { point: None, machine: false })
    }

    /// A shuffle service keeps the partition.
    pub fn keep_at_service(&mut self, partition: ResultPartitionId) -> &mut Self {
        let note = Note::PartitionFinished { partition, bytes: 1 };
        self.push(ProcessId::ShuffleService(1), TraceKind::Note(note))
    }

    pub fn crash_service(&mut self) -> &mut Self {
        self.push(ProcessId::ShuffleService(1), TraceKind::Crashed { point: None, machine: false })
    }

    /// The JobMaster is told to cancel the job.
    pub fn cancel(&mut self) -> &mut Self {
        self.push(ProcessId::JOB_MANAGER, TraceKind::CancelReached)
    }

    pub fn exit(&mut self, failure: Option<&str>) -> &mut Self {
        self.push(ProcessId::JOB_MANAGER, TraceKind::Exited { failure: failure.map(str::to_owned) })
    }

    /// A TaskManager crashes and comes back.
    pub fn crash_worker(&mut self, n: u32) -> &mut Self {
        let process = ProcessId::TaskManager(n);
        self.push(process, TraceKind::Crashed { point: None, machine: false });
        self.restarted.push(n);
        self.push(process, TraceKind::Started)
    }

    /// A first leader, sources initialized.
    pub fn start(&mut self) -> &mut Self {
        self.lead(1).init(1, 0, 2, vec![vec![], vec![]])
    }

    pub fn init(&mut self, token: u64, vertex: u32, parallelism: u32, inputs: Inputs) -> &mut Self {
        let token = FencingToken(token);
        self.note(Note::VertexInitialized { token, vertex: JobVertexId(vertex), parallelism, inputs })
    }

    pub fn sink_ranges() -> Inputs {
        let all = IndexRange::new(0, 1);
        vec![vec![(all, IndexRange::new(0, 1))], vec![(all, IndexRange::new(2, 3))]]
    }

    pub fn init_sinks(&mut self) -> &mut Self {
        self.init_sinks_under(1)
    }

    pub fn init_sinks_under(&mut self, token: u64) -> &mut Self {
        let ranges = Self::sink_ranges();
        self.init(token, 1, 2, ranges)
    }

    /// The decision about the vertex becomes durable.
    pub fn log_init(&mut self, epoch: u64, vertex: u32) -> &mut Self {
        let inputs = if vertex == 0 { vec![vec![], vec![]] } else { Self::sink_ranges() };
        let vertex = JobVertexId(vertex);
        self.log(epoch, JobEvent::ExecutionJobVertexInitialized { vertex, parallelism: 2, inputs })
    }

    pub fn deploy(&mut self, attempt: ExecutionAttemptId) -> &mut Self {
        self.note(Note::Deployed { attempt, location: worker_of(attempt) })
    }

    pub fn started(&mut self, worker: u32, attempt: ExecutionAttemptId) -> &mut Self {
        self.push(ProcessId::TaskManager(worker), TraceKind::Note(Note::TaskStarted { attempt }))
    }

    pub fn finish_source(&mut self, attempt: ExecutionAttemptId, splits: &[u32]) -> &mut Self {
        self.deploy(attempt).started(attempt.subtask.subtask + 1, attempt);
        for &split in splits {
            self.note(Note::SplitAssigned { attempt, split });
        }
        let done = Note::PartitionFinished { partition: partition(attempt), bytes: 1 };
        self.push(worker_of(attempt), TraceKind::Note(done));
        self.sources[attempt.subtask.subtask as usize] = attempt;
        self.note(Note::FinishAccepted { attempt, splits: splits.to_vec(), inputs: vec![] })
    }

    pub fn finish_sink(&mut self, attempt: ExecutionAttemptId) -> &mut Self {
        self.deploy(attempt).started(attempt.subtask.subtask + 1, attempt);
        let inputs = vec![self.sources.map(partition).to_vec()];
        self.note(Note::FinishAccepted { attempt, splits: vec![], inputs })
    }

    pub fn run_sources(&mut self) -> &mut Self {
        self.start();
        self.finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[2, 3])
    }

    /// Sinks are initialized and finish, the commit is decided.
    pub fn run_sinks(&mut self) -> &mut Self {
        let token = self.token;
        self.init_sinks_under(token)
            .finish_sink(attempt(1, 0, token, 1))
            .finish_sink(attempt(1, 1, token, 1));
        self.note(Note::CommitDecided { decision: CommitDecision::default() })
    }

    pub fn release(&mut self, worker: u32, partition: ResultPartitionId) -> &mut Self {
        self.push(ProcessId::TaskManager(worker), TraceKind::Note(Note::PartitionReleased { partition }))
    }

    /// A reset that is decided and durable.
    pub fn reset(&mut self, epoch: u64, subtask: ExecutionVertexId) -> &mut Self {
        self.note(Note::SubtaskReset { subtask });
        self.log(epoch, JobEvent::ExecutionVertexReset { subtasks: vec![subtask] })
    }

    pub fn recovered(&mut self, token: u64, kept: &[ExecutionAttemptId]) -> &mut Self {
        self.note(Note::Recovered { token: FencingToken(token), kept: kept.to_vec(), reset: vec![] })
    }

    pub fn output(&mut self, path: &str, bytes: &'static [u8]) -> &mut Self {
        self.outcome.output.insert(path.to_owned(), Bytes::from_static(bytes));
        self
    }

    /// As [`Self::new`], told to a good end: everything is recorded, committed and read.
    pub fn finished() -> Self {
        let mut story = Self::new();
        story.start().log_init(1, 0);
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).log(1, finished(attempt(0, 0, 1, 1)));
        story.finish_source(attempt(0, 1, 1, 1), &[2, 3]).log(1, finished(attempt(0, 1, 1, 1)));
        story.run_sinks_recorded().job_ended();
        story.output("part-0", b"0\n2\n").output("part-1", b"1\n3\n");
        story
    }

    /// As [`Self::run_sinks`], each durable before the next thing happens.
    pub fn run_sinks_recorded(&mut self) -> &mut Self {
        let token = self.token;
        self.init_sinks_under(token).log_init(token, 1);
        for subtask in [0, 1] {
            let attempt = attempt(1, subtask, token, 1);
            self.finish_sink(attempt).log(token, finished(attempt));
        }
        self.note(Note::CommitDecided { decision: CommitDecision::default() })
    }

    pub fn job_ended(&mut self) -> &mut Self {
        let accumulators = [].into();
        self.note(Note::JobEnded { outcome: JobOutcome::Finished { committed: 2, accumulators } })
    }

    pub fn delete_log(&mut self, epoch: u64) -> &mut Self {
        let path = self.path(epoch);
        self.push(ProcessId::JOB_MANAGER, TraceKind::LogDeleted { volume: Volume::Ha, path })
    }

    pub fn status(&mut self, token: u64, status: JobStatus) -> &mut Self {
        self.note(Note::JobStatusChanged { token: FencingToken(token), status })
    }

    /// The attempt's task says what it counted.
    pub fn counts(&mut self, attempt: ExecutionAttemptId, read: u64, emitted: u64) -> &mut Self {
        let metrics = IoMetrics { records_in: read, records_out: emitted, ..IoMetrics::default() };
        self.push(worker_of(attempt), TraceKind::Note(Note::TaskMetrics { attempt, metrics }))
    }

    /// These happen at one moment.
    pub fn at_once(&mut self, process: ProcessId, all: Vec<TraceKind>) -> &mut Self {
        let first = self.outcome.trace.len();
        for what in all {
            self.push(process, what);
        }
        let time = self.outcome.trace[first].time;
        for event in &mut self.outcome.trace[first..] {
            event.time = time;
        }
        self
    }

    /// A file of another cluster is not as it was.
    pub fn harm(&mut self, what: &str) -> &mut Self {
        self.outcome.foreign.push(what.to_owned());
        self
    }

    pub fn leave(&mut self, owner: Option<ProcessId>, volume: Volume, path: &str) -> &mut Self {
        self.outcome.leftovers.push((owner, volume, path.to_owned()));
        self
    }

    pub fn end(&mut self, ended: RunEnd) -> &mut Self {
        self.outcome.ended = ended;
        self
    }
}

struct Nothing;

impl TaskBodyFactory for Nothing {
    fn start(&self, _: TaskContext) -> TaskBody {
        Box::pin(async { Ok(()) })
    }
}

impl SplitEnumeratorFactory for Nothing {
    fn splits(&self) -> Vec<SourceSplit> {
        (0..SPLITS).map(|id| SourceSplit { id, payload: Bytes::new() }).collect()
    }
}

pub fn graph(determinacy: Determinacy) -> JobGraph {
    let data_set = IntermediateDataSetId(0);
    let vertex = |id: u32, name: &str, inputs: Vec<_>, outputs: Vec<_>, source: bool| JobVertex {
        id: JobVertexId(id),
        name: name.to_owned(),
        uids: vec![],
        parallelism: None,
        max_parallelism: Some(4),
        inputs,
        outputs,
        source: source.then(|| Arc::new(Nothing) as Arc<dyn SplitEnumeratorFactory>),
        determinacy,
        recovery_obstacles: vec![],
        body: Arc::new(Nothing),
    };
    let (producer, consumer) = (JobVertexId(0), JobVertexId(1));
    JobGraph {
        name: "story".to_owned(),
        options: vec![],
        vertices: vec![
            vertex(0, "Source", vec![], vec![data_set], true),
            vertex(1, "Sink", vec![data_set], vec![], false),
        ],
        edges: vec![JobEdge { data_set, producer, consumer, partitioner: Partitioner::Hash }],
        fingerprint: 1,
    }
}

/// Split `n` is the row `n`; even rows go to `part-0`, odd ones to `part-1`.
struct EvenAndOdd;

impl ReferenceJob for EvenAndOdd {
    fn outputs(&self, witness: &Witness) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let mut files = BTreeMap::from([("part-0".to_owned(), vec![]), ("part-1".to_owned(), vec![])]);
        for split in witness.vertices[0].splits.iter().flatten() {
            let file = files.get_mut(&format!("part-{}", split % 2)).ok_or("no file")?;
            file.extend_from_slice(format!("{split}\n").as_bytes());
        }
        Ok(files)
    }

    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        let rows = files.values().map(|bytes| bytes.split(|&byte| byte == b'\n').count() - 1).sum::<usize>();
        if rows == SPLITS as usize { Ok(()) } else { Err("rows are missing".to_owned()) }
    }

    fn in_order(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        in_order(files.iter(), |line| Some(line.to_owned()))
    }
}

pub fn test_reference() -> Reference {
    Reference::with_job(Shape::of(&graph(Determinacy::Indeterminate), 128), Box::new(EvenAndOdd))
}

pub fn with_history<T>(story: &Story, look: impl FnOnce(&History) -> T) -> T {
    with_history_of(&graph(story.determinacy), story, look)
}

/// The story as one of another graph with two vertices.
pub fn with_history_of<T>(graph: &JobGraph, story: &Story, look: impl FnOnce(&History) -> T) -> T {
    let shape = Shape::of(graph, 128);
    let patience = Patience {
        recovery: Duration::from_secs(30),
        retention: Duration::from_mins(5),
        round_trip: Duration::from_millis(4),
        recovers: true,
        store: Duration::from_secs(30),
        silence: Duration::from_secs(40),
        slow_store: false,
        services: false,
        waits: Duration::from_mins(2),
        calm: Duration::from_secs(1),
        task_managers: 2,
        profile: Profile::Recoverable,
    };
    look(&History::new(graph, &shape, patience, &story.outcome))
}

pub fn passes(check: fn(&History) -> Result<(), Violation>, story: &Story) {
    with_history(story, |history| check(history).unwrap_or_else(|violation| panic!("{violation}")));
}

pub fn caught(check: fn(&History) -> Result<(), Violation>, story: &Story, message: &str) {
    with_history(story, |history| {
        let violation = check(history).expect_err("the oracle sees nothing");
        assert!(violation.message.contains(message), "{violation}");
    });
}
