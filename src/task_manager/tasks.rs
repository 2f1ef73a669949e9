//! The tasks that run here and the final states of those that ran. A final state is kept as long as
//! the leader under which it was reached, so that it can be told again and no attempt runs twice.

use std::collections::BTreeMap;

use crate::ids::{ExecutionAttemptId, FencingToken};
use crate::message::{TaskDeploymentDescriptor, TaskFailure, TaskState};
use crate::task::partition_path;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// With the files that the task may have begun.
    running: BTreeMap<ExecutionAttemptId, Vec<String>>,
    ended: BTreeMap<ExecutionAttemptId, TaskState>,
    token: FencingToken,
}

impl Tasks {
    /// A leader with this token submits tasks from now on.
    pub fn begin_epoch(&mut self, token: FencingToken) {
        if self.token != token {
            self.token = token;
            self.ended.clear();
        }
    }

    pub fn count(&self) -> usize {
        self.running.len()
    }

    pub fn start(&mut self, task: &TaskDeploymentDescriptor) {
        let paths = task.outputs.iter().map(|output| partition_path(output.partition)).collect();
        self.running.insert(task.attempt, paths);
    }

    pub fn is_running(&self, attempt: ExecutionAttemptId) -> bool {
        self.running.contains_key(&attempt)
    }

    pub fn running(&self) -> Vec<ExecutionAttemptId> {
        self.running.keys().copied().collect()
    }

    /// Whether a running task writes this file.
    pub fn writes(&self, path: &str) -> bool {
        self.running.values().flatten().any(|written| written == path)
    }

    /// The task does not run any more; its files, if it did.
    pub fn end(&mut self, attempt: ExecutionAttemptId, state: TaskState) -> Option<Vec<String>> {
        let paths = self.running.remove(&attempt);
        self.ended.insert(attempt, state);
        paths
    }

    /// The final state of an attempt that does not run, if it ever ran here.
    pub fn final_state(&self, attempt: ExecutionAttemptId) -> Option<&TaskState> {
        self.ended.get(&attempt)
    }
}

/// A failure that is this TaskManager's word, not the task's.
pub(super) fn failed(attempt: ExecutionAttemptId, reason: &str) -> TaskState {
    TaskState::Failed(TaskFailure { message: format!("attempt {attempt}: {reason}"), missing: None })
}
