//! Which finished partitions exist where, as far as the JobMaster knows (Flink's
//! JobMasterPartitionTracker). Tracked means available.

use std::collections::BTreeMap;

use crate::ids::{ProcessId, ResultPartitionId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedPartition {
    pub location: ProcessId,
}

#[derive(Debug, Default)]
pub struct PartitionTracker {
    partitions: BTreeMap<ResultPartitionId, TrackedPartition>,
}

impl PartitionTracker {
    pub fn track(&mut self, partition: ResultPartitionId, location: ProcessId) {
        self.partitions.insert(partition, TrackedPartition { location });
    }

    pub fn get(&self, partition: ResultPartitionId) -> Option<TrackedPartition> {
        self.partitions.get(&partition).copied()
    }

    /// Forgets a partition; says where it was.
    pub fn untrack(&mut self, partition: ResultPartitionId) -> Option<ProcessId> {
        self.partitions.remove(&partition).map(|tracked| tracked.location)
    }

    /// Forgets all partitions at a location.
    pub fn untrack_location(&mut self, location: ProcessId) {
        self.partitions.retain(|_, tracked| tracked.location != location);
    }
}
