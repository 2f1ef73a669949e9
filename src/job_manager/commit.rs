//! The commit: the list of committables is decided once, durably, in the job result store; every
//! leader then makes exactly that list visible, and doing so again changes nothing (design: the
//! decision, not the event log, is what completion waits for).

use std::collections::BTreeSet;

use crate::actor::{DiskOpId, ExitStatus, Outbox, Purpose};
use crate::connectors::PENDING_DIRECTORY;
use crate::disk::{DiskErrorKind, DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::{Address, JobVertexId};
use crate::message::{ClearJobEvents, CommitDecision, Committable, JobOutcome, JobTerminated};
use crate::note::Note;
use crate::scheduler::SubtaskState;

use super::{JobMaster, Phase};

#[derive(Debug, Default)]
pub(super) struct Commit {
    decision: CommitDecision,
    /// Operations of the current step under way.
    left: usize,
}

/// What a disk operation is for. Each kind is a step: the next begins when all of one are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Before the job is stored: path number `index` of a source.
    ListInput {
        vertex: JobVertexId,
        index: usize,
    },
    List,
    /// Rename of a committable, or the proof that an earlier leader has renamed it.
    Publish(usize),
    SyncDirectory,
    /// After the job's end: what sinks left uncommitted is listed and deleted.
    ListLeftovers,
    Delete,
}

impl JobMaster {
    pub(super) fn decide_commit(&mut self, out: &mut Outbox) {
        let mut decision = CommitDecision::default();
        for (_, subtask) in self.execution.subtasks() {
            let SubtaskState::Finished(finish) = &subtask.state else { continue };
            decision.committables.extend(finish.committables.iter().cloned());
            for (name, &value) in &finish.accumulators {
                let sum = decision.accumulators.entry(name.clone()).or_default();
                *sum = sum.wrapping_add(value);
            }
        }
        self.enter(Phase::DecidingCommit { decision }, out);
        self.ask_high_availability(out);
    }

    pub(super) fn commit_decided(&mut self, decision: CommitDecision, out: &mut Outbox) {
        // Whoever wants to record another end is told that the commit was decided.
        let expected = match &self.phase {
            Phase::Contending | Phase::DecidingCommit { .. } => true,
            Phase::RecordingResult { outcome } => !matches!(outcome, JobOutcome::Finished { .. }),
            _ => false,
        };
        if !expected {
            return;
        }
        out.note(Note::CommitDecided { decision: decision.clone() });
        self.enter(Phase::Committing(Commit { decision, left: 0 }), out);
        self.step(Step::List, vec![DiskOp::List { path: PENDING_DIRECTORY.to_owned() }], out);
    }

    /// Starts the operations of a step, or goes on to the next if there are none.
    fn step(&mut self, step: Step, operations: Vec<DiskOp>, out: &mut Outbox) {
        let Phase::Committing(commit) = &mut self.phase else { return };
        commit.left = operations.len();
        if operations.is_empty() {
            self.next_step(step, out);
            return;
        }
        for (i, operation) in operations.into_iter().enumerate() {
            let step = if let Step::Publish(_) = step { Step::Publish(i) } else { step };
            self.operate(step, operation, out);
        }
    }

    fn operate(&mut self, step: Step, operation: DiskOp, out: &mut Outbox) {
        let op = self.disk.begin(step);
        out.disk(op, Volume::Output, Purpose::Sink, operation);
    }

    pub(super) fn disk_completed(&mut self, op: DiskOpId, result: DiskResult, out: &mut Outbox) {
        let Some(step) = self.disk.complete(op) else { return };
        if let Step::ListInput { vertex, index } = step {
            return self.input_listed(vertex, index, result, out);
        }
        if let Step::ListLeftovers | Step::Delete = step {
            return self.cleaned(result, out);
        }
        let Phase::Committing(commit) = &mut self.phase else { return };
        commit.left -= 1;
        let left = commit.left;
        match (step, result) {
            (Step::List, Ok(DiskOutput::Entries(entries))) => {
                self.publish(entries.into_iter().map(|entry| entry.path).collect(), out);
            }
            (Step::List, Ok(other)) => {
                out.exit(ExitStatus::Failure(format!("the output volume listed its files as {other:?}")));
            }
            (_, Ok(_)) if left == 0 => self.next_step(step, out),
            (_, Ok(_)) => {}
            (Step::Publish(i), Err(error)) if error.kind == DiskErrorKind::NotFound => {
                let Committable { pending, target } = &commit.decision.committables[i];
                out.exit(ExitStatus::Failure(format!(
                    "the commit names {pending}, but neither it nor {target} is on the output volume: was the \
                     output directory changed while the job ran?"
                )));
            }
            (_, Err(error)) => out.exit(ExitStatus::Failure(format!("the commit cannot go on: {error}"))),
        }
    }

    fn publish(&mut self, pending: BTreeSet<String>, out: &mut Outbox) {
        let Phase::Committing(commit) = &mut self.phase else { return };
        let operations = commit
            .decision
            .committables
            .iter()
            .map(|Committable { pending: from, target: to }| {
                if pending.contains(from) {
                    DiskOp::Rename { from: from.clone(), to: to.clone() }
                } else {
                    DiskOp::ReadRange { path: to.clone(), offset: 0, length: 0 }
                }
            })
            .collect();
        self.step(Step::Publish(0), operations, out);
    }

    fn next_step(&mut self, done: Step, out: &mut Outbox) {
        let Phase::Committing(commit) = &mut self.phase else { return };
        match done {
            Step::List | Step::Publish(_) => {
                let targets =
                    commit.decision.committables.iter().map(|committable| parent(&committable.target));
                let mut directories: BTreeSet<&str> = targets.collect();
                if !directories.is_empty() {
                    directories.insert(PENDING_DIRECTORY);
                }
                let sync =
                    directories.into_iter().map(|path| DiskOp::SyncDirectory { path: path.to_owned() });
                let sync = sync.collect();
                self.step(Step::SyncDirectory, sync, out);
            }
            Step::SyncDirectory => {
                let CommitDecision { committables, accumulators } = &commit.decision;
                let committed = committables.len() as u32;
                let outcome = JobOutcome::Finished { committed, accumulators: accumulators.clone() };
                self.enter(Phase::RecordingResult { outcome }, out);
                self.ask_high_availability(out);
            }
            Step::ListInput { .. } | Step::ListLeftovers | Step::Delete => {}
        }
    }

    pub(super) fn result_recorded(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        // The answer to a commit decision may be that an earlier leader recorded a failure.
        if matches!(self.phase, Phase::DecidingCommit { .. } | Phase::RecordingResult { .. }) {
            self.clean_up(outcome, out);
        }
    }

    /// Deletes what no commit will ever name: of attempts that failed, or of a job that did. What
    /// still runs could write more of it, and is waited for.
    pub(super) fn clean_up(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        if self.execution.progress().1 > 0 {
            return self.enter(Phase::StoppingTasks { outcome }, out);
        }
        self.disk.forget_all();
        self.enter(Phase::CleaningUp { outcome, left: 0 }, out);
        self.operate(Step::ListLeftovers, DiskOp::List { path: PENDING_DIRECTORY.to_owned() }, out);
    }

    fn cleaned(&mut self, result: DiskResult, out: &mut Outbox) {
        let Phase::CleaningUp { outcome, left } = &mut self.phase else { return };
        let mut delete = Vec::new();
        match result {
            Ok(DiskOutput::Entries(entries)) => {
                *left = entries.len();
                delete.extend(entries.into_iter().map(|entry| DiskOp::Delete { path: entry.path }));
            }
            Ok(_) => *left = left.saturating_sub(1),
            Err(error) => {
                out.note(Note::Warning { text: format!("uncommitted output stays behind: {error}") });
                *left = left.saturating_sub(1);
            }
        }
        if *left == 0 {
            let outcome = outcome.clone();
            return self.finish(outcome, out);
        }
        for operation in delete {
            self.operate(Step::Delete, operation, out);
        }
    }

    /// The result is durable: whatever belongs to the job may go, and when its log is gone so may
    /// this process. A TaskManager that does not hear of it here hears of it from the HA service.
    fn finish(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        self.enter(Phase::Done { outcome: outcome.clone() }, out);
        for process in self.workers.processes() {
            out.send(Address::worker(process), JobTerminated { token: self.token });
        }
        out.send(self.writer(), ClearJobEvents {});
        out.note(Note::JobEnded { outcome });
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
