//! What a leader that follows a lost one had to find finished, and what it was free to run again.
//! Computed from the bytes of the log and from the partitions that TaskManagers held, never from
//! what the engine says about its recovery.
//!
//! A recovery is predicted from both sides, and has to lie between: [`Loss::must_keep`] is the least that
//! stays finished, [`must_rerun`] the least that runs again. They differ, and either is right, only in
//! - finishes of which nobody could know whether they are recorded: written, and not synced when the leader was lost
//!   (durable bytes bound the one side, visible bytes the other), with what rests on them;
//! - partitions of a worker that died while the recovery went on, or that registered when the leader had
//!   waited as long as it has to: they may have been reported or not;
//! - all of them, if a broken disk kept the leader from its log for as long as it waits ([`History::is_blind`]).
//!
//! S6 holds the recovery's own account to it, E1 what is deployed afterwards, and what is not kept has
//! to be run before the job is complete (S1), so the tasks that run again are exactly those predicted.

use std::collections::{BTreeMap, BTreeSet};

use revenant::coordinator::SplitAssignment;
use revenant::graph::Determinacy;
use revenant::ids::{ExecutionAttemptId, ExecutionVertexId, ResultPartitionId};

use super::Verdict;
use super::history::{END, Held, History, Leader, reads};
use super::log::{Bytes, LogState};
use super::missed::Missed;
use super::s11_release::needed_by;
use crate::trace::{TraceEvent, TraceKind};

/// How many subtasks were finished at a crash, by what the crash left of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finishes {
    /// Accepted, the record not yet durable.
    pub buffered: u32,
    /// The record was durable.
    pub durable: u32,
}

/// The best that a crash left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FinishClass {
    None,
    Buffered,
    Durable,
}

impl Finishes {
    pub fn class(self) -> FinishClass {
        match self {
            Self { durable: 1.., .. } => FinishClass::Durable,
            Self { buffered: 1.., .. } => FinishClass::Buffered,
            Self { .. } => FinishClass::None,
        }
    }
}

/// What a change of leader cost and what it must not cost.
#[derive(Debug)]
pub struct Loss {
    /// Durable finishes whose needed partitions lived on, and which have not read what may come out
    /// otherwise the second time.
    pub must_keep: BTreeMap<ExecutionVertexId, ExecutionAttemptId>,
    /// Subtasks that had counted as finished for the lost leader.
    pub finished: BTreeSet<ExecutionVertexId>,
    /// Of these, those whose finish was not durable, or which no snapshot of their coordinator covers.
    pub unflushed: usize,
    /// Of these, those whose finish was durable and which may run again nevertheless.
    pub closure: usize,
}

impl Loss {
    /// What a change of leader costs if the leader can miss nobody who lives.
    pub fn of(history: &History, leader: &Leader) -> Self {
        Self::without(history, leader, &Missed::nobody(), 0)
    }

    /// What it costs until some moment if the partitions of some workers count as lost, too. What has to run
    /// again by that may need partitions of others that were released since, because all had been read.
    pub fn without(history: &History, leader: &Leader, missed: &Missed, until: usize) -> Self {
        // What the disk spoilt before the leader came could not be found any more.
        let spoilt = history.log.was_corrupted(leader.lost, leader.acquired);
        let found = if spoilt { leader.acquired } else { leader.lost };
        let mut state = history.log.state(found, Bytes::Durable);
        state.reconcile(history.graph);
        // A replaced leader that lost its workers may have reset some until the log was read, and may have accepted
        // less of what one before it wrote, perhaps without the snapshot that covers the rest.
        let mut read = history.log.state_before(leader.token, leader.read, Bytes::Visible);
        read.reconcile(history.graph);
        state.finished.retain(|subtask, attempt| read.finished.get(subtask) == Some(attempt));
        let recovered = leader.recovered.unwrap_or(leader.until);
        let until = if *missed == Missed::nobody() { recovered } else { until.max(recovered) };
        let lives = |partition| {
            history.held.iter().any(|held| {
                held.partition == partition
                    && held.from <= leader.lost
                    && held.until > until
                    && (until == recovered || !goes_anyway(history, held, until))
                    && !history.too_late_for(leader, held.process)
                    && !missed.includes(held.process)
            })
        };
        let again = match missed {
            Missed::Everyone => state.finished.keys().copied().collect(),
            Missed::Only(_) => again(history, &state, &lives),
        };
        let finished: BTreeSet<_> = match leader.lost.checked_sub(1) {
            Some(before) => history.all_counted(before).map(|finish| finish.attempt.subtask).collect(),
            None => BTreeSet::new(),
        };
        let durable = |subtask: &&ExecutionVertexId| state.finished.contains_key(*subtask);
        let unflushed = finished.iter().filter(|subtask| !durable(subtask)).count();
        let closure = finished.iter().filter(|subtask| durable(subtask) && again.contains(subtask)).count();
        let mut must_keep = state.finished;
        must_keep.retain(|subtask, _| !again.contains(subtask));
        Self { must_keep, finished, unflushed, closure }
    }
}

/// Whether the order to release the partition may have been under way at trace index `until`: it is gone a little later,
/// and nobody needed it when that was sent.
fn goes_anyway(history: &History, held: &Held, until: usize) -> bool {
    if held.until == END {
        return false;
    }
    let gone = history.time(held.until);
    let sent = (0..until).rev().take_while(|&at| history.time(at) + history.patience.round_trip >= gone);
    sent.into_iter().any(|at| needed_by(history, held.partition, at).is_none())
}

/// Finishes that the log which a leader found says, and that have to run again nevertheless, whoever
/// reported what: a partition that is needed was with nobody at any moment between the leader's coming and its decision
/// at trace index `decided`, or what rests on that may change.
pub fn must_rerun(history: &History, leader: &Leader, decided: usize) -> BTreeSet<ExecutionVertexId> {
    let mut state = history.log.state(leader.read, Bytes::Visible);
    state.reconcile(history.graph);
    let lives = |partition| {
        history
            .held
            .iter()
            .any(|held| held.partition == partition && held.from <= decided && held.until >= leader.acquired)
    };
    again(history, &state, &lives)
}

/// Finishes that run again if only these partitions live: a partition that an unfinished consumer needs did not live
/// from the loss to the end of recovery, or nobody had to wait for it any longer, or what it read may
/// have changed; to the fixed point. The result of one that runs again may change unless it is
/// determinate and has read nothing that may; an unfinished subtask passes a change on.
fn again(
    history: &History,
    state: &LogState,
    lives: &dyn Fn(ResultPartitionId) -> bool,
) -> BTreeSet<ExecutionVertexId> {
    let mut again: BTreeSet<ExecutionVertexId> = BTreeSet::new();
    let determinate = |subtask: &ExecutionVertexId| {
        history.graph.vertex(subtask.vertex).determinacy == Determinacy::Determinate
    };
    // What has read a result that does not count any more, as when its splits are forgotten.
    let unfinished = subtasks(state).filter(|subtask| !state.finished.contains_key(subtask));
    let mut changed: BTreeSet<ExecutionVertexId> =
        unfinished.filter(|subtask| !determinate(subtask)).collect();
    loop {
        let before = again.len() + changed.len();
        for (&subtask, &attempt) in &state.finished {
            if again.contains(&subtask) {
                continue;
            }
            let missing = history.partitions(attempt).any(|partition| {
                !lives(partition) && is_needed(history, state, &again, partition.data_set, partition.index())
            });
            // Nobody knows which splits the subtasks of a source without snapshots have read.
            let as_a_whole = history.graph.vertex(subtask.vertex).source.as_ref().is_some_and(|source| {
                source.assignment() == SplitAssignment::Dynamic && !source.supports_batch_snapshot()
            });
            let with_another = as_a_whole && again.iter().any(|other| other.vertex == subtask.vertex);
            if missing || with_another || has_producer_in(history, state, &changed, subtask) {
                again.insert(subtask);
            }
        }
        changed.extend(again.iter().filter(|subtask| !determinate(subtask)));
        for subtask in subtasks(state) {
            let runs = again.contains(&subtask) || !state.finished.contains_key(&subtask);
            if runs && !changed.contains(&subtask) && has_producer_in(history, state, &changed, subtask) {
                changed.insert(subtask);
            }
        }
        if again.len() + changed.len() == before {
            return again;
        }
    }
}

fn is_needed(
    history: &History,
    state: &LogState,
    again: &BTreeSet<ExecutionVertexId>,
    data_set: revenant::ids::IntermediateDataSetId,
    index: u32,
) -> bool {
    let consumer = history.graph.edge(data_set).consumer;
    let Some(&(parallelism, inputs)) = state.initialized.get(&consumer) else { return true };
    let gate = history.graph.vertex(consumer).inputs.iter().position(|&input| input == data_set);
    (0..parallelism).filter(|&subtask| gate.is_some_and(|gate| reads(inputs, subtask, gate, index))).any(
        |subtask| {
            let subtask = ExecutionVertexId::new(consumer, subtask);
            !state.finished.contains_key(&subtask) || again.contains(&subtask)
        },
    )
}

fn has_producer_in(
    history: &History,
    state: &LogState,
    producers: &BTreeSet<ExecutionVertexId>,
    subtask: ExecutionVertexId,
) -> bool {
    let Some(&(_, inputs)) = state.initialized.get(&subtask.vertex) else { return false };
    let gates = &history.graph.vertex(subtask.vertex).inputs;
    gates.iter().enumerate().any(|(gate, &data_set)| {
        let vertex = history.graph.edge(data_set).producer;
        producers.iter().any(|producer| {
            producer.vertex == vertex && reads(inputs, subtask.subtask, gate, producer.subtask)
        })
    })
}

/// All subtasks whose vertices were initialized.
fn subtasks(state: &LogState) -> impl Iterator<Item = ExecutionVertexId> {
    let vertices = state.initialized.iter();
    vertices.flat_map(|(&vertex, &(parallelism, _))| {
        (0..parallelism).map(move |subtask| ExecutionVertexId::new(vertex, subtask))
    })
}

pub fn verdict(history: &History) -> Verdict {
    let subtasks: BTreeSet<_> = history.started.iter().map(|started| started.attempt.subtask).collect();
    Verdict {
        rerun: (history.started.len() - subtasks.len()) as u32,
        kept: history
            .leaders
            .iter()
            .skip(1)
            .map(|leader| Loss::of(history, leader).must_keep.len() as u32)
            .sum(),
        crashes: history.crashes.len() as u32,
        finishes: first_blow(history).map_or_else(Finishes::default, |at| finishes(history, at)),
    }
}

/// Where a leader crashed or leadership was taken first.
fn first_blow(history: &History) -> Option<usize> {
    let taken = |event: &TraceEvent| matches!(event.what, TraceKind::HaFault(_));
    let taken = history.outcome.trace.iter().position(taken);
    history.crashes.first().copied().into_iter().chain(taken).min()
}

/// What was finished when the JobManager crashed or was replaced at this trace index.
fn finishes(history: &History, crash: usize) -> Finishes {
    let mut finishes = Finishes::default();
    let state = history.log.state(crash, Bytes::Durable);
    for finish in crash.checked_sub(1).into_iter().flat_map(|before| history.all_counted(before)) {
        if state.finished.get(&finish.attempt.subtask) == Some(&finish.attempt) {
            finishes.durable += 1;
        } else {
            finishes.buffered += 1;
        }
    }
    finishes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, finished, with_history};

    #[test]
    fn a_crash_is_classed_by_the_best_finish_that_it_met() {
        let class = |story: &Story| with_history(story, |history| verdict(history).finishes.class());
        let mut story = Story::new();
        story.start().crash();
        assert_eq!(class(&story), FinishClass::None);
        let mut story = Story::new();
        story.run_sources().unsynced(1, finished(attempt(0, 0, 1, 1))).crash();
        assert_eq!(class(&story), FinishClass::Buffered);
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).crash();
        assert_eq!(class(&story), FinishClass::Durable);
        assert_eq!(with_history(&story, verdict).finishes, Finishes { buffered: 1, durable: 1 });
    }

    #[test]
    fn starts_beyond_the_first_of_each_subtask_are_reruns() {
        let mut story = Story::new();
        story.run_sources().crash().lead(2).recovered(2, &[]);
        assert_eq!(with_history(&story, verdict).rerun, 0);
        story.finish_source(attempt(0, 0, 2, 1), &[0, 1]).finish_source(attempt(0, 1, 2, 1), &[2, 3]);
        assert_eq!(with_history(&story, verdict).rerun, 2);
    }
}
