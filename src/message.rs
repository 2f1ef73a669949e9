//! Every message between actors. All can go over the wire; a message that is only right under
//! one leader carries that leader's fencing token.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::config::ShuffleServiceKind;
use crate::ids::{
    Address, ExecutionAttemptId, FencingToken, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId, SessionId,
};
use crate::job_event::{Replay, StoreFailure};

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
            pub struct $name { $($(#[$field_doc])* pub $field: $type),* }

            impl From<$name> for Message {
                fn from(message: $name) -> Self {
                    Self::$name(message)
                }
            }
        )*

        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Message { $($name($name)),* }

        impl Message {
            /// Every kind of message.
            pub const KINDS: &[&'static str] = &[$(stringify!($name)),*];

            /// The kind of message, as traces and crash points name it.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name)),* }
            }
        }
    };
}

messages! {
    // ---- high availability ----

    /// JobManager → HA: wants to lead. Repeated until answered.
    Contend { session: SessionId, process: ProcessId }
    /// HA → JobManager: leads from now on; with what earlier leaders left.
    LeadershipGranted { token: FencingToken, session: SessionId, job: Option<RecordedJob>, result: Option<JobResult> }
    /// HA → JobManager: does not lead any more.
    LeadershipRevoked { token: FencingToken }
    /// JobManager → HA: still here.
    RenewLease { token: FencingToken }
    /// TaskManager or client → HA: wants to be told the leader, now and at each change.
    WatchLeader { watcher: Address, session: SessionId }
    /// HA → watcher.
    LeaderChanged { leader: Option<LeaderInfo>, result: Option<JobResult> }
    /// JobManager → HA: the job that this cluster runs (Flink's job graph store).
    RecordJob { token: FencingToken, job: RecordedJob }
    /// HA → JobManager: the record is durable.
    JobRecorded { token: FencingToken }
    /// JobManager → HA: compare-and-set of the commit decision into the job result store.
    DecideCommit { token: FencingToken, decision: CommitDecision }
    /// HA → JobManager: what is decided, now durable; an earlier decision wins.
    CommitDecided { token: FencingToken, decision: CommitDecision }
    /// JobManager → HA: the job's terminal state.
    RecordJobResult { token: FencingToken, outcome: JobOutcome }
    /// HA → JobManager: the terminal state is durable.
    JobResultRecorded { token: FencingToken, outcome: JobOutcome }
    /// HA or writer → JobManager: another leader exists; nothing was done, or what was done does not count.
    Fenced { token: FencingToken, current: FencingToken }

    // ---- JobMaster and its event store ----

    /// Master → writer: read the log of earlier epochs and open that of `token`.
    OpenJobEventStore { token: FencingToken, fingerprint: u64 }
    /// Writer → master: what the durable log says; writing may begin.
    JobEventStoreOpened { token: FencingToken, replay: Arc<Replay> }
    /// Writer → master: the store does not work; it is tried again. Told once until it has worked.
    JobEventStoreFailed { token: FencingToken, failure: StoreFailure }
    /// Master → writer: append an event. `sequence` rises by one from 1 in each epoch. With `cut`, the
    /// file ends behind it, and the next event begins another.
    WriteJobEvent { sequence: u64, event: Arc<crate::job_event::JobEvent>, cut: bool }
    /// Writer → master: after a failure, a new file can be written; it wants a base record first.
    JobEventStoreRecovered { token: FencingToken }
    /// Master → writer: flush the buffer now.
    FlushJobEvents { }
    /// Writer → master: all events up to this one are durable.
    JobEventsDurable { token: FencingToken, sequence: u64 }
    /// Master → writer: the job ended; delete its log.
    ClearJobEvents { }
    /// Writer → master: the log is gone, or could not be deleted, which was noted.
    JobEventsCleared { }

    // ---- JobMaster and TaskExecutor ----

    /// TaskManager → JobMaster: offers itself and its slots. Repeated until answered. `retains`: it
    /// keeps the job's partitions when it loses the JobManager. `holds`: it has kept some.
    /// `shuffle_service`: where it believes that results are kept. A shuffle service comes so, too, with no slots.
    RegisterTaskManager { token: FencingToken, process: ProcessId, session: SessionId, slots: u32, retains: bool, holds: bool, shuffle_service: ShuffleServiceKind }
    /// JobMaster → TaskManager.
    RegistrationSuccess { token: FencingToken, session: SessionId }
    /// JobMaster → TaskManager: not now or not ever; with the reason. `too_late`: what it kept is not
    /// wanted any more, without it it may come as a new worker.
    RegistrationRejected { token: FencingToken, session: SessionId, reason: String, too_late: bool }
    /// JobMaster → TaskManager, after every registration: claim the job's partitions and report them.
    GetAndRetainPartitionWithMetrics { token: FencingToken }
    /// TaskManager → JobMaster: every finished partition it keeps for the job.
    PartitionReport { token: FencingToken, session: SessionId, partitions: Vec<PartitionWithMetrics> }
    /// JobMaster → TaskManager, to that incarnation of it which is registered.
    SubmitTask { token: FencingToken, session: SessionId, task: Box<TaskDeploymentDescriptor> }
    /// JobMaster → TaskManager.
    CancelTask { token: FencingToken, attempt: ExecutionAttemptId }
    /// TaskManager → JobMaster: a state that a task reached.
    UpdateTaskExecutionState { token: FencingToken, session: SessionId, attempt: ExecutionAttemptId, state: TaskState }
    /// JobMaster → TaskManager: drop these partitions.
    ReleasePartitions { token: FencingToken, partitions: Vec<ResultPartitionId> }
    /// JobMaster → TaskManager: still here; `attempts` are those it believes to run there.
    HeartbeatRequest { token: FencingToken, attempts: Vec<ExecutionAttemptId> }
    /// TaskManager → JobMaster; `attempts` are those that run there.
    HeartbeatResponse { token: FencingToken, session: SessionId, attempts: Vec<ExecutionAttemptId> }
    /// JobMaster → TaskManager: the job ended; drop all that belongs to it.
    JobTerminated { token: FencingToken }

    // ---- tasks and the coordinators of their sources ----

    /// Task → JobMaster: the reader wants a split and has got `received` so far. Repeated after a
    /// silence: a split that was assigned beyond those `received` is the answer before a new one.
    RequestSplit { attempt: ExecutionAttemptId, received: u32 }
    /// JobMaster → task.
    AddSplit { attempt: ExecutionAttemptId, split: SourceSplit }
    /// JobMaster → task: there will be none.
    NoMoreSplits { attempt: ExecutionAttemptId }

    // ---- tasks and their executor ----

    /// Task → executor, same process: the body ended.
    TaskEnded { attempt: ExecutionAttemptId, result: Result<TaskResult, TaskFailure> }
    /// Executor → shuffle, same process, or the worker of a shuffle service, then repeated until
    /// answered: these partitions of the attempt are complete and may be read.
    RegisterPartitions { attempt: ExecutionAttemptId, partitions: Vec<FinishedPartition> }
    /// Shuffle or worker of a shuffle service → executor: readers will find them from now on.
    PartitionsRegistered { attempt: ExecutionAttemptId }
    /// Executor → shuffle, same process, or the worker of a shuffle service: delete these partitions.
    DropPartitions { partitions: Vec<ResultPartitionId> }

    // ---- shuffle ----

    /// Task → shuffle of a TaskManager: read these ranges, in this order; `fetch` names the stream
    /// within the reader; `start` buffers of the stream are not wanted, for a reader that asks again
    /// after a silence has them; `credit` is in buffers.
    OpenFetch { fetch: u64, ranges: Vec<FetchRange>, start: u64, credit: u32 }
    /// Shuffle → task: consecutive buffers of the stream, the first of which is its buffer number
    /// `sequence` (from 0).
    Buffers { fetch: u64, sequence: u64, buffers: Vec<FetchedBuffer>, finished: bool }
    /// Task → shuffle: room for more buffers.
    AddCredit { fetch: u64, credit: u32 }
    /// Shuffle → task: this partition is not here.
    PartitionNotFound { fetch: u64, partition: ResultPartitionId }
    /// Task → shuffle: no more is wanted.
    CloseFetch { fetch: u64 }

    // ---- client ----

    /// Whoever runs the job → client, client → JobMaster: the job is not wanted any more. Repeated
    /// until the job has ended.
    CancelJob { }

    /// Client → JobMaster: how far is the job?
    RequestJobStatus { }
    /// JobMaster → client.
    JobStatusReport { status: JobStatus, total: u32, finished: u32, running: u32, recording: RecordingStatus }

    // ---- shuffle services ----

    /// Task → shuffle of a shuffle service: the bytes of the partition from `offset`. At most one is
    /// under way for each partition; repeated until answered.
    PushData { partition: ResultPartitionId, offset: u64, bytes: Bytes }
    /// Shuffle → task: so many bytes of the partition are written.
    DataPushed { partition: ResultPartitionId, length: u64 }
    /// Shuffle → task: what was pushed at this offset is not taken; with the reason.
    PushRefused { partition: ResultPartitionId, offset: u64, reason: String }
    /// Shuffle or worker of a shuffle service → executor: these partitions are not here as they should be.
    PartitionsRefused { attempt: ExecutionAttemptId, reason: String }
    /// Worker → shuffle, same process: only this leader's attempts may push from now on. What others
    /// pushed and did not register is dropped.
    AcceptPushes { token: Option<FencingToken> }

    // ---- whoever runs the cluster ----

    /// To the HA service: the leader is not to lead any more. With `successor`, whoever stands by
    /// leads at once; with `notice`, the old leader is told.
    RevokeLeadership { successor: bool, notice: bool }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaderInfo {
    pub process: ProcessId,
    pub token: FencingToken,
}

/// The job that a cluster runs: found by name in the program's registry, built from arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobRecord {
    pub name: String,
    /// Arguments of the job function as `name=value`, sorted by name.
    pub arguments: Vec<(String, String)>,
    /// [`crate::graph::JobGraph::fingerprint`]; a process that builds another graph is refused.
    pub fingerprint: u64,
}

/// What the HA service keeps of the job: which it is, and what its first leader found to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordedJob {
    pub record: JobRecord,
    /// Of each source whose splits follow from files: those of every leader. No part of what makes two
    /// jobs the same, since files may have come and gone between two leaders.
    pub splits: BTreeMap<JobVertexId, Vec<SourceSplit>>,
}

/// State of the job in the job result store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobResult {
    /// The commit is decided but may not be complete: every leader commits exactly this list.
    Dirty(CommitDecision),
    /// Nothing is left to do.
    Clean(JobOutcome),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobOutcome {
    Finished { committed: u32, accumulators: Accumulators },
    Failed { reason: String },
    Canceled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum JobStatus {
    Created,
    /// A new leader re-establishes what the job had done.
    Reconciling,
    Running,
    /// Something failed; the job goes on after a pause.
    Restarting,
    /// All tasks are finished; the commit goes on.
    Committing,
    Finished,
    Failed,
    Canceled,
}

/// Whether the JobMaster's progress is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RecordingStatus {
    /// Recovery is disabled.
    Off,
    On,
    /// The event store does not work, for this reason; a crash now would lose what is finished since.
    Failing(String),
}

/// Sums by name that tasks add to, over all finished subtasks (Flink's LongCounter).
pub type Accumulators = BTreeMap<String, i64>;

/// What the job result store keeps of the decision to commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CommitDecision {
    pub committables: Vec<Committable>,
    pub accumulators: Accumulators,
}

/// What a sink's subtask wants made visible when the job commits: a rename on the output volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Committable {
    pub pending: String,
    pub target: String,
}

/// A piece of a source's input, opaque to all but its source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceSplit {
    /// Position in the source's list of splits; unique in it.
    pub id: u32,
    pub payload: Bytes,
}

/// What a TaskManager needs to run an attempt (Flink's class of this name).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskDeploymentDescriptor {
    pub token: FencingToken,
    /// The JobManager of that leader.
    pub job_manager: ProcessId,
    pub job: Arc<JobRecord>,
    pub attempt: ExecutionAttemptId,
    /// Of the job vertex.
    pub parallelism: u32,
    /// One for each input edge of the vertex, in the graph's order.
    pub inputs: Vec<InputGateDescriptor>,
    /// One for each output edge of the vertex, in the graph's order.
    pub outputs: Vec<ResultPartitionDescriptor>,
}

/// What one subtask reads of one data set: the partitions `partitions`, and of each the
/// subpartitions `subpartitions`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InputGateDescriptor {
    pub data_set: IntermediateDataSetId,
    /// In partition order.
    pub partitions: Arc<Vec<ShuffleDescriptor>>,
    pub subpartitions: IndexRange,
}

/// Where a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShuffleDescriptor {
    pub partition: ResultPartitionId,
    pub location: ProcessId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResultPartitionDescriptor {
    pub partition: ResultPartitionId,
    pub subpartitions: u32,
    /// Who keeps it: the TaskManager that produces it, or a shuffle service.
    pub location: ProcessId,
}

/// Indices `start..=end` (Flink's class of this name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexRange {
    pub start: u32,
    pub end: u32,
}

impl IndexRange {
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    pub fn indices(self) -> std::ops::RangeInclusive<u32> {
        self.start..=self.end
    }
}

/// A partition with the bytes in each of its subpartitions (Flink's class of this name).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionWithMetrics {
    pub partition: ResultPartitionId,
    pub subpartition_bytes: Vec<u64>,
}

/// A complete partition: its file on the `local` volume and where each buffer lies in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FinishedPartition {
    pub partition: ResultPartitionId,
    pub path: String,
    pub subpartitions: u32,
    /// In the order of production.
    pub buffers: Vec<BufferLocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BufferLocation {
    pub subpartition: u32,
    pub offset: u64,
    pub length: u32,
}

impl FinishedPartition {
    pub fn subpartition_bytes(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.subpartitions as usize];
        for buffer in &self.buffers {
            if let Some(sum) = bytes.get_mut(buffer.subpartition as usize) {
                *sum += u64::from(buffer.length);
            }
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FetchRange {
    pub partition: ResultPartitionId,
    pub subpartitions: IndexRange,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FetchedBuffer {
    /// Index into [`OpenFetch::ranges`].
    pub range: u32,
    /// Whole records of the range, in its order; small subpartitions that follow one another may
    /// share a buffer.
    pub bytes: Bytes,
}

/// What a body that ran to its end leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskResult {
    pub partitions: Vec<FinishedPartition>,
    pub committables: Vec<Committable>,
    pub metrics: IoMetrics,
    pub accumulators: Accumulators,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IoMetrics {
    pub records_in: u64,
    pub records_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFailure {
    /// With the operator's name, the subtask and the attempt.
    pub message: String,
    /// Set if an input partition was not where it should be: its producer must run again.
    pub missing: Option<ResultPartitionId>,
}

/// What a TaskManager tells the JobMaster about an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    Finished {
        partitions: Vec<PartitionWithMetrics>,
        committables: Vec<Committable>,
        metrics: IoMetrics,
        accumulators: Accumulators,
    },
    Failed(TaskFailure),
    Canceled,
}
