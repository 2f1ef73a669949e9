//! Where results go: to the disk of the TaskManager that produces them, or to one of the registered
//! shuffle services, each in turn (Flink's ShuffleMaster). It decides for an attempt when it is
//! deployed and remembers the decision while the attempt runs; where finished partitions are, the
//! tracker knows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use crate::config::ShuffleServiceKind;
use crate::ids::{ExecutionAttemptId, ProcessId};

#[derive(Debug)]
pub(super) struct ShuffleMaster {
    kind: ShuffleServiceKind,
    /// The registered shuffle services.
    services: BTreeSet<ProcessId>,
    /// The service that was chosen last.
    last: Option<ProcessId>,
    /// Of attempts that run: the service to which their results go.
    placed: BTreeMap<ExecutionAttemptId, ProcessId>,
}

impl ShuffleMaster {
    pub fn new(kind: ShuffleServiceKind) -> Self {
        Self { kind, services: BTreeSet::new(), last: None, placed: BTreeMap::new() }
    }

    /// A worker is registered.
    pub fn add(&mut self, process: ProcessId) {
        if matches!(process, ProcessId::ShuffleService(_)) {
            self.services.insert(process);
        }
    }

    /// A worker is lost.
    pub fn remove(&mut self, process: ProcessId) {
        self.services.remove(&process);
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
