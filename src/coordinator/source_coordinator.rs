//! Assigns the splits of one source vertex. Every split is at any time either in the pool or with
//! exactly one subtask; what a finished subtask holds was consumed, what an unfinished one holds
//! comes back when it is reset (FLIP-383, OperatorCoordinator#subtaskReset).
//!
//! With static assignment each subtask has a pool of its own: split `i` belongs to subtask `i` modulo
//! the parallelism, so there is nothing that a snapshot would have to say.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::SourceSplit;

use super::{CoordinatorSnapshot, SplitAssignment, SplitEnumeratorFactory};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCoordinator {
    splits: Vec<SourceSplit>,
    assignment: SplitAssignment,
    supports_batch_snapshot: bool,
    /// Of the vertex; for static assignment.
    parallelism: u32,
    /// For dynamic assignment.
    pool: BTreeSet<u32>,
    /// By subtask, in the order of assignment.
    assigned: BTreeMap<u32, Vec<u32>>,
    /// Subtasks that were told that there will be no more: they may have ended already, so nothing
    /// that comes back to the pool later may be given to them.
    no_more: BTreeSet<u32>,
}

impl SourceCoordinator {
    pub fn new(factory: &dyn SplitEnumeratorFactory) -> Self {
        Self::with_splits(factory, factory.splits())
    }

    /// With the splits that were enumerated when the job was submitted; split `i` has id `i`.
    pub fn with_splits(factory: &dyn SplitEnumeratorFactory, splits: Vec<SourceSplit>) -> Self {
        let pool = splits.iter().map(|split| split.id).collect();
        Self {
            splits,
            assignment: factory.assignment(),
            supports_batch_snapshot: factory.supports_batch_snapshot(),
            parallelism: 1,
            pool,
            assigned: BTreeMap::new(),
            no_more: BTreeSet::new(),
        }
    }

    /// The vertex has so many subtasks.
    pub fn set_parallelism(&mut self, parallelism: u32) {
        self.parallelism = parallelism.max(1);
    }

    /// A split that is lost, or with more than one subtask or the pool, if there is one.
    pub fn contradiction(&self) -> Option<String> {
        let mut owners = vec![0_u32; self.splits.len()];
        let assigned = self.assigned.values().flatten();
        let pooled = self.pool.iter().filter(|_| self.assignment == SplitAssignment::Dynamic);
        for &split in assigned.chain(pooled) {
            match owners.get_mut(split as usize) {
                Some(owners) => *owners += 1,
                None => return Some(format!("split {split} does not exist")),
            }
        }
        let at_least = u32::from(self.assignment == SplitAssignment::Dynamic);
        let wrong = owners.iter().position(|owners| !(at_least..=1).contains(owners))?;
        Some(format!("split {wrong} is in {} places", owners[wrong]))
    }

    pub fn split_count(&self) -> u32 {
        self.splits.len() as u32
    }

    /// The split that a subtask works on after the `received` that it has got: one that it was
    /// assigned already, if the answer was lost, or else a new one; `None` when there is none left.
    /// The error says that it cannot have got so many.
    pub fn split_after(&mut self, subtask: u32, received: u32) -> Result<Option<SourceSplit>, String> {
        let assigned = self.assigned(subtask);
        if received as usize > assigned.len() {
            return Err(format!(
                "subtask {subtask} says that it received {received} splits, and was assigned {}",
                assigned.len()
            ));
        }
        Ok(match assigned.get(received as usize) {
            Some(&id) => self.splits.get(id as usize).cloned(),
            None if self.no_more.contains(&subtask) => None,
            None => self.next_split(subtask),
        })
    }

    /// Assigns the next split to a subtask; `None` when there is none left.
    pub fn next_split(&mut self, subtask: u32) -> Option<SourceSplit> {
        let next = match self.assignment {
            SplitAssignment::Dynamic => self.pool.pop_first(),
            SplitAssignment::Static => {
                let before = self.assigned(subtask).len() as u64;
                let id = u64::from(subtask) + before * u64::from(self.parallelism);
                u32::try_from(id).ok().filter(|&id| (id as usize) < self.splits.len())
            }
        };
        let Some(id) = next else {
            self.no_more.insert(subtask);
            return None;
        };
        self.assigned.entry(subtask).or_default().push(id);
        self.splits.get(id as usize).cloned()
    }

    /// What a subtask was assigned and has not given back, in order.
    pub fn assigned(&self, subtask: u32) -> &[u32] {
        self.assigned.get(&subtask).map_or(&[], Vec::as_slice)
    }

    /// Takes a subtask's splits back into the pool: it will run again.
    pub fn subtask_reset(&mut self, subtask: u32) {
        let splits = self.unassign(subtask);
        self.add_splits_back(splits);
    }

    /// Takes a subtask's splits from it.
    pub(crate) fn unassign(&mut self, subtask: u32) -> Vec<u32> {
        self.no_more.remove(&subtask);
        self.assigned.remove(&subtask).unwrap_or_default()
    }

    /// Flink's SplitEnumerator#addSplitsBack.
    fn add_splits_back(&mut self, splits: Vec<u32>) {
        if self.assignment == SplitAssignment::Dynamic {
            self.pool.extend(splits);
        }
    }

    /// Flink's checkpointCoordinator(NO_CHECKPOINT): the assignments, from which the rest follows.
    /// `None` from an enumerator that has no snapshots.
    pub fn checkpoint_coordinator(&self) -> Option<CoordinatorSnapshot> {
        let snapshot = || postcard::to_stdvec(&self.assigned).expect("a map of numbers always encodes");
        self.supports_batch_snapshot.then(|| snapshot().into())
    }

    /// Flink's resetToCheckpoint: replaces the state by a snapshot's. An error says why the
    /// snapshot cannot be one of this source's, and leaves the state as it was.
    pub fn reset_to_checkpoint(&mut self, snapshot: &CoordinatorSnapshot) -> Result<(), String> {
        let assigned: BTreeMap<u32, Vec<u32>> =
            postcard::from_bytes(snapshot).map_err(|error| format!("coordinator snapshot: {error}"))?;
        let mut pool: BTreeSet<u32> = self.splits.iter().map(|split| split.id).collect();
        for (subtask, splits) in &assigned {
            for split in splits {
                if !pool.remove(split) {
                    return Err(format!(
                        "coordinator snapshot: split {split} of subtask {subtask} is unknown or assigned twice"
                    ));
                }
            }
        }
        self.pool = pool;
        self.assigned = assigned;
        self.no_more.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    struct Four;

    impl SplitEnumeratorFactory for Four {
        fn splits(&self) -> Vec<SourceSplit> {
            (0..4).map(|id| SourceSplit { id, payload: Bytes::new() }).collect()
        }
    }

    fn ids(coordinator: &mut SourceCoordinator, subtask: u32) -> Vec<u32> {
        std::iter::from_fn(|| coordinator.next_split(subtask)).map(|split| split.id).collect()
    }

    #[test]
    fn every_split_is_assigned_once() {
        let mut coordinator = SourceCoordinator::new(&Four);
        assert_eq!(coordinator.next_split(0).unwrap().id, 0);
        assert_eq!(ids(&mut coordinator, 1), [1, 2, 3]);
        assert_eq!(coordinator.assigned(1), [1, 2, 3]);
    }

    #[test]
    fn b23_a_reset_subtask_gives_its_splits_back_and_each_is_assigned_once() {
        let mut coordinator = SourceCoordinator::new(&Four);
        coordinator.next_split(0);
        coordinator.next_split(1);
        coordinator.subtask_reset(0);
        assert_eq!(ids(&mut coordinator, 1), [0, 2, 3]);
        assert_eq!(coordinator.assigned(0), [0; 0]);
    }

    #[test]
    fn a_subtask_that_is_reset_twice_in_a_row_gives_exactly_its_splits_back_each_time() {
        let mut coordinator = SourceCoordinator::new(&Four);
        coordinator.next_split(0);
        coordinator.next_split(1);
        coordinator.next_split(0);
        for _ in 0..2 {
            let before = coordinator.pool.clone();
            coordinator.subtask_reset(0);
            let back: Vec<u32> = coordinator.pool.difference(&before).copied().collect();
            assert_eq!(back, [0, 2]);
            assert_eq!(coordinator.assigned(1), [1]);
            assert_eq!([0, 2].map(|_| coordinator.next_split(0).unwrap().id), [0, 2]);
        }
    }

    #[test]
    fn a_repeated_request_gets_the_split_that_it_missed() {
        let mut coordinator = SourceCoordinator::new(&Four);
        for received in [0, 0, 1, 1, 0] {
            assert_eq!(coordinator.split_after(0, received).unwrap().unwrap().id, received);
        }
        assert_eq!(coordinator.assigned(0), [0, 1]);
    }

    #[test]
    fn a_reader_that_received_more_than_it_was_assigned_is_an_error_and_changes_nothing() {
        let mut coordinator = SourceCoordinator::new(&Four);
        coordinator.next_split(0);
        let before = coordinator.clone();
        let error = coordinator.split_after(0, 2).unwrap_err();
        assert_eq!(error, "subtask 0 says that it received 2 splits, and was assigned 1");
        assert!(coordinator.split_after(1, u32::MAX).is_err());
        assert_eq!(coordinator, before);
    }

    #[test]
    fn b25_a_subtask_that_was_told_no_more_gets_no_split_that_comes_back_later() {
        let mut coordinator = SourceCoordinator::new(&Four);
        ids(&mut coordinator, 1);
        assert_eq!(coordinator.split_after(0, 0), Ok(None));
        coordinator.subtask_reset(1);
        assert_eq!(coordinator.split_after(0, 0), Ok(None));
        assert_eq!(coordinator.split_after(1, 0).unwrap().unwrap().id, 0);
        coordinator.subtask_reset(0);
        assert_eq!(coordinator.split_after(0, 0).unwrap().unwrap().id, 1);
    }

    #[test]
    fn a_snapshot_restores_pool_and_assignments() {
        let mut coordinator = SourceCoordinator::new(&Four);
        coordinator.next_split(0);
        coordinator.next_split(1);
        let snapshot = coordinator.checkpoint_coordinator().unwrap();
        let before = coordinator.clone();
        ids(&mut coordinator, 2);
        coordinator.reset_to_checkpoint(&snapshot).unwrap();
        assert_eq!(coordinator, before);
    }

    struct Fixed;

    impl SplitEnumeratorFactory for Fixed {
        fn splits(&self) -> Vec<SourceSplit> {
            (0..5).map(|id| SourceSplit { id, payload: Bytes::new() }).collect()
        }

        fn assignment(&self) -> SplitAssignment {
            SplitAssignment::Static
        }

        fn supports_batch_snapshot(&self) -> bool {
            false
        }
    }

    #[test]
    fn with_static_assignment_each_attempt_of_a_subtask_gets_the_same_splits_in_the_same_order() {
        let mut coordinator = SourceCoordinator::new(&Fixed);
        coordinator.set_parallelism(2);
        assert_eq!(ids(&mut coordinator, 1), [1, 3]);
        coordinator.next_split(0);
        coordinator.subtask_reset(1);
        assert_eq!(coordinator.split_after(1, 0).unwrap().unwrap().id, 1);
        assert_eq!(ids(&mut coordinator, 0), [2, 4]);
        coordinator.subtask_reset(0);
        assert_eq!(ids(&mut coordinator, 0), [0, 2, 4]);
        assert_eq!(ids(&mut coordinator, 1), [3]);
        assert_eq!(coordinator.checkpoint_coordinator(), None);
    }

    #[test]
    fn a_snapshot_that_cannot_be_is_refused_and_changes_nothing() {
        let mut coordinator = SourceCoordinator::new(&Four);
        coordinator.next_split(0);
        let before = coordinator.clone();
        let twice: BTreeMap<u32, Vec<u32>> = [(0, vec![1]), (1, vec![1])].into();
        let unknown: BTreeMap<u32, Vec<u32>> = [(0, vec![9])].into();
        for wrong in
            [postcard::to_stdvec(&twice).unwrap(), postcard::to_stdvec(&unknown).unwrap(), vec![0xff]]
        {
            assert!(coordinator.reset_to_checkpoint(&wrong.into()).is_err());
            assert_eq!(coordinator, before);
        }
    }
}
