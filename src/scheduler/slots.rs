//! The slots of the registered TaskManagers. A slot is taken on the TaskManager with the most free
//! slots, the one with the lowest id among equals, so that the same state gives the same choice.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::ids::ProcessId;

#[derive(Debug, Default)]
pub struct SlotPool {
    slots: BTreeMap<ProcessId, Slots>,
    /// The same TaskManagers in the order in which they are chosen.
    order: BTreeSet<(Reverse<u32>, ProcessId)>,
}

/// Of one TaskManager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    pub free: u32,
    pub total: u32,
}

impl SlotPool {
    pub fn add(&mut self, task_manager: ProcessId, slots: u32) {
        self.remove(task_manager);
        self.set(task_manager, Slots { free: slots, total: slots });
    }

    pub fn remove(&mut self, task_manager: ProcessId) {
        if let Some(Slots { free, .. }) = self.slots.remove(&task_manager) {
            self.order.remove(&(Reverse(free), task_manager));
        }
    }

    pub fn take(&mut self) -> Option<ProcessId> {
        let &(_, task_manager) = self.order.first()?;
        let slots = *self.slots.get(&task_manager)?;
        self.set(task_manager, Slots { free: slots.free.checked_sub(1)?, ..slots });
        Some(task_manager)
    }

    pub fn give_back(&mut self, task_manager: ProcessId) {
        if let Some(&slots) = self.slots.get(&task_manager) {
            self.set(task_manager, Slots { free: slots.free + 1, ..slots });
        }
    }

    pub fn all(&self) -> impl Iterator<Item = (ProcessId, Slots)> {
        self.slots.iter().map(|(&task_manager, &slots)| (task_manager, slots))
    }

    fn set(&mut self, task_manager: ProcessId, slots: Slots) {
        if let Some(before) = self.slots.insert(task_manager, slots) {
            self.order.remove(&(Reverse(before.free), task_manager));
        }
        self.order.insert((Reverse(slots.free), task_manager));
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

    #[test]
    fn the_choice_is_that_of_a_look_at_all_task_managers() {
        let mut slots = SlotPool::default();
        let mut free: BTreeMap<ProcessId, u32> = BTreeMap::new();
        let mut draw = 1_u32;
        for _ in 0..2000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let process = ProcessId::TaskManager((draw >> 8) % 7);
            match draw >> 29 {
                0 => {
                    slots.add(process, 3);
                    free.insert(process, 3);
                }
                1 if (draw >> 16).is_multiple_of(4) => {
                    slots.remove(process);
                    free.remove(&process);
                }
                1..=3 => {
                    slots.give_back(process);
                    free.entry(process).and_modify(|free| *free += 1);
                }
                _ => {
                    let most = free.values().copied().max().filter(|&most| most > 0);
                    let expected = free.iter().find(|(_, free)| Some(**free) == most).map(|(id, _)| *id);
                    assert_eq!(slots.take(), expected);
                    if let Some(free) = expected.and_then(|id| free.get_mut(&id)) {
                        *free -= 1;
                    }
                }
            }
        }
    }
}
