//! One running subtask: the task actor and the body that it polls.
//!
//! A body (reader, chain of user functions, sorter) is one coroutine. It is polled with a no-op
//! waker inside the task actor's `handle`, under `catch_unwind`; no executor ever polls it. It
//! awaits only what [`TaskContext`] offers, and each of those is an effect that resumes the body
//! when it completes.

use std::future::Future;
use std::pin::Pin;

use crate::ids::{ExecutionAttemptId, ResultPartitionId};

mod actor;
mod context;
mod guarded;
mod input;
mod long_counter;
mod output;
mod shared;
mod silence;
#[cfg(test)]
mod tests;

pub use actor::TaskActor;
pub use context::TaskContext;
pub(crate) use guarded::guarded;
pub use input::InputBuffer;
pub use long_counter::LongCounter;
pub use shared::SortMemory;

/// Why a body ended without finishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    /// Name of the operator in which it happened.
    pub operator: String,
    pub message: String,
}

pub type TaskBody = Pin<Box<dyn Future<Output = Result<(), BodyError>>>>;

/// Makes the body of a vertex's subtasks; shared by all of them.
pub trait TaskBodyFactory: Send + Sync {
    fn start(&self, context: TaskContext) -> TaskBody;
}

/// Directory of the files of sorts on the `scratch` volume, each with the attempt's id before a `-`.
pub const SPILL_DIRECTORY: &str = "spill";

/// File number `number` of an attempt.
pub fn spill_path(attempt: ExecutionAttemptId, number: usize) -> String {
    format!("{SPILL_DIRECTORY}/{attempt}-{number}")
}

/// The attempt to which a spill file belongs.
pub fn is_spill_of(attempt: ExecutionAttemptId, path: &str) -> bool {
    let rest = path.strip_prefix(SPILL_DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
    rest.and_then(|name| name.rsplit_once('-')).is_some_and(|(owner, _)| owner == attempt.to_string())
}

/// Directory of the result partitions on the `local` volume.
pub const PARTITION_DIRECTORY: &str = "partitions";

/// The one file of a partition on the `local` volume. A partition without bytes has none.
pub fn partition_path(partition: ResultPartitionId) -> String {
    format!("{PARTITION_DIRECTORY}/{}-{}", partition.data_set, partition.producer)
}
