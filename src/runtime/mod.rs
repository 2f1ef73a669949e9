//! The real runtime: carries out the effects of actors on threads, TCP connections and real files,
//! and hosts the `revenant` program. It decides nothing about jobs; the same actors run in the
//! simulator. Every actor has a thread of its own, so that one that is busy delays no other.

use crate::actor::{Actor, Boot};
use crate::api::Program;
use crate::ids::{ActorId, ProcessId};
use crate::message::TaskDeploymentDescriptor;
use std::sync::Arc;

mod actor_thread;
pub mod cli;
mod directories;
pub mod disk;
mod disk_pool;
mod log;
mod mini_cluster;
mod network;
mod process;
pub mod recording;
mod results;
mod start;
mod supervisor;
#[cfg(test)]
mod tests;
mod timers;

pub use mini_cluster::{JobExecutionError, JobExecutionResult, MiniCluster, run};
pub use network::frame;
pub use process::{Observer, ProcessOptions, RunningProcess, StartError};
pub use results::ResultError;

/// What processes consist of. Actors stay on the thread that made them.
pub trait Engine: Send + Sync + 'static {
    /// The actors of a process, in the order in which they start.
    fn actor_ids(&self, process: ProcessId) -> &'static [ActorId];

    /// One of them, of a fresh incarnation. Called on its thread; `None` if it is none of them.
    fn actor(&self, boot: &Boot, id: ActorId) -> Option<Box<dyn Actor>>;

    fn task(&self, boot: &Boot, task: TaskDeploymentDescriptor) -> Box<dyn Actor>;
}

impl Engine for Arc<Program> {
    fn actor_ids(&self, process: ProcessId) -> &'static [ActorId] {
        crate::process::actor_ids(process)
    }

    fn actor(&self, boot: &Boot, id: ActorId) -> Option<Box<dyn Actor>> {
        crate::process::actor(boot, self, id)
    }

    fn task(&self, boot: &Boot, task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        crate::process::task_actor(boot, self, task)
    }
}
