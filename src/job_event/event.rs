//! The events of FLIP-383, and the one that hardens their log.

use serde::{Deserialize, Serialize};

use crate::coordinator::CoordinatorSnapshot;
use crate::ids::{ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId, ProcessId};
use crate::message::{Accumulators, Committable, IndexRange, IoMetrics, PartitionWithMetrics};

/// Partitions and subpartitions that are read, by subtask and input edge.
pub type SubtaskInputs = Vec<Vec<(IndexRange, IndexRange)>>;

/// An increment of the JobMaster's state (FLIP-383, "JobEvent").
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobEvent {
    /// First record of an epoch: which job it is about, and how much of which older log files is
    /// accepted. Nothing else of them exists, so a paused old leader cannot add to history.
    EpochStarted {
        token: FencingToken,
        fingerprint: u64,
        /// In the order in which they were written.
        accepted: Vec<AcceptedFile>,
    },
    /// FLIP-383 ExecutionJobVertexInitializedEvent: decided parallelism and input information: for
    /// each subtask and input edge the partitions and subpartitions that it reads.
    ExecutionJobVertexInitialized { vertex: JobVertexId, parallelism: u32, inputs: SubtaskInputs },
    /// FLIP-383 ExecutionVertexFinishedEvent.
    ExecutionVertexFinished {
        finish: Finish,
        /// Snapshots of coordinators that were taken at this finish, by the vertex of each.
        coordinators: Vec<(JobVertexId, CoordinatorSnapshot)>,
    },
    /// These subtasks will run again: their earlier finishes do not count.
    ExecutionVertexReset { subtasks: Vec<ExecutionVertexId> },
    /// All earlier events cannot be believed and do not count: the job started over.
    HistoryDiscarded { reason: String },
    /// All that counts at this moment; earlier events do not. Written when the store works again
    /// after a failure.
    BaseRecorded {
        /// Input ranges of each subtask, by initialized vertex.
        initialized: Vec<(JobVertexId, SubtaskInputs)>,
        finished: Vec<Finish>,
        coordinators: Vec<(JobVertexId, CoordinatorSnapshot)>,
    },
}

/// How much of an older log file is history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AcceptedFile {
    pub epoch: FencingToken,
    /// Position among the epoch's files.
    pub index: u32,
    /// In bytes from the start.
    pub length: u64,
}

/// How a subtask finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finish {
    pub attempt: ExecutionAttemptId,
    /// The TaskManager on which it ran.
    pub location: ProcessId,
    pub partitions: Vec<PartitionWithMetrics>,
    pub committables: Vec<Committable>,
    pub metrics: IoMetrics,
    pub accumulators: Accumulators,
}

/// What the durable log says, before it is held against the partitions that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replay {
    pub events: Vec<JobEvent>,
    /// Set if the log is damaged beyond a torn tail, or is another job's: nothing of it is used.
    pub damage: Option<String>,
}

/// Why the store cannot be used for now.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoreFailure {
    pub message: String,
}
