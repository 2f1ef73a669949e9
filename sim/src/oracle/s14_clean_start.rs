//! S14: a recovery that fails is a clean run: a leader that keeps nothing of what earlier leaders left,
//! for whatever reason, uses nothing of it later: no attempt that counts for it has read a
//! partition of an earlier epoch. (That all splits are read again is S2, that the output is right S1.)

use revenant::note::Note;

use super::history::Leader;
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    history
        .leaders
        .iter()
        .filter(|leader| starts_clean(history, leader))
        .try_for_each(|leader| judge(history, leader))
}

/// Whether the leader said that it keeps nothing.
fn starts_clean(history: &History, leader: &Leader) -> bool {
    leader.recovered.is_some_and(|at| {
        matches!(&history.outcome.trace[at].what, TraceKind::Note(Note::Recovered { kept, .. }) if kept.is_empty())
    })
}

fn judge(history: &History, leader: &Leader) -> Result<(), Violation> {
    let of_leader = |at: usize| leader.acquired < at && at < leader.until;
    let finishes = history.finishes.values().flatten().filter(|finish| of_leader(finish.from));
    let old = finishes.filter_map(|finish| {
        let mut read = finish.inputs.iter().flatten();
        let read = read.find(|read| read.producer.epoch < leader.token)?;
        Some((finish.from, finish.attempt, *read))
    });
    match old.min_by_key(|(at, ..)| *at) {
        Some((at, attempt, read)) => {
            let message = format!("leader {} kept nothing, and {attempt} read {read}", leader.token);
            Err(history.violation("S14", at, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    fn started_over() -> Story {
        let mut story = Story::new();
        story.run_sources().crash().lead(2).recovered(2, &[]);
        story
    }

    #[test]
    fn a_leader_that_runs_everything_again_is_good() {
        let mut story = started_over();
        story
            .finish_source(attempt(0, 0, 2, 1), &[0, 1])
            .finish_source(attempt(0, 1, 2, 1), &[2, 3])
            .run_sinks();
        passes(check, &story);
    }

    #[test]
    fn a_partition_of_a_leader_of_whom_nothing_was_kept_is_caught() {
        let mut story = started_over();
        story.finish_source(attempt(0, 0, 2, 1), &[0, 1, 2, 3]).run_sinks();
        caught(check, &story, "leader 2 kept nothing, and v1.0.e2a1 read d0/v0.1.e1a1");
    }
}
