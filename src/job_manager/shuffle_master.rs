//! What is known of the partitions that workers kept, while a recovery waits for them (Flink's
//! ShuffleMaster; FLIP-383 adds getAllPartitionWithMetrics to it). It never decides what the job
//! needs: it is told what is expected, so that waiting can end early.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ProcessId, ResultPartitionId};
use crate::message::PartitionWithMetrics;

/// Where a partition is, and the bytes of each of its subpartitions.
pub(super) type Reported = BTreeMap<ResultPartitionId, (ProcessId, Vec<u64>)>;

#[derive(Debug, Default)]
pub(super) struct ShuffleMaster {
    reported: Reported,
    /// All that is waited for.
    expected: BTreeSet<ResultPartitionId>,
    /// What of it was not reported.
    missing: BTreeSet<ResultPartitionId>,
}

impl ShuffleMaster {
    /// A worker says what it keeps.
    pub(super) fn add(
        &mut self,
        process: ProcessId,
        partitions: impl IntoIterator<Item = PartitionWithMetrics>,
    ) {
        for PartitionWithMetrics { partition, subpartition_bytes } in partitions {
            self.missing.remove(&partition);
            self.reported.insert(partition, (process, subpartition_bytes));
        }
    }

    /// A worker is gone, with what it kept.
    pub(super) fn remove(&mut self, process: ProcessId) {
        let gone = self.reported.extract_if(.., |_, (location, _)| *location == process);
        for (partition, _) in gone.filter(|(partition, _)| self.expected.contains(partition)) {
            self.missing.insert(partition);
        }
    }

    /// FLIP-383 getAllPartitionWithMetrics, with what is expected.
    pub(super) fn expect(&mut self, expected: BTreeSet<ResultPartitionId>) {
        self.missing =
            expected.iter().filter(|partition| !self.reported.contains_key(partition)).copied().collect();
        self.expected = expected;
    }

    /// Whether all that is expected was reported.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Ends the wait: what was reported, and what of the expected was not.
    pub(super) fn take(&mut self) -> (Reported, BTreeSet<ResultPartitionId>) {
        self.expected.clear();
        (std::mem::take(&mut self.reported), std::mem::take(&mut self.missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{
        ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId,
    };

    const ONE: ProcessId = ProcessId::TaskManager(1);
    const TWO: ProcessId = ProcessId::TaskManager(2);

    fn id(subtask: u32) -> ResultPartitionId {
        let subtask = ExecutionVertexId::new(JobVertexId(0), subtask);
        let producer = ExecutionAttemptId { subtask, epoch: FencingToken(1), number: 1 };
        ResultPartitionId { data_set: IntermediateDataSetId(0), producer }
    }

    fn partition(subtask: u32) -> PartitionWithMetrics {
        PartitionWithMetrics { partition: id(subtask), subpartition_bytes: vec![7] }
    }

    #[test]
    fn the_wait_ends_when_all_that_is_expected_was_reported_in_whatever_order() {
        let mut master = ShuffleMaster::default();
        master.add(ONE, [partition(0), partition(9)]);
        master.expect([id(0), id(1)].into());
        assert!(!master.is_complete());
        master.add(TWO, [partition(1)]);
        assert!(master.is_complete());
        let (reported, missing) = master.take();
        assert_eq!(reported.keys().copied().collect::<Vec<_>>(), [id(0), id(1), id(9)]);
        assert_eq!(reported[&id(1)], (TWO, vec![7]));
        assert!(missing.is_empty());
    }

    #[test]
    fn a_worker_that_is_lost_takes_its_partitions_along_and_they_are_waited_for_again() {
        let mut master = ShuffleMaster::default();
        master.expect([id(0)].into());
        master.add(ONE, [partition(0), partition(1)]);
        master.remove(ONE);
        assert!(!master.is_complete());
        let (reported, missing) = master.take();
        assert_eq!((reported.len(), missing), (0, [id(0)].into()));
    }
}
