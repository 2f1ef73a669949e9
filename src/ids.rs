//! Names of things that messages, log records and traces carry. All are small, ordered and
//! printable, and come out the same in every process and every incarnation.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A process of the cluster. A process that is started again keeps its id and gets a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProcessId {
    HighAvailability,
    /// Numbered from 1; those that do not lead stand by.
    JobManager(u32),
    /// Numbered from 1.
    TaskManager(u32),
    Client,
    /// Keeps results outside the TaskManagers; numbered from 1.
    ShuffleService(u32),
}

impl ProcessId {
    /// The only JobManager of most clusters.
    pub const JOB_MANAGER: Self = Self::JobManager(1);
}

/// The first JobManager is the one that a cluster without standbys has: what follows from a digest of
/// its name, such as a simulated schedule, is the same with and without a number.
impl Hash for ProcessId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::TaskManager(n) | Self::ShuffleService(n) => n.hash(state),
            Self::JobManager(n) if *n > 1 => n.hash(state),
            Self::JobManager(_) | Self::HighAvailability | Self::Client => {}
        }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HighAvailability => f.write_str("high-availability"),
            Self::JobManager(1) => f.write_str("job-manager"),
            Self::JobManager(n) => write!(f, "job-manager-{n}"),
            Self::TaskManager(n) => write!(f, "task-manager-{n}"),
            Self::Client => f.write_str("client"),
            Self::ShuffleService(n) => write!(f, "shuffle-service-{n}"),
        }
    }
}

impl std::str::FromStr for ProcessId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "high-availability" => Ok(Self::HighAvailability),
            "job-manager" => Ok(Self::JOB_MANAGER),
            "client" => Ok(Self::Client),
            _ => {
                let numbered = |prefix| {
                    let number: Option<u32> = text.strip_prefix(prefix).and_then(|n| n.parse().ok());
                    number.filter(|&n| n > 0)
                };
                let task_manager = numbered("task-manager-").map(Self::TaskManager);
                task_manager
                    .or_else(|| numbered("shuffle-service-").map(Self::ShuffleService))
                    .or_else(|| numbered("job-manager-").map(Self::JobManager))
                    .ok_or_else(|| {
                        format!(
                            "unknown process '{text}': expected high-availability, job-manager, \
                             task-manager-N or shuffle-service-N (N from 1) or client; a second JobManager is \
                             job-manager-2"
                        )
                    })
            }
        }
    }
}

/// An actor within its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ActorId {
    /// JobMaster, in the JobManager process.
    Master,
    /// Writer of the job event store, in the JobManager process.
    Writer,
    /// TaskExecutor, in a TaskManager process.
    Executor,
    /// Owner of the finished result partitions of a TaskManager or of a shuffle service.
    Shuffle,
    /// One running subtask.
    Task(ExecutionAttemptId),
    /// The high-availability service.
    HighAvailability,
    /// Follows the leader and reads the job's result.
    Client,
    /// Obeys the leader in a shuffle service, as the executor does in a TaskManager.
    ShuffleWorker,
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master => f.write_str("master"),
            Self::Writer => f.write_str("writer"),
            Self::Executor => f.write_str("executor"),
            Self::Shuffle => f.write_str("shuffle"),
            Self::Task(attempt) => write!(f, "task-{attempt}"),
            Self::HighAvailability => f.write_str("ha"),
            Self::Client => f.write_str("client"),
            Self::ShuffleWorker => f.write_str("shuffle-worker"),
        }
    }
}

/// Where a message goes: an actor of a process, whichever incarnation of it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    pub process: ProcessId,
    pub actor: ActorId,
}

impl Address {
    /// Of the first JobManager, as [`ProcessId::JOB_MANAGER`].
    pub const MASTER: Self = Self::master(ProcessId::JOB_MANAGER);
    pub const WRITER: Self = Self::writer(ProcessId::JOB_MANAGER);
    pub const HIGH_AVAILABILITY: Self =
        Self { process: ProcessId::HighAvailability, actor: ActorId::HighAvailability };

    pub const fn new(process: ProcessId, actor: ActorId) -> Self {
        Self { process, actor }
    }

    /// The JobMaster of a JobManager process.
    pub const fn master(process: ProcessId) -> Self {
        Self::new(process, ActorId::Master)
    }

    /// The writer of the job event store in a JobManager process.
    pub const fn writer(process: ProcessId) -> Self {
        Self::new(process, ActorId::Writer)
    }

    pub const fn executor(process: ProcessId) -> Self {
        Self::new(process, ActorId::Executor)
    }

    /// The actor of a process with which the JobMaster talks about its tasks and partitions.
    pub const fn worker(process: ProcessId) -> Self {
        match process {
            ProcessId::ShuffleService(_) => Self::new(process, ActorId::ShuffleWorker),
            _ => Self::executor(process),
        }
    }

    pub const fn shuffle(process: ProcessId) -> Self {
        Self::new(process, ActorId::Shuffle)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.actor)
    }
}

/// Identifies one incarnation of a process: no other incarnation ever has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// Fencing token of a leader. The high-availability service hands each out once, rising; it is
/// also the epoch of the leader's job event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FencingToken(pub u64);

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A vertex of the job graph: its position in topological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobVertexId(pub u32);

impl fmt::Display for JobVertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// Subtask `subtask` (from 0) of a job vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionVertexId {
    pub vertex: JobVertexId,
    pub subtask: u32,
}

impl ExecutionVertexId {
    pub const fn new(vertex: JobVertexId, subtask: u32) -> Self {
        Self { vertex, subtask }
    }
}

impl fmt::Display for ExecutionVertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.vertex, self.subtask)
    }
}

/// One try at running a subtask. `epoch` is the fencing token of the leader that made it, `number`
/// counts that leader's tries from 1, so ids are unique and rise across incarnations (Flink's
/// execution graph id plus attempt number).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionAttemptId {
    pub subtask: ExecutionVertexId,
    pub epoch: FencingToken,
    pub number: u32,
}

impl fmt::Display for ExecutionAttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.e{}a{}", self.subtask, self.epoch, self.number)
    }
}

/// The result of a job vertex for one consumer edge: the position of the edge in the job graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IntermediateDataSetId(pub u32);

impl fmt::Display for IntermediateDataSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "d{}", self.0)
    }
}

/// What one attempt produced for one data set. The index of the partition in its data set is the
/// producer's subtask index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResultPartitionId {
    pub data_set: IntermediateDataSetId,
    pub producer: ExecutionAttemptId,
}

impl ResultPartitionId {
    pub const fn index(&self) -> u32 {
        self.producer.subtask.subtask
    }
}

impl fmt::Display for ResultPartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.data_set, self.producer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_back_what_it_displays() {
        for text in [
            "high-availability",
            "job-manager",
            "task-manager-2",
            "shuffle-service-1",
            "client",
            "job-manager-2",
        ] {
            assert_eq!(text.parse::<ProcessId>().unwrap().to_string(), text);
        }
        for text in ["task-manager-0", "shuffle-service-", "shuffle-service-x", ""] {
            assert!(text.parse::<ProcessId>().is_err(), "{text}");
        }
    }
}
