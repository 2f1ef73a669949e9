//! The real runtime: carries out the effects of actors on threads, TCP connections and real files,
//! and hosts the `revenant` program. It decides nothing about jobs; the same actors run in the
//! simulator. Every actor has a thread of its own, so that one that is busy delays no other.

use crate::actor::{Actor, Boot};
use crate::api::Program;
use crate::ids::ActorId;
use crate::message::TaskDeploymentDescriptor;
use std::sync::Arc;

mod actor_thread;
pub mod cli;
pub mod disk;
mod disk_pool;
mod network;
mod process;
pub mod recording;
mod supervisor;
#[cfg(test)]
mod tests;
mod timers;

pub use process::{Observer, ProcessOptions, RunningProcess, StartError};

/// What processes consist of. Actors stay on the thread that made them.
pub trait Engine: Send + Sync + 'static {
    /// The actors of a fresh incarnation, always the same ids in the same order. Called once for
    /// each of them, on its thread.
    fn actors(&self, boot: &Boot) -> Vec<(ActorId, Box<dyn Actor>)>;

    fn task(&self, boot: &Boot, task: TaskDeploymentDescriptor) -> Box<dyn Actor>;
}

impl Engine for Arc<Program> {
    fn actors(&self, boot: &Boot) -> Vec<(ActorId, Box<dyn Actor>)> {
        crate::process::actors(boot, self)
    }

    fn task(&self, boot: &Boot, task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        crate::process::task_actor(boot, self, task)
    }
}
