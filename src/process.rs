//! Which actors a process consists of. The simulator and the real runtime both start processes by
//! this list and tasks by [`task_actor`], so that they run the same engine.

use std::sync::Arc;

use crate::actor::{Actor, Boot};
use crate::api::Program;
use crate::ids::ActorId;
use crate::message::TaskDeploymentDescriptor;

/// The actors of a fresh incarnation, in the order in which they get [`crate::actor::Event::Start`].
pub fn actors(boot: &Boot, program: &Arc<Program>) -> Vec<(ActorId, Box<dyn Actor>)> {
    let _ = (boot, program);
    Vec::new()
}

/// The actor of one task. It reports a job that cannot be built as the task's failure.
pub fn task_actor(boot: &Boot, program: &Arc<Program>, task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
    let _ = (boot, program, task);
    todo!()
}
