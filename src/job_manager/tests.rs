//! The JobMaster called by hand. The job is a source of two splits, read by a sink of two subtasks
//! over a hash exchange; there are two TaskManagers of one slot.

use bytes::Bytes;

use super::*;
use crate::actor::{DiskOpId, Effect, ExitStatus};
use crate::config::Configuration;
use crate::coordinator::SplitEnumeratorFactory;
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput, DiskResult};
use crate::graph::{JobEdge, JobVertex, Partitioner};
use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, IntermediateDataSetId, ProcessId, ResultPartitionId, SessionId,
};
use crate::job_event::{JobEvent, Replay};
use crate::message::{
    CommitDecided, Committable, HeartbeatResponse, IndexRange, IoMetrics, JobOutcome, JobResult,
    JobResultRecorded, LeadershipGranted, PartitionReport, PartitionWithMetrics, RegisterTaskManager,
    RequestSplit, SourceSplit, TaskFailure, TaskState, UpdateTaskExecutionState,
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

fn graph() -> Arc<JobGraph> {
    let vertex = |id, source: Option<Arc<dyn SplitEnumeratorFactory>>, inputs, outputs| JobVertex {
        id,
        name: format!("{id}"),
        parallelism: Some(2),
        max_parallelism: None,
        inputs,
        outputs,
        source,
        body: Arc::new(Nothing),
    };
    Arc::new(JobGraph {
        name: "two".to_owned(),
        vertices: vec![
            vertex(SOURCE, Some(Arc::new(TwoSplits)), vec![], vec![EXCHANGE]),
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

fn committable(attempt: ExecutionAttemptId) -> Committable {
    Committable { pending: format!(".pending/{attempt}"), target: format!("out/{}", attempt.subtask.subtask) }
}

struct Fixture {
    master: JobMaster,
    /// Effects since the last `take`.
    effects: Vec<Effect>,
}

impl Fixture {
    fn new(options: &[(&str, &str)]) -> Self {
        let mut config = Configuration::default();
        config.set("execution.batch.job-recovery.enabled", "true").unwrap();
        for (key, value) in options {
            config.set(key, value).unwrap();
        }
        let boot = Boot { process: ProcessId::JobManager, session: SessionId(3), config, volumes: vec![] };
        let record = JobRecord { name: "two".to_owned(), arguments: vec![], fingerprint: 1 };
        Self { master: JobMaster::with_graph(&boot, record, graph()), effects: Vec::new() }
    }

    fn event(&mut self, event: Event) {
        let mut out = Outbox::new();
        self.master.handle(Time(0), event, &mut out);
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

    fn kinds(&self) -> Vec<&'static str> {
        self.sent(|_, message| Some(message.kind()))
    }

    fn grant(&mut self, job: bool, result: Option<JobResult>) {
        let job = job.then(|| JobRecord::clone(&self.master.record));
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
        self.tell(executor, RegisterTaskManager { token: NOW, process, session, slots: 1 });
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
        self.state(attempt, TaskState::Finished { partitions, committables, metrics: IoMetrics::default() });
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
    JobEvent::ExecutionVertexFinished {
        attempt,
        location: TM1,
        partitions: if vertex == SOURCE { vec![partition(attempt)] } else { vec![] },
        committables: if vertex == SINK { vec![committable(attempt)] } else { vec![] },
        metrics: IoMetrics::default(),
        coordinator: (vertex == SOURCE).then(|| coordinator.checkpoint()),
    }
}

fn sources_finished() -> Vec<JobEvent> {
    vec![initialized(SOURCE), finished(SOURCE, 0), finished(SOURCE, 1)]
}

#[test]
fn a_new_job_is_stored_before_it_runs_and_its_sources_go_to_the_first_slots() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(false, None);
    assert_eq!(fixture.kinds(), ["Contend", "RecordJob"]);
    fixture.tell(Address::HIGH_AVAILABILITY, crate::message::JobRecorded { token: NOW });
    let replay = Arc::default();
    fixture.tell(Address::WRITER, crate::message::JobEventStoreOpened { token: NOW, replay });
    fixture.register(TM1, 1, vec![]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
    assert_eq!(fixture.recorded(), [initialized(SOURCE)]);
    fixture.finish(attempt(SOURCE, 0, NOW));
    assert_eq!(fixture.submitted()[1..], [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn splits_go_to_running_attempts_only() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let (running, unknown) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 0, OLD));
    for (attempt, received) in [(running, 0), (unknown, 0), (running, 1), (running, 2)] {
        let task = Address::new(TM1, ActorId::Task(attempt));
        fixture.tell(task, RequestSplit { attempt, received });
    }
    let kinds = fixture.kinds();
    let splits: Vec<_> = kinds.iter().filter(|kind| kind.contains("Split")).collect();
    assert_eq!(splits, [&"AddSplit", &"AddSplit", &"NoMoreSplits"]);
}

#[test]
fn b5_a_consumed_partition_is_released_only_when_all_its_consumers_finishes_are_durable() {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.durable();
    fixture.finish(attempt(SINK, 1, NOW));
    assert_eq!(fixture.released(), []);
    fixture.durable();
    let sources = [0, 1].map(|subtask| partition(attempt(SOURCE, subtask, NOW)).partition);
    assert_eq!(fixture.released(), sources);
}

#[test]
fn recovery_waits_until_the_required_partitions_are_reported_and_runs_nothing_again() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM2, 2, vec![partition(attempt(SOURCE, 1, OLD))]);
    assert_eq!(fixture.submitted(), []);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), [attempt(SINK, 0, NOW), attempt(SINK, 1, NOW)]);
}

#[test]
fn b1_a_finish_whose_partition_is_lost_is_taken_back_durably_before_anything_runs() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    let lost = ExecutionVertexId::new(SOURCE, 1);
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: vec![lost] }]);
    assert!(fixture.kinds().contains(&"FlushJobEvents"));
    assert_eq!(fixture.submitted(), []);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
    let task = Address::new(TM1, ActorId::Task(attempt(SOURCE, 1, NOW)));
    fixture.tell(task, RequestSplit { attempt: attempt(SOURCE, 1, NOW), received: 0 });
    let splits = fixture.sent(|_, message| match message {
        Message::AddSplit(message) => Some(message.split.id),
        _ => None,
    });
    assert_eq!(splits, [1], "the split of the lost subtask comes back, and no other");
}

#[test]
fn b2_a_consumer_whose_initialization_was_lost_is_initialized_by_the_new_leader() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.recorded(), [initialized(SINK)]);
}

#[test]
fn b3_b20_a_job_whose_tasks_are_all_finished_in_the_log_commits_without_any_partition() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let decided = fixture.sent(|_, message| match message {
        Message::DecideCommit(message) => Some(message.committables.clone()),
        _ => None,
    });
    assert_eq!(decided, [[0, 1].map(|subtask| committable(attempt(SINK, subtask, OLD)))]);
}

#[test]
fn b20_a_sink_that_never_finished_is_not_finished_for_want_of_partitions() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    assert_eq!(fixture.submitted(), [attempt(SINK, 1, NOW)]);
}

#[test]
fn b17_partitions_that_no_finish_names_are_released_by_the_id_that_was_reported() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![initialized(SOURCE), finished(SOURCE, 0)]);
    let orphan = partition(attempt(SOURCE, 1, OLD));
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD)), orphan.clone()]);
    assert_eq!(fixture.released(), [orphan.partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn the_partition_of_an_older_attempt_does_not_stand_for_a_newer_one() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    let older = partition(attempt(SOURCE, 1, FencingToken(5)));
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD)), older.clone()]);
    assert_eq!(fixture.submitted(), []);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    assert!(fixture.released().contains(&older.partition));
}

#[test]
fn a_worker_that_knows_the_leader_before_the_leader_does_need_not_register_twice() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    let message = RegisterTaskManager { token: NOW, process: TM1, session: SessionId(1), slots: 1 };
    fixture.tell(Address::executor(TM1), message);
    assert_eq!(fixture.kinds(), ["Contend"]);
    fixture.grant(true, None);
    assert!(fixture.kinds().contains(&"RegistrationSuccess"));
}

#[test]
fn a_producer_whose_partition_is_there_stays_finished_though_its_consumer_runs_again() {
    let mut graph = Fixture::new(&[]);
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0)]);
    graph.lead(events);
    graph.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    graph.event(Event::Timer(RECOVERY_TIMEOUT));
    graph.durable();
    assert_eq!(graph.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn b15_what_a_late_worker_reports_is_released_and_its_slots_are_used() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    let late = partition(attempt(SOURCE, 0, OLD));
    fixture.register(TM1, 1, vec![late.clone()]);
    assert_eq!(fixture.released(), [late.partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn s7_a_finish_counts_only_if_no_later_reset_exists() {
    let mut events = sources_finished();
    events.push(JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(SOURCE, 1)] });
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let kept = [0, 1].map(|i| partition(attempt(SOURCE, i, OLD)));
    fixture.register(TM1, 1, kept.into());
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 1, NOW)]);
}

#[test]
fn b18_a_history_that_cannot_be_true_is_discarded_durably_and_the_job_starts_over() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![finished(SOURCE, 0)]);
    let recorded = fixture.recorded();
    assert!(matches!(recorded[..], [JobEvent::HistoryDiscarded { .. }]), "{recorded:?}");
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), []);
    fixture.durable();
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
    let again = vec![finished(SOURCE, 0), recorded[0].clone(), initialized(SOURCE)];
    assert_eq!(crate::scheduler::fold(&again, &graph()).unwrap().finished.len(), 0);
}

#[test]
fn without_job_recovery_the_log_is_not_even_read() {
    let mut fixture = Fixture::new(&[("execution.batch.job-recovery.enabled", "false")]);
    fixture.event(Event::Start);
    fixture.grant(true, None);
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert!(!fixture.kinds().contains(&"OpenJobEventStore"));
    assert_eq!(fixture.released(), [partition(attempt(SOURCE, 0, OLD)).partition]);
    assert_eq!(fixture.submitted(), [attempt(SOURCE, 0, NOW)]);
}

#[test]
fn a_failed_task_fails_the_job_without_a_restart_strategy() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let failure = TaskFailure { message: "boom".to_owned(), missing: None };
    fixture.state(attempt(SOURCE, 0, NOW), TaskState::Failed(failure));
    let outcomes = fixture.sent(|_, message| match message {
        Message::RecordJobResult(message) => Some(message.outcome.clone()),
        _ => None,
    });
    assert_eq!(outcomes, [JobOutcome::Failed { reason: "boom".to_owned() }]);
}

#[test]
fn a_lost_input_brings_its_producer_back_and_with_it_all_that_read_it() {
    let options = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];
    let mut fixture = Fixture::new(&options);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    let lost = partition(attempt(SOURCE, 1, NOW)).partition;
    let failure = TaskFailure { message: "gone".to_owned(), missing: Some(lost) };
    fixture.effects.clear();
    fixture.state(attempt(SINK, 1, NOW), TaskState::Failed(failure));
    let taken_back = vec![ExecutionVertexId::new(SOURCE, 1), ExecutionVertexId::new(SINK, 0)];
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: taken_back }]);
    let again = ExecutionAttemptId { number: 2, ..attempt(SOURCE, 1, NOW) };
    assert_eq!(fixture.submitted(), [again]);
}

#[test]
fn a_task_manager_that_comes_back_empty_loses_what_it_kept() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, [0, 1].map(|i| partition(attempt(SOURCE, i, OLD))).into());
    fixture.effects.clear();
    let options_allow = fixture.master.boot.config.set("restart-strategy.type", "fixed-delay");
    options_allow.unwrap();
    fixture.register(TM1, 9, vec![]);
    let lost = [0, 1].map(|subtask| ExecutionVertexId::new(SOURCE, subtask));
    assert_eq!(fixture.recorded(), [JobEvent::ExecutionVertexReset { subtasks: lost.into() }]);
}

#[test]
fn a_stale_token_changes_nothing() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    let message = RegisterTaskManager { token: OLD, process: TM1, session: SessionId(1), slots: 1 };
    fixture.effects.clear();
    fixture.tell(Address::executor(TM1), message);
    assert!(fixture.effects.is_empty());
}

/// Carries the commit's disk operations out on an output volume that holds `files`.
fn commit(fixture: &mut Fixture, files: &mut Vec<String>) {
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

#[test]
fn a_new_leader_commits_exactly_the_decided_list_whatever_an_earlier_one_had_done_of_it() {
    let decided = [0, 1].map(|subtask| committable(attempt(SINK, subtask, OLD)));
    let pending = |subtask: usize| decided[subtask].pending.clone();
    for done in 0..=2 {
        let mut fixture = Fixture::new(&[]);
        fixture.event(Event::Start);
        fixture.grant(true, Some(JobResult::Dirty(decided.to_vec())));
        let mut files: Vec<String> = (0..2)
            .map(|subtask| if subtask < done { decided[subtask].target.clone() } else { pending(subtask) })
            .collect();
        files.push(".pending/of-a-failed-attempt".to_owned());
        commit(&mut fixture, &mut files);
        assert!(fixture.kinds().contains(&"RecordJobResult"));
        let outcome = JobOutcome::Finished { committed: 2 };
        fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
        commit(&mut fixture, &mut files);
        files.sort();
        assert_eq!(files, ["out/0", "out/1"], "{done} were renamed before");
    }
}

#[test]
fn a_committed_file_that_is_gone_is_an_error_and_never_a_finished_job() {
    let decided = committable(attempt(SINK, 0, OLD));
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(true, Some(JobResult::Dirty(vec![decided])));
    commit(&mut fixture, &mut Vec::new());
    assert!(!fixture.kinds().contains(&"RecordJobResult"));
    let failed = |effect: &Effect| matches!(effect, Effect::Exit(ExitStatus::Failure(_)));
    assert!(fixture.effects.iter().any(failed));
}

#[test]
fn s12_nothing_runs_after_a_clean_result() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(true, Some(JobResult::Clean(JobOutcome::Finished { committed: 2 })));
    commit(&mut fixture, &mut Vec::new());
    fixture.register(TM1, 1, vec![partition(attempt(SOURCE, 0, OLD))]);
    assert_eq!(fixture.submitted(), []);
    assert!(fixture.kinds().contains(&"JobTerminated"));
    fixture.tell(Address::WRITER, crate::message::JobEventsCleared {});
    assert_eq!(fixture.effects.last(), Some(&Effect::Exit(ExitStatus::Success)));
}

#[test]
fn what_the_high_availability_service_did_not_answer_is_asked_again_with_the_lease() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(false, None);
    fixture.effects.clear();
    fixture.event(Event::Timer(RENEW_LEASE));
    assert_eq!(fixture.kinds(), ["RenewLease", "RecordJob"]);

    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    fixture.effects.clear();
    fixture.event(Event::Timer(RENEW_LEASE));
    assert_eq!(fixture.kinds(), ["RenewLease", "DecideCommit"]);
}

#[test]
fn a_commit_decision_that_comes_twice_is_carried_out_once() {
    let mut events = sources_finished();
    events.extend([initialized(SINK), finished(SINK, 0), finished(SINK, 1)]);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(events);
    let committables = vec![committable(attempt(SINK, 0, OLD))];
    let decided = CommitDecided { token: NOW, committables };
    fixture.tell(Address::HIGH_AVAILABILITY, decided.clone());
    fixture.effects.clear();
    fixture.tell(Address::HIGH_AVAILABILITY, decided);
    assert_eq!(fixture.effects, []);
}

#[test]
fn a_failed_job_leaves_no_uncommitted_output() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let failure = TaskFailure { message: "boom".to_owned(), missing: None };
    fixture.state(attempt(SOURCE, 0, NOW), TaskState::Failed(failure));
    let mut files = vec![".pending/half".to_owned(), "out/of-another-job".to_owned()];
    commit(&mut fixture, &mut files);
    assert_eq!(files.len(), 2, "nothing goes before the failure is durable");
    let outcome = JobOutcome::Failed { reason: "boom".to_owned() };
    fixture.tell(Address::HIGH_AVAILABILITY, JobResultRecorded { token: NOW, outcome });
    commit(&mut fixture, &mut files);
    assert_eq!(files, ["out/of-another-job"]);
    assert_eq!(fixture.master.status(), JobStatus::Failed);
}

#[test]
fn s11_a_consumer_that_runs_again_keeps_its_input_until_its_new_finish_is_durable() {
    let options = [("restart-strategy.type", "fixed-delay"), ("restart-strategy.fixed-delay.delay", "0 s")];
    let mut fixture = Fixture::new(&options);
    fixture.run_until_sinks();
    fixture.finish(attempt(SINK, 0, NOW));
    fixture.finish(attempt(SINK, 1, NOW));
    // Both finishes are still in the buffer when a sink's finish is taken back and comes again.
    let subtask = ExecutionVertexId::new(SINK, 1);
    let mut out = Outbox::new();
    fixture.master.phase = Phase::Running;
    fixture.master.reset_subtasks(&[subtask].into(), &mut out);
    fixture.master.schedule(&mut out);
    fixture.effects.extend(out.take());
    let recorded_before = fixture.recorded().len() as u64;
    fixture.finish(ExecutionAttemptId { number: 2, ..attempt(SINK, 1, NOW) });
    let sequence = recorded_before;
    fixture.tell(Address::WRITER, crate::message::JobEventsDurable { token: NOW, sequence });
    assert_eq!(fixture.released(), []);
    fixture.durable();
    assert_eq!(fixture.released().len(), 2);
}

#[test]
fn a_result_that_nobody_asked_for_any_more_is_released() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let cancelled = attempt(SOURCE, 1, NOW);
    let state = TaskState::Finished {
        partitions: vec![partition(cancelled)],
        committables: vec![],
        metrics: IoMetrics::default(),
    };
    let message = UpdateTaskExecutionState { token: NOW, session: SessionId(1), attempt: cancelled, state };
    fixture.tell(Address::executor(TM1), message);
    assert_eq!(fixture.released(), [partition(cancelled).partition]);
}

#[test]
fn an_attempt_that_should_not_run_is_cancelled_again_at_the_next_heartbeat() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.register(TM1, 1, vec![]);
    let (right, wrong) = (attempt(SOURCE, 0, NOW), attempt(SOURCE, 1, NOW));
    let attempts = vec![right, wrong];
    let response = HeartbeatResponse { token: NOW, session: SessionId(1), attempts };
    fixture.tell(Address::executor(TM1), response);
    let cancelled = fixture.sent(|_, message| match message {
        Message::CancelTask(message) => Some(message.attempt),
        _ => None,
    });
    assert_eq!(cancelled, [wrong]);
}

#[test]
fn what_names_no_result_of_the_job_is_released_and_never_a_panic() {
    let mut foreign = partition(attempt(SOURCE, 0, OLD));
    foreign.partition.data_set = IntermediateDataSetId(77);
    let mut fixture = Fixture::new(&[]);
    fixture.lead(sources_finished());
    fixture.register(TM1, 1, vec![foreign.clone()]);
    fixture.event(Event::Timer(RECOVERY_TIMEOUT));
    fixture.durable();
    fixture.register(TM2, 1, vec![foreign.clone()]);
    assert_eq!(fixture.released(), [foreign.partition; 2]);
    let running = attempt(SOURCE, 0, NOW);
    let state = TaskState::Finished {
        partitions: vec![foreign],
        committables: vec![],
        metrics: IoMetrics::default(),
    };
    fixture.state(running, state);
    assert!(!fixture.master.execution.is_finished(running.subtask));
}

#[test]
fn a_store_that_fails_after_the_jobs_end_does_not_keep_the_process_alive() {
    let mut fixture = Fixture::new(&[]);
    fixture.event(Event::Start);
    fixture.grant(true, Some(JobResult::Clean(JobOutcome::Finished { committed: 2 })));
    commit(&mut fixture, &mut Vec::new());
    let failure = crate::job_event::StoreFailure { message: "no".to_owned() };
    fixture.tell(Address::WRITER, crate::message::JobEventStoreFailed { token: NOW, failure });
    assert_eq!(fixture.effects.last(), Some(&Effect::Exit(ExitStatus::Success)));
}

#[test]
fn an_unknown_completion_changes_nothing() {
    let mut fixture = Fixture::new(&[]);
    fixture.lead(vec![]);
    fixture.effects.clear();
    fixture.event(Event::Disk { op: DiskOpId(99), result: Ok(DiskOutput::Done) });
    assert!(fixture.effects.is_empty());
}
