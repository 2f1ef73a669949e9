//! Failures without a change of leader: a task failed, or a TaskManager was lost with what ran and
//! what was kept there. What must run again is reset; whether the job may go on is the restart
//! strategy's decision (Flink's RestartBackoffTimeStrategy).

use std::collections::{BTreeMap, BTreeSet};

use crate::actor::{Outbox, Time};
use crate::config::RestartStrategy;
use crate::ids::{Address, ExecutionAttemptId, ExecutionVertexId, ProcessId, ResultPartitionId};
use crate::job_event::JobEvent;
use crate::message::{CancelTask, JobOutcome};
use crate::note::Note;
use crate::scheduler::SubtaskState;

use super::{JobMaster, Phase, RESTART};

impl JobMaster {
    /// These attempts failed, and some partitions may have gone from the tracker.
    pub(super) fn fail(
        &mut self,
        now: Time,
        attempts: &[ExecutionAttemptId],
        reason: &str,
        out: &mut Outbox,
    ) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        for &attempt in attempts {
            out.note(Note::AttemptFailed { attempt, reason: reason.to_owned() });
        }
        let required = self.execution.required_partitions().into_iter();
        let missing = required.filter(|&partition| self.tracker.get(partition).is_none());
        let mut roots: Vec<ExecutionVertexId> = missing.map(|partition| partition.producer.subtask).collect();
        roots.extend(attempts.iter().map(|attempt| attempt.subtask));
        if roots.is_empty() {
            return;
        }
        if !attempts.is_empty() && !self.may_restart(now, out) {
            self.fail_job(reason, out);
            return;
        }
        let restart = self.execution.restart_set(&roots, &self.tracker);
        self.reset_subtasks(&restart, out);
        self.schedule(out);
    }

    fn may_restart(&mut self, now: Time, out: &mut Outbox) -> bool {
        let config = &self.boot.config;
        if config.restart_strategy == RestartStrategy::None || self.restarts >= config.restart_attempts {
            return false;
        }
        self.restarts += 1;
        if !config.restart_delay.is_zero() {
            self.restart_pending = true;
            out.set_timer(RESTART, now + config.restart_delay);
        }
        true
    }

    pub(super) fn fail_job(&mut self, reason: &str, out: &mut Outbox) {
        let running = self.execution.subtasks().filter_map(|(_, subtask)| match subtask.state {
            SubtaskState::Deployed { attempt, location } => Some((attempt, location)),
            _ => None,
        });
        for (attempt, location) in running {
            out.send(Address::worker(location), CancelTask { token: self.token, attempt });
        }
        let outcome = JobOutcome::Failed { reason: reason.to_owned() };
        self.enter(Phase::RecordingResult { outcome }, out);
        self.ask_high_availability(out);
    }

    /// The subtasks will run again: running attempts are cancelled, results released, splits given
    /// back, and finishes taken back in the log.
    pub(super) fn reset_subtasks(&mut self, subtasks: &BTreeSet<ExecutionVertexId>, out: &mut Outbox) {
        let mut taken_back = Vec::new();
        let mut releases: BTreeMap<ProcessId, Vec<ResultPartitionId>> = BTreeMap::new();
        for &id in subtasks {
            match self.execution.reset(id) {
                Some(SubtaskState::Deployed { attempt, location }) => {
                    self.shuffle_master.forget(attempt);
                    if self.workers.is_registered(location) {
                        out.send(Address::worker(location), CancelTask { token: self.token, attempt });
                    }
                    self.slots.give_back(location);
                }
                Some(SubtaskState::Finished(finish)) => {
                    for partition in finish.partitions {
                        if let Some(location) = self.tracker.untrack(partition.partition) {
                            releases.entry(location).or_default().push(partition.partition);
                        }
                    }
                    taken_back.push(id);
                }
                Some(SubtaskState::Created) | None => continue,
            }
            self.give_splits_back(id);
            out.note(Note::SubtaskReset { subtask: id });
        }
        if !taken_back.is_empty() {
            self.record_event(JobEvent::ExecutionVertexReset { subtasks: taken_back }, out);
        }
        self.keep_what_is_needed_again();
        self.send_releases(releases, out);
    }
}
