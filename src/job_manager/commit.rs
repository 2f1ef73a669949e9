//! The commit: the list of committables is decided once, durably, in the job result store; every
//! leader then makes exactly that list visible, and doing so again changes nothing (design: the
//! decision, not the event log, is what completion waits for).

use std::collections::BTreeSet;

use crate::actor::{DiskOpId, ExitStatus, Outbox, Purpose};
use crate::disk::{DiskErrorKind, DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::Address;
use crate::message::{ClearJobEvents, Committable, DecideCommit, JobOutcome, JobTerminated, RecordJobResult};
use crate::note::Note;
use crate::scheduler::SubtaskState;

use super::{JobMaster, Phase};

/// Where sinks keep files that are not committed, on the output volume.
pub const PENDING_DIRECTORY: &str = ".pending";

#[derive(Debug, Default)]
pub(super) struct Commit {
    committables: Vec<Committable>,
    /// Uncommitted files that no decided list names, to be deleted after the commit.
    leftovers: Vec<String>,
    /// Operations of the current step under way.
    left: usize,
}

/// What a disk operation is for. Each kind is a step: the next begins when all of one are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    List,
    /// Rename of a committable, or the proof that an earlier leader has renamed it.
    Publish(usize),
    SyncDirectory,
    Delete,
}

impl JobMaster {
    pub(super) fn decide_commit(&mut self, out: &mut Outbox) {
        let committables: Vec<Committable> = self
            .execution
            .subtasks()
            .filter_map(|(_, subtask)| match &subtask.state {
                SubtaskState::Finished(finish) => Some(&finish.committables),
                _ => None,
            })
            .flatten()
            .cloned()
            .collect();
        self.enter(Phase::Committing(Commit::default()), out);
        out.send(Address::HIGH_AVAILABILITY, DecideCommit { token: self.token, committables });
    }

    pub(super) fn commit_decided(&mut self, committables: Vec<Committable>, out: &mut Outbox) {
        out.note(Note::CommitDecided { committables: committables.clone() });
        self.enter(Phase::Committing(Commit { committables, ..Commit::default() }), out);
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
            let op = self.disk.begin(step);
            out.disk(op, Volume::Output, Purpose::Sink, operation);
        }
    }

    pub(super) fn disk_completed(&mut self, op: DiskOpId, result: DiskResult, out: &mut Outbox) {
        let Some(step) = self.disk.complete(op) else { return };
        let Phase::Committing(commit) = &mut self.phase else { return };
        commit.left -= 1;
        let left = commit.left;
        match (step, result) {
            (Step::List, Ok(DiskOutput::Entries(entries))) => {
                self.publish(entries.into_iter().map(|entry| entry.path).collect(), out);
            }
            (_, Ok(_)) if left == 0 => self.next_step(step, out),
            (_, Ok(_)) => {}
            (Step::Publish(i), Err(error)) if error.kind == DiskErrorKind::NotFound => {
                let Committable { pending, target } = &commit.committables[i];
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
        let named: BTreeSet<&String> = commit.committables.iter().map(|c| &c.pending).collect();
        commit.leftovers = pending.iter().filter(|path| !named.contains(path)).cloned().collect();
        let operations = commit
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
                let targets = commit.committables.iter().map(|committable| parent(&committable.target));
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
                let delete =
                    std::mem::take(&mut commit.leftovers).into_iter().map(|path| DiskOp::Delete { path });
                let delete = delete.collect();
                self.step(Step::Delete, delete, out);
            }
            Step::Delete => {
                let outcome = JobOutcome::Finished { committed: commit.committables.len() as u32 };
                out.send(Address::HIGH_AVAILABILITY, RecordJobResult { token: self.token, outcome });
            }
        }
    }

    pub(super) fn result_recorded(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        if matches!(self.phase, Phase::Committing(_) | Phase::Failing) {
            self.finish(outcome, out);
        }
    }

    /// The result is durable: whatever belongs to the job may go, and when its log is gone so may
    /// this process. A TaskManager that does not hear of it here hears of it from the HA service.
    pub(super) fn finish(&mut self, outcome: JobOutcome, out: &mut Outbox) {
        self.enter(Phase::Done, out);
        for process in self.workers.processes() {
            out.send(Address::executor(process), JobTerminated { token: self.token });
        }
        out.send(Address::WRITER, ClearJobEvents {});
        out.note(Note::JobEnded { outcome });
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
