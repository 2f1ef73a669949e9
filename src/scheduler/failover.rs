//! What must run again when subtasks fail or partitions are lost (Flink's
//! RestartPipelinedRegionFailoverStrategy; every exchange is blocking, so a region is a subtask).

use std::collections::BTreeSet;

use crate::ids::{ExecutionVertexId, ResultPartitionId};

use super::{ExecutionGraph, PartitionTracker, SubtaskState};

impl ExecutionGraph {
    /// The roots, the producers of partitions that a restarted subtask needs and that are not
    /// tracked, and all consumers, finished ones included: a producer that runs again may be
    /// given other splits, so nothing that read its old result may stay. Subtasks that have not
    /// been started are left out. In topological order.
    pub fn restart_set(
        &self,
        roots: &[ExecutionVertexId],
        tracker: &PartitionTracker,
    ) -> BTreeSet<ExecutionVertexId> {
        let mut restart = BTreeSet::new();
        let mut work: Vec<ExecutionVertexId> = roots.to_vec();
        while let Some(id) = work.pop() {
            if self.subtask(id).is_none() || !restart.insert(id) {
                continue;
            }
            work.extend(
                self.producers(id)
                    .filter(|&(data_set, producer)| match self.finish(producer) {
                        Some(finish) => {
                            tracker.get(ResultPartitionId { data_set, producer: finish.attempt }).is_none()
                        }
                        None => false,
                    })
                    .map(|(_, producer)| producer),
            );
            for &data_set in &self.graph.vertex(id.vertex).outputs {
                work.extend(self.consumers(data_set, id.subtask).unwrap_or_default());
            }
        }
        restart.retain(|&id| self.subtask(id).is_some_and(|subtask| subtask.state != SubtaskState::Created));
        restart
    }
}
