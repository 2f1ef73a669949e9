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
use crate::shuffle::{ShuffleService, ShuffleWorker};
use crate::task::TaskActor;
use crate::task_manager::TaskExecutor;

/// The actors that a process begins with, in the order in which they get [`Event::Start`].
pub const fn actor_ids(process: ProcessId) -> &'static [ActorId] {
    match process {
        ProcessId::HighAvailability => &[ActorId::HighAvailability],
        ProcessId::JobManager(_) => &[ActorId::Writer, ActorId::Master],
        ProcessId::TaskManager(_) => &[ActorId::Shuffle, ActorId::Executor],
        ProcessId::Client => &[ActorId::Client],
        ProcessId::ShuffleService(_) => &[ActorId::Shuffle, ActorId::ShuffleWorker],
    }
}

/// The actors of a fresh incarnation: those of [`actor_ids`], in that order.
pub fn actors(boot: &Boot, program: &Arc<Program>) -> Vec<(ActorId, Box<dyn Actor>)> {
    let ids = actor_ids(boot.process).iter();
    ids.filter_map(|&id| Some((id, actor(boot, program, id)?))).collect()
}

/// One actor of a fresh incarnation; `None` for a task, which [`task_actor`] makes.
pub fn actor(boot: &Boot, program: &Arc<Program>, id: ActorId) -> Option<Box<dyn Actor>> {
    Some(match id {
        ActorId::HighAvailability => Box::new(HighAvailability::new(boot)),
        ActorId::Master => match JobMaster::new(boot, program) {
            Ok(master) => Box::new(master),
            Err(reason) => Box::new(Refusal { reason }),
        },
        ActorId::Writer => Box::new(JobEventWriter::new(boot)),
        ActorId::Shuffle => Box::new(ShuffleService::new(boot)),
        ActorId::Executor => Box::new(TaskExecutor::new(boot)),
        ActorId::Client => Box::new(Client::new(boot, false)),
        ActorId::ShuffleWorker => Box::new(ShuffleWorker::new(boot)),
        ActorId::Task(_) => return None,
    })
}

/// The actor of one task. It reports a job that cannot be built as the task's failure.
pub fn task_actor(boot: &Boot, program: &Arc<Program>, task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
    Box::new(TaskActor::new(boot, program, task))
}

/// Stands in for an actor that cannot be made: ends the process with the reason.
#[derive(Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Configuration;
    use crate::ids::SessionId;

    #[test]
    fn every_process_has_the_actors_of_its_list() {
        let processes = [
            ProcessId::HighAvailability,
            ProcessId::JOB_MANAGER,
            ProcessId::TaskManager(1),
            ProcessId::Client,
            ProcessId::ShuffleService(1),
        ];
        for process in processes {
            let config = Configuration::default();
            let boot = Boot { process, session: SessionId(1), config, volumes: vec![] };
            let actors = actors(&boot, &Arc::new(Program::new()));
            let ids: Vec<ActorId> = actors.into_iter().map(|(id, _)| id).collect();
            assert_eq!(ids, actor_ids(process));
            assert!(!ids.is_empty());
        }
    }
}
