//! The slots of the registered TaskManagers. A slot is taken on the TaskManager with the most free
//! slots, the one with the lowest id among equals, so that the same state gives the same choice.

use std::collections::BTreeMap;

use crate::ids::ProcessId;

#[derive(Debug, Default)]
pub struct SlotPool {
    /// Free slots by TaskManager.
    free: BTreeMap<ProcessId, u32>,
}

impl SlotPool {
    pub fn add(&mut self, task_manager: ProcessId, slots: u32) {
        self.free.insert(task_manager, slots);
    }

    pub fn remove(&mut self, task_manager: ProcessId) {
        self.free.remove(&task_manager);
    }

    pub fn take(&mut self) -> Option<ProcessId> {
        let (&process, _) =
            self.free.iter().rev().max_by_key(|(_, free)| **free).filter(|(_, free)| **free > 0)?;
        *self.free.get_mut(&process)? -= 1;
        Some(process)
    }

    pub fn give_back(&mut self, task_manager: ProcessId) {
        if let Some(free) = self.free.get_mut(&task_manager) {
            *free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_where_most_are_free_and_first_id_first() {
        let (one, two) = (ProcessId::TaskManager(1), ProcessId::TaskManager(2));
        let mut slots = SlotPool::default();
        slots.add(one, 2);
        slots.add(two, 2);
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [one, two, one, two]);
        slots.give_back(two);
        assert_eq!(slots.take(), Some(two));
        slots.remove(one);
        slots.give_back(one);
        assert_eq!(slots.take(), None);
    }
}
