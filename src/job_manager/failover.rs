//! Failures without a change of leader: a task failed, a TaskManager was lost with what ran and what
//! was kept there, or a coordinator cannot go on. What must run again is reset; whether and when the
//! job goes on is the restart strategy's decision. Also the job's end before its time: by a failure
//! that is too many, or because it was cancelled.

use std::collections::{BTreeMap, BTreeSet};

use crate::actor::{Outbox, Time};
use crate::ids::{Address, ExecutionAttemptId, ExecutionVertexId, ProcessId, ResultPartitionId};
use crate::message::{CancelTask, JobOutcome};
use crate::note::Note;
use crate::probe::Probe;
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
        if self.is_ending() {
            return self.attempts_ended(attempts, out);
        }
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
            self.attempts_ended(attempts, out);
            return self.fail_job(reason, out);
        }
        let restart = self.execution.restart_set(&roots, &self.tracker, &self.unrecovered);
        self.reset_subtasks(&restart, out);
        self.schedule(out);
    }

    /// Something failed that no restart of single subtasks makes good (Flink's
    /// handleGlobalFailure): everything runs again, and coordinators begin anew.
    pub(super) fn fail_globally(&mut self, now: Time, reason: &str, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        out.note(Note::GlobalFailure { token: self.token, reason: reason.to_owned() });
        if !self.may_restart(now, out) {
            return self.fail_job(reason, out);
        }
        let all = self.execution.subtasks().map(|(id, _)| id).collect();
        self.reset_subtasks(&all, out);
        for vertex in self.coordinators.keys().copied().collect::<Vec<_>>() {
            if let Some(mut coordinator) = self.new_coordinator(vertex) {
                coordinator.set_parallelism(self.execution.parallelism(vertex).unwrap_or(1));
                self.coordinators.insert(vertex, coordinator);
            }
        }
        self.unrecovered.clear();
        self.schedule(out);
    }

    /// Counts a failure; whether the job may go on, if after a pause.
    fn may_restart(&mut self, now: Time, out: &mut Outbox) -> bool {
        let Some(pause) = self.restarts.failed(now) else { return false };
        let at = self.restart_at.map_or(now + pause, |earlier| earlier.max(now + pause));
        if at > now {
            out.probe(Probe::RestartPause);
            self.change(out, |master| master.restart_at = Some(at));
            out.set_timer(RESTART, at);
        }
        true
    }

    pub(super) fn fail_job(&mut self, reason: &str, out: &mut Outbox) {
        self.end(JobOutcome::Failed { reason: reason.to_owned() }, out);
    }

    /// The job is not wanted any more. Who contends may lead without knowing it yet, and ends the job
    /// when it does; who asked for the commit decision cannot take it back.
    pub(super) fn cancel(&mut self, out: &mut Outbox) {
        match self.phase {
            Phase::EnumeratingSplits(_)
            | Phase::RecordingJob
            | Phase::OpeningStore
            | Phase::Reconciling
            | Phase::LoggingRecovery { .. }
            | Phase::Running => self.end(JobOutcome::Canceled, out),
            Phase::Contending => {
                out.probe(Probe::CancelBeforeLeading);
                self.cancel_asked = true;
            }
            _ => {}
        }
    }

    /// Ends the job before its time: nothing is started any more, what runs is cancelled.
    fn end(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        let running = self.execution.subtasks().filter_map(|(_, subtask)| match subtask.state {
            SubtaskState::Deployed { attempt, location } => Some((attempt, location)),
            _ => None,
        });
        for (attempt, location) in running {
            out.send(Address::worker(location), CancelTask { token: self.token, attempt });
        }
        self.enter(Phase::RecordingResult { outcome }, out);
        self.ask_high_availability(out);
    }

    /// Whether the job's end is decided, and tasks are only waited for.
    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::RecordingResult { .. } | Phase::StoppingTasks { .. })
    }

    /// These attempts do not run any more, and the job does not go on.
    pub(super) fn attempts_ended(&mut self, attempts: &[ExecutionAttemptId], out: &mut Outbox) {
        for attempt in attempts {
            self.execution.reset(attempt.subtask);
        }
        if let Phase::StoppingTasks { outcome } = &self.phase {
            let outcome = outcome.clone();
            self.clean_up(outcome, out);
        }
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
        // A coordinator that lost count begins anew when all of its subtasks do.
        self.unrecovered.retain(|vertex| !subtasks.iter().any(|id| id.vertex == *vertex));
        self.record_reset(taken_back, out);
        self.keep_what_is_needed_again(out);
        self.send_releases(releases, out);
    }
}
