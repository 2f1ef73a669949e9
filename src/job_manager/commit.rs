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
    /// Whether the directories were synced once.
    synced: bool,
    /// Whether anything was renamed since the files were last listed.
    renamed: bool,
}

/// The end is durable, and what sinks left is deleted.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Deletions under way.
    left: usize,
    /// Whether the directory was synced once.
    synced: bool,
    /// Whether something cannot be deleted.
    stays: bool,
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
    SyncLeftovers,
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
        self.enter(Phase::Committing(Commit { decision, ..Commit::default() }), out);
        self.list_pending(out);
    }

    fn list_pending(&mut self, out: &mut Outbox) {
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
        if let Step::ListLeftovers | Step::Delete | Step::SyncLeftovers = step {
            return self.cleaned(step, result, out);
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
        commit.renamed =
            commit.decision.committables.iter().any(|committable| pending.contains(&committable.pending));
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

    /// Renames that were not durable may be undone by a crash of the volume's machine before they are synced, and
    /// the sync says nothing of it: so the commit is done when all is found in its place after a sync.
    fn next_step(&mut self, done: Step, out: &mut Outbox) {
        let Phase::Committing(commit) = &mut self.phase else { return };
        let in_place = commit.synced && !commit.renamed;
        match done {
            Step::Publish(_) if in_place || commit.decision.committables.is_empty() => self.committed(out),
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
                commit.synced = true;
                self.list_pending(out);
            }
            Step::ListInput { .. } | Step::ListLeftovers | Step::Delete | Step::SyncLeftovers => {}
        }
    }

    fn committed(&mut self, out: &mut Outbox) {
        let Phase::Committing(commit) = &self.phase else { return };
        let CommitDecision { committables, accumulators } = &commit.decision;
        let committed = committables.len() as u32;
        let outcome = JobOutcome::Finished { committed, accumulators: accumulators.clone() };
        self.enter(Phase::RecordingResult { outcome }, out);
        self.ask_high_availability(out);
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
        self.enter(Phase::CleaningUp { outcome, leftovers: Leftovers::default() }, out);
        self.list_leftovers(out);
    }

    fn list_leftovers(&mut self, out: &mut Outbox) {
        self.operate(Step::ListLeftovers, DiskOp::List { path: PENDING_DIRECTORY.to_owned() }, out);
    }

    /// As with the commit, it is done when nothing is found after a sync: what was deleted may have come back.
    fn cleaned(&mut self, step: Step, result: DiskResult, out: &mut Outbox) {
        let Phase::CleaningUp { outcome, leftovers } = &mut self.phase else { return };
        // Where no sink has written there is no directory.
        let failure = result.as_ref().err().filter(|error| error.kind != DiskErrorKind::NotFound);
        if let Some(error) = failure {
            out.note(Note::Warning { text: format!("uncommitted output stays behind: {error}") });
            leftovers.stays = true;
        }
        let entries = match (step, result) {
            (Step::ListLeftovers, Ok(DiskOutput::Entries(entries))) => entries,
            _ => Vec::new(),
        };
        let is_done = match step {
            Step::ListLeftovers => leftovers.stays || (entries.is_empty() && leftovers.synced),
            Step::SyncLeftovers => {
                leftovers.synced = true;
                leftovers.stays
            }
            _ => false,
        };
        if is_done {
            let outcome = outcome.clone();
            return self.finish(outcome, out);
        }
        match step {
            Step::SyncLeftovers => return self.list_leftovers(out),
            Step::Delete => leftovers.left -= 1,
            _ => leftovers.left = entries.len(),
        }
        if leftovers.left == 0 {
            let sync = DiskOp::SyncDirectory { path: PENDING_DIRECTORY.to_owned() };
            return self.operate(Step::SyncLeftovers, sync, out);
        }
        for entry in entries {
            self.operate(Step::Delete, DiskOp::Delete { path: entry.path }, out);
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
