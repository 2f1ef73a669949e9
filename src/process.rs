//! Which actors a process consists of. The simulator and the real runtime both start processes by
//! this list and tasks by [`task_actor`], so that they run the same engine.

use std::sync::Arc;

use crate::actor::{Actor, Boot, Event, ExitStatus, Outbox, Time};
use crate::api::Program;
use crate::client::Client;
use crate::high_availability::HighAvailability;
use crate::ids::{ActorId, ProcessId};
use crate::job_event::JobEventWriter;
use crate::job_manager::JobMaster;
use crate::message::TaskDeploymentDescriptor;
use crate::shuffle::ShuffleService;
use crate::task::TaskActor;
use crate::task_manager::TaskExecutor;

/// The actors of a fresh incarnation, in the order in which they get [`Event::Start`].
pub fn actors(boot: &Boot, program: &Arc<Program>) -> Vec<(ActorId, Box<dyn Actor>)> {
    match boot.process {
        ProcessId::HighAvailability => {
            vec![(ActorId::HighAvailability, Box::new(HighAvailability::new(boot)))]
        }
        ProcessId::JobManager => {
            let master: Box<dyn Actor> = match JobMaster::new(boot, program) {
                Ok(master) => Box::new(master),
                Err(reason) => Box::new(Refusal { reason }),
            };
            vec![(ActorId::Writer, Box::new(JobEventWriter::new(boot))), (ActorId::Master, master)]
        }
        ProcessId::TaskManager(_) => vec![
            (ActorId::Shuffle, Box::new(ShuffleService::new(boot))),
            (ActorId::Executor, Box::new(TaskExecutor::new(boot))),
        ],
        ProcessId::Client => vec![(ActorId::Client, Box::new(Client::new(boot, false)))],
    }
}

/// The actor of one task. It reports a job that cannot be built as the task's failure.
pub fn task_actor(boot: &Boot, program: &Arc<Program>, task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
    Box::new(TaskActor::new(boot, program, task))
}

/// Stands in for an actor that cannot be made: ends the process with the reason.
struct Refusal {
    reason: String,
}

impl Actor for Refusal {
    fn handle(&mut self, _now: Time, event: Event, out: &mut Outbox) {
        if event == Event::Start {
            out.exit(ExitStatus::Failure(self.reason.clone()));
        }
    }
}
