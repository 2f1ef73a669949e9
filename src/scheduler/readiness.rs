//! Which subtasks can be deployed now. A partition can be read when its producer's finish counts and
//! the tracker knows the partition of that very attempt; a subtask is ready when it waits to be
//! deployed and all that it reads can be read. Where a task goes is not decided here.
//!
//! Finishes, resets and the tracker only say what they changed. [`ExecutionGraph::next_ready`] looks
//! at that before it answers, and at the state as it is then, so that the order of changes does not
//! matter. A change costs as much as the groups that read the partition; a subtask is looked at when
//! the last partition of a group comes, never because some other one did.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{ExecutionVertexId, IntermediateDataSetId, ResultPartitionId};
use crate::message::ShuffleDescriptor;

use super::{ExecutionGraph, PartitionTracker, SubtaskState};

#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// By data set and partition: whether it could be read when it was last looked at.
    pub available: Vec<Vec<bool>>,
    /// Subtasks that were finished or are, and changed since.
    pub changed: Vec<ExecutionVertexId>,
    /// All subtasks that are ready, and some that are not.
    pub candidates: BTreeSet<ExecutionVertexId>,
    /// Partitions and subtasks that were looked at: tests count work, not time.
    #[cfg(test)]
    pub looks: u64,
}

impl ExecutionGraph {
    /// The first subtask, in topological order, that waits for nothing but a slot.
    pub fn next_ready(&mut self, tracker: &mut PartitionTracker) -> Option<ExecutionVertexId> {
        self.look_at_changes(tracker);
        while let Some(&id) = self.readiness.candidates.first() {
            self.count_look();
            if self.is_ready(id) {
                return Some(id);
            }
            self.readiness.candidates.remove(&id);
        }
        None
    }

    fn is_ready(&self, id: ExecutionVertexId) -> bool {
        self.initialized(id.vertex).is_some_and(|initialized| {
            let is_created = initialized
                .subtasks
                .get(id.subtask as usize)
                .is_some_and(|subtask| subtask.state == SubtaskState::Created);
            let groups = initialized.gates.iter().filter_map(|gate| gate.of_subtask(id.subtask));
            is_created && groups.map(|group| group.missing).all(|missing| missing == 0)
        })
    }

    fn look_at_changes(&mut self, tracker: &mut PartitionTracker) {
        let mut changed: Vec<(IntermediateDataSetId, u32)> = tracker
            .take_changed()
            .into_iter()
            .map(|partition| (partition.data_set, partition.index()))
            .collect();
        for producer in std::mem::take(&mut self.readiness.changed) {
            let outputs = &self.graph.vertex(producer.vertex).outputs;
            changed.extend(outputs.iter().map(|&data_set| (data_set, producer.subtask)));
        }
        for (data_set, index) in changed {
            self.look_at(data_set, index, tracker);
        }
    }

    fn look_at(&mut self, data_set: IntermediateDataSetId, index: u32, tracker: &PartitionTracker) {
        self.count_look();
        let is_available =
            self.partition(data_set, index).is_some_and(|partition| tracker.get(partition).is_some());
        let known = self.readiness.available.get_mut(data_set.0 as usize);
        let Some(known) = known.and_then(|partitions| partitions.get_mut(index as usize)) else { return };
        let was_available = std::mem::replace(known, is_available);
        let consumer = self.graph.edge(data_set).consumer;
        let gate = self.gate(data_set);
        let Some(initialized) = &mut self.vertices[consumer.0 as usize].initialized else { return };
        let Some(gate) = initialized.gates.get_mut(gate) else { return };
        for group in gate.of_partition_mut(index) {
            group.descriptors = None;
            match (was_available, is_available) {
                (false, true) => group.missing -= 1,
                (true, false) => group.missing += 1,
                (true, true) | (false, false) => continue,
            }
            if group.missing == 0 {
                #[cfg(test)]
                {
                    self.readiness.looks += group.consumers.len() as u64;
                }
                let waits =
                    |subtask: u32| initialized.subtasks[subtask as usize].state == SubtaskState::Created;
                let waiting = group.consumers.iter().filter(|&&subtask| waits(subtask));
                self.readiness
                    .candidates
                    .extend(waiting.map(|&subtask| ExecutionVertexId::new(consumer, subtask)));
            }
        }
    }

    /// Where the partitions are that a subtask reads through a gate, as of the last
    /// [`Self::next_ready`]; those that cannot be read are left out. All that read the same share it.
    pub fn shuffle_descriptors(
        &mut self,
        id: ExecutionVertexId,
        gate: usize,
        tracker: &PartitionTracker,
    ) -> Arc<Vec<ShuffleDescriptor>> {
        let data_set = self.graph.vertex(id.vertex).inputs.get(gate).copied();
        let group = self
            .initialized(id.vertex)
            .and_then(|initialized| initialized.gates.get(gate)?.of_subtask(id.subtask));
        let (Some(data_set), Some(group)) = (data_set, group) else { return Arc::default() };
        if let Some(known) = &group.descriptors {
            return Arc::clone(known);
        }
        let partitions = group.partitions.indices().filter_map(|index| self.partition(data_set, index));
        let descriptors = partitions.filter_map(|partition| {
            Some(ShuffleDescriptor { partition, location: tracker.get(partition)?.location })
        });
        let descriptors = Arc::new(descriptors.collect::<Vec<_>>());
        let initialized = self.vertices[id.vertex.0 as usize].initialized.as_mut();
        if let Some(group) =
            initialized.and_then(|initialized| initialized.gates[gate].of_subtask_mut(id.subtask))
        {
            group.descriptors = Some(Arc::clone(&descriptors));
        }
        descriptors
    }

    /// A partition by the attempt whose finish counts now.
    fn partition(&self, data_set: IntermediateDataSetId, index: u32) -> Option<ResultPartitionId> {
        let edge = self.graph.edges.get(data_set.0 as usize)?;
        let finish = self.finish(ExecutionVertexId::new(edge.producer, index))?;
        Some(ResultPartitionId { data_set, producer: finish.attempt })
    }

    #[cfg_attr(
        not(test),
        expect(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "counts in tests only")
    )]
    fn count_look(&mut self) {
        #[cfg(test)]
        {
            self.readiness.looks += 1;
        }
    }
}
