//! What actors tell the trace: decisions and facts that oracles judge and people read. A note is
//! never part of the protocol; nothing in the engine reads one.

use serde::{Deserialize, Serialize};

use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId, ProcessId, ResultPartitionId,
};
use crate::message::{CommitDecision, IndexRange, IoMetrics, JobOutcome, JobStatus, RecordingStatus};

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Note {
    // ---- JobMaster ----
    LeadershipAcquired {
        token: FencingToken,
    },
    JobStatusChanged {
        token: FencingToken,
        status: JobStatus,
    },
    /// A new leader has read the log of the earlier ones.
    Replayed {
        token: FencingToken,
        events: u64,
        finished: Vec<ExecutionAttemptId>,
        damage: Option<String>,
    },
    /// Recovery is over: these attempts stay finished, these subtasks run again.
    Recovered {
        token: FencingToken,
        kept: Vec<ExecutionAttemptId>,
        reset: Vec<ExecutionVertexId>,
    },
    /// Parallelism and, for each subtask and input edge, the partition and subpartition ranges that
    /// it reads.
    VertexInitialized {
        token: FencingToken,
        vertex: JobVertexId,
        parallelism: u32,
        inputs: Vec<Vec<(IndexRange, IndexRange)>>,
    },
    Deployed {
        attempt: ExecutionAttemptId,
        location: ProcessId,
    },
    SplitAssigned {
        attempt: ExecutionAttemptId,
        split: u32,
    },
    /// The JobMaster counts the subtask as finished by this attempt. `splits` are those that it was
    /// assigned, in the order of assignment; `inputs` the partitions that it was given, by gate.
    FinishAccepted {
        attempt: ExecutionAttemptId,
        splits: Vec<u32>,
        inputs: Vec<Vec<ResultPartitionId>>,
    },
    AttemptFailed {
        attempt: ExecutionAttemptId,
        reason: String,
    },
    /// Something failed that is no attempt's failure alone: all subtasks run again.
    GlobalFailure {
        token: FencingToken,
        reason: String,
    },
    /// The subtask will run again, whether or not it had finished.
    SubtaskReset {
        subtask: ExecutionVertexId,
    },
    TaskManagerRegistered {
        process: ProcessId,
    },
    TaskManagerLost {
        process: ProcessId,
        reason: String,
    },
    CommitDecided {
        decision: CommitDecision,
    },
    JobEnded {
        outcome: JobOutcome,
    },

    // ---- event store ----
    /// Events of this epoch up to `sequence` are in the write buffer.
    EventBuffered {
        token: FencingToken,
        sequence: u64,
        finished: Option<ExecutionAttemptId>,
    },
    EventsDurable {
        token: FencingToken,
        sequence: u64,
    },

    // ---- TaskManager and shuffle service ----
    TaskStarted {
        attempt: ExecutionAttemptId,
    },
    TaskEnded {
        attempt: ExecutionAttemptId,
        failure: Option<String>,
    },
    /// The attempt ended well, having read and emitted so many records.
    TaskMetrics {
        attempt: ExecutionAttemptId,
        metrics: IoMetrics,
    },
    /// The partition is complete and tracked on this worker.
    PartitionFinished {
        partition: ResultPartitionId,
        bytes: u64,
    },
    /// The partition is gone from this worker.
    PartitionReleased {
        partition: ResultPartitionId,
    },
    JobManagerLost {
        token: FencingToken,
    },
    /// A leader wants all partitions that are on this worker.
    PartitionsClaimed {
        token: FencingToken,
    },
    /// No leader has claimed these partitions in time: the worker gives them up.
    RetentionExpired {
        partitions: Vec<ResultPartitionId>,
    },

    // ---- client ----
    /// How far the job is, in subtasks.
    Progress {
        status: JobStatus,
        total: u32,
        finished: u32,
        running: u32,
        recording: RecordingStatus,
    },

    /// The client learned how the job ended.
    ResultRead {
        outcome: JobOutcome,
    },

    /// Something worth a line in the log.
    Warning {
        text: String,
    },
}
