//! Flink's ShuffleMaster. Where results go: to the disk of the TaskManager that produces them, or to
//! one of the registered shuffle services, each in turn; it decides for an attempt when it is deployed
//! and remembers the decision while the attempt runs. And what is known of the partitions that workers
//! kept, while a recovery waits for them (FLIP-383, getAllPartitionWithMetrics): it is told what is
//! expected, so that waiting can end early. Where partitions are otherwise, the tracker knows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::config::ShuffleServiceKind;
use crate::ids::{ExecutionAttemptId, ProcessId, ResultPartitionId};
use crate::message::PartitionWithMetrics;

/// Where a partition is, and the bytes of each of its subpartitions.
pub(super) type Reported = BTreeMap<ResultPartitionId, (ProcessId, Vec<u64>)>;

#[derive(Debug)]
pub(super) struct ShuffleMaster {
    kind: ShuffleServiceKind,
    /// The registered shuffle services.
    services: BTreeSet<ProcessId>,
    /// The service that was chosen last.
    last: Option<ProcessId>,
    /// Of attempts that run: the service to which their results go.
    placed: BTreeMap<ExecutionAttemptId, ProcessId>,
    reported: Reported,
    /// All that a recovery waits for.
    expected: BTreeSet<ResultPartitionId>,
    /// What of it was not reported.
    missing: BTreeSet<ResultPartitionId>,
}

impl ShuffleMaster {
    pub fn new(kind: ShuffleServiceKind) -> Self {
        Self {
            kind,
            services: BTreeSet::new(),
            last: None,
            placed: BTreeMap::new(),
            reported: Reported::new(),
            expected: BTreeSet::new(),
            missing: BTreeSet::new(),
        }
    }

    /// A worker is registered.
    pub fn add(&mut self, process: ProcessId) {
        if matches!(process, ProcessId::ShuffleService(_)) {
            self.services.insert(process);
        }
    }

    /// A worker is lost, with what it kept.
    pub fn remove(&mut self, process: ProcessId) {
        self.services.remove(&process);
        let gone = self.reported.extract_if(.., |_, (location, _)| *location == process);
        for (partition, _) in gone.filter(|(partition, _)| self.expected.contains(partition)) {
            self.missing.insert(partition);
        }
    }

    /// A worker says what it keeps.
    pub fn report(&mut self, process: ProcessId, partitions: impl IntoIterator<Item = PartitionWithMetrics>) {
        for PartitionWithMetrics { partition, subpartition_bytes } in partitions {
            self.missing.remove(&partition);
            self.reported.insert(partition, (process, subpartition_bytes));
        }
    }

    /// FLIP-383 getAllPartitionWithMetrics, with what is expected.
    pub fn expect(&mut self, expected: BTreeSet<ResultPartitionId>) {
        self.missing =
            expected.iter().filter(|partition| !self.reported.contains_key(partition)).copied().collect();
        self.expected = expected;
    }

    /// Whether all that is expected was reported.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Ends the wait: what was reported, and what of the expected was not.
    pub fn take_reported(&mut self) -> (Reported, BTreeSet<ResultPartitionId>) {
        self.expected.clear();
        (std::mem::take(&mut self.reported), std::mem::take(&mut self.missing))
    }

    /// Whether there is a place for results at all.
    pub fn has_place(&self) -> bool {
        self.kind == ShuffleServiceKind::TaskManager || !self.services.is_empty()
    }

    /// Chooses the place for the results of an attempt that is deployed on `task_manager`.
    pub fn place(&mut self, attempt: ExecutionAttemptId, task_manager: ProcessId) -> ProcessId {
        if self.kind == ShuffleServiceKind::TaskManager {
            return task_manager;
        }
        let behind = |last| self.services.range((Excluded(last), Unbounded)).next();
        let next = self.last.and_then(behind).or_else(|| self.services.first()).copied();
        let Some(service) = next else { return task_manager };
        self.last = next;
        self.placed.insert(attempt, service);
        service
    }

    /// The attempt does not run any more; the place of its results, if that is a shuffle service.
    pub fn forget(&mut self, attempt: ExecutionAttemptId) -> Option<ProcessId> {
        self.placed.remove(&attempt)
    }

    /// The running attempts whose results go to this service.
    pub fn placed_at(&self, service: ProcessId) -> impl Iterator<Item = ExecutionAttemptId> {
        self.placed.iter().filter(move |(_, place)| **place == service).map(|(&attempt, _)| attempt)
    }

    /// Where results of an attempt that does not run any more may be.
    pub fn places(&self, task_manager: ProcessId) -> Vec<ProcessId> {
        match self.kind {
            ShuffleServiceKind::TaskManager => vec![task_manager],
            ShuffleServiceKind::External => self.services.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId};

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
        let mut master = ShuffleMaster::new(ShuffleServiceKind::TaskManager);
        master.report(ONE, [partition(0), partition(9)]);
        master.expect([id(0), id(1)].into());
        assert!(!master.is_complete());
        master.report(TWO, [partition(1)]);
        assert!(master.is_complete());
        let (reported, missing) = master.take_reported();
        assert_eq!(reported.keys().copied().collect::<Vec<_>>(), [id(0), id(1), id(9)]);
        assert_eq!(reported[&id(1)], (TWO, vec![7]));
        assert!(missing.is_empty());
    }

    #[test]
    fn a_worker_that_is_lost_takes_its_partitions_along_and_they_are_waited_for_again() {
        let mut master = ShuffleMaster::new(ShuffleServiceKind::TaskManager);
        master.expect([id(0)].into());
        master.report(ONE, [partition(0), partition(1)]);
        master.remove(ONE);
        assert!(!master.is_complete());
        let (reported, missing) = master.take_reported();
        assert_eq!((reported.len(), missing), (0, [id(0)].into()));
    }
}
