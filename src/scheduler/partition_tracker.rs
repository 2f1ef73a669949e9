//! Which finished partitions exist where, as far as the JobMaster knows (Flink's
//! JobMasterPartitionTracker). Tracked means available. What changed is kept until the execution
//! graph has looked at it.

use std::collections::BTreeMap;

use crate::ids::{ProcessId, ResultPartitionId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedPartition {
    pub location: ProcessId,
}

#[derive(Debug, Default)]
pub struct PartitionTracker {
    partitions: BTreeMap<ResultPartitionId, TrackedPartition>,
    /// Partitions that came, went or moved since [`Self::take_changed`].
    changed: Vec<ResultPartitionId>,
}

impl PartitionTracker {
    pub fn track(&mut self, partition: ResultPartitionId, location: ProcessId) {
        self.partitions.insert(partition, TrackedPartition { location });
        self.changed.push(partition);
    }

    pub fn get(&self, partition: ResultPartitionId) -> Option<TrackedPartition> {
        self.partitions.get(&partition).copied()
    }

    /// Forgets a partition; says where it was.
    pub fn untrack(&mut self, partition: ResultPartitionId) -> Option<ProcessId> {
        let tracked = self.partitions.remove(&partition)?;
        self.changed.push(partition);
        Some(tracked.location)
    }

    /// Forgets all partitions at a location.
    pub fn untrack_location(&mut self, location: ProcessId) {
        self.partitions.retain(|&partition, tracked| {
            let stays = tracked.location != location;
            if !stays {
                self.changed.push(partition);
            }
            stays
        });
    }

    pub(super) fn take_changed(&mut self) -> Vec<ResultPartitionId> {
        std::mem::take(&mut self.changed)
    }
}
