//! The tasks that run here and the final states of those that ran. A final state is kept as long as
//! the leader under which it was reached, so that it can be told again and no attempt runs twice.

use std::collections::BTreeMap;

use crate::ids::{ExecutionAttemptId, FencingToken, ProcessId};
use crate::message::{ResultPartitionDescriptor, TaskDeploymentDescriptor, TaskFailure, TaskState};
use crate::task::{is_spill_of, partition_path};

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// With the results that the task may have begun.
    running: BTreeMap<ExecutionAttemptId, Vec<ResultPartitionDescriptor>>,
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
        self.running.insert(task.attempt, task.outputs.clone());
    }

    pub fn is_running(&self, attempt: ExecutionAttemptId) -> bool {
        self.running.contains_key(&attempt)
    }

    /// An attempt that counts as running and as ended, if there is one.
    pub fn runs_and_ended(&self) -> Option<ExecutionAttemptId> {
        self.running.keys().copied().find(|attempt| self.ended.contains_key(attempt))
    }

    pub fn running(&self) -> Vec<ExecutionAttemptId> {
        self.running.keys().copied().collect()
    }

    /// Whether a running task writes this file.
    pub fn writes(&self, path: &str) -> bool {
        self.running.values().flatten().any(|output| partition_path(output.partition) == path)
    }

    /// Whether this is a file of a running task's sort.
    pub fn spills(&self, path: &str) -> bool {
        self.running.keys().any(|&attempt| is_spill_of(attempt, path))
    }

    /// Who keeps the results of a running task; `None` if it has none.
    pub fn keeper(&self, attempt: ExecutionAttemptId) -> Option<ProcessId> {
        self.running.get(&attempt)?.first().map(|output| output.location)
    }

    /// The task does not run any more; the results that it may have begun, if it did.
    pub fn end(
        &mut self,
        attempt: ExecutionAttemptId,
        state: TaskState,
    ) -> Option<Vec<ResultPartitionDescriptor>> {
        let outputs = self.running.remove(&attempt);
        self.ended.insert(attempt, state);
        outputs
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
