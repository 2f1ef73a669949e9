//! What must hold of a JobMaster's state between any two events. Asked for by simulations, after every event.

use crate::scheduler::Slots;

use super::{JobMaster, Phase};

impl JobMaster {
    pub(super) fn state_contradicts(&self) -> Option<String> {
        self.execution
            .contradiction()
            .or_else(|| self.splits_contradict())
            .or_else(|| matches!(self.phase, Phase::Running).then(|| self.running_contradicts()).flatten())
    }

    /// Every split is in the pool or with one subtask.
    fn splits_contradict(&self) -> Option<String> {
        let mut coordinators = self.coordinators.iter();
        coordinators.find_map(|(vertex, coordinator)| {
            coordinator.contradiction().map(|wrong| format!("of the source {vertex}, {wrong}"))
        })
    }

    /// Of a job that runs, every attempt has a slot of a registered worker and reads finished producers, and
    /// every partition that is still to be read is somewhere.
    fn running_contradicts(&self) -> Option<String> {
        for (task_manager, Slots { free, total }) in self.slots.all() {
            let taken = self.execution.attempts_at(task_manager).count() as u32;
            if free + taken != total {
                return Some(format!("of {total} slots of {task_manager} {free} are free and {taken} taken"));
            }
        }
        for (location, attempt) in self.execution.deployed() {
            if !self.workers.is_registered(location) {
                return Some(format!("{attempt} runs at {location}, which is not registered"));
            }
            let mut producers = self.execution.producers(attempt.subtask);
            if let Some((_, producer)) =
                producers.find(|&(_, producer)| !self.execution.is_finished(producer))
            {
                return Some(format!("{attempt} runs, though its producer {producer} is not finished"));
            }
        }
        let mut required = self.execution.required_partitions().into_iter();
        let lost = required.find(|&partition| self.tracker.get(partition).is_none())?;
        Some(format!("{lost} is still to be read and nowhere, and its producer does not run again"))
    }
}
