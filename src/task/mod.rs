//! One running subtask: the task actor and the body that it polls.
//!
//! A body (reader, chain of user functions, sorter) is one coroutine. It is polled with a no-op
//! waker inside the task actor's `handle`, under `catch_unwind`; no executor ever polls it. It
//! awaits only what [`TaskContext`] offers, and each of those is an effect that resumes the body
//! when it completes.

use std::future::Future;
use std::pin::Pin;

use crate::ids::ResultPartitionId;

mod actor;
mod context;
mod input;
mod output;
mod shared;
mod silence;
#[cfg(test)]
mod tests;

pub use actor::TaskActor;
pub use context::TaskContext;
pub use input::InputBuffer;

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

/// Directory of the result partitions on the `local` volume.
pub const PARTITION_DIRECTORY: &str = "partitions";

/// The one file of a partition on the `local` volume. A partition without bytes has none.
pub fn partition_path(partition: ResultPartitionId) -> String {
    format!("{PARTITION_DIRECTORY}/{}-{}", partition.data_set, partition.producer)
}
