//! S2: every split is consumed exactly once over the finishes that count (FLIP-383, "reconcile": a
//! split is in the enumerator or assigned to a finished subtask). Sees splits held twice at the
//! moment when it happens, and splits that nobody consumed at the end.

use std::collections::BTreeMap;

use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    as_assigned(history)?;
    for finish in history.finishes.values().flatten().filter(|finish| !finish.splits.is_empty()) {
        let vertex = finish.attempt.subtask.vertex;
        for other in history.all_counted(finish.from).filter(|other| {
            other.attempt.subtask.vertex == vertex && other.attempt.subtask != finish.attempt.subtask
        }) {
            if let Some(split) = other.splits.iter().find(|split| finish.splits.contains(split)) {
                return Err(history.violation(
                    "S2",
                    finish.from,
                    format!("split {split} was consumed by {} and by {}", other.attempt, finish.attempt),
                ));
            }
        }
    }
    let Some(complete) = history.complete else { return Ok(()) };
    for (vertex, splits) in history.graph.vertices.iter().zip(&history.shape.splits) {
        let Some(splits) = *splits else { continue };
        let mut consumed = vec![0_u32; splits as usize];
        let finishes =
            history.all_counted(complete).filter(|finish| finish.attempt.subtask.vertex == vertex.id);
        for &split in finishes.flat_map(|finish| finish.splits) {
            let Some(times) = consumed.get_mut(split as usize) else {
                let message = format!("split {split} of {} does not exist", vertex.name);
                return Err(history.violation("S2", complete, message));
            };
            *times += 1;
        }
        if let Some((split, times)) = consumed.iter().enumerate().find(|(_, times)| **times != 1) {
            let message = format!("split {split} of {} was consumed {times} times", vertex.name);
            return Err(history.violation("S2", complete, message));
        }
    }
    Ok(())
}

/// What a finish says it was assigned is what it was seen to be assigned.
fn as_assigned(history: &History) -> Result<(), Violation> {
    let mut assigned: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (at, event) in history.outcome.trace.iter().enumerate() {
        match &event.what {
            TraceKind::Note(Note::SplitAssigned { attempt, split }) => {
                // An answer that was lost is given again; that is no second assignment.
                let splits = assigned.entry(*attempt).or_default();
                if !splits.contains(split) {
                    splits.push(*split);
                }
            }
            TraceKind::Note(Note::FinishAccepted { attempt, splits, .. }) => {
                let seen = assigned.get(attempt).map_or(&[][..], Vec::as_slice);
                if seen != splits {
                    let message =
                        format!("{attempt} finished with splits {splits:?}, it was assigned {seen:?}");
                    return Err(history.violation("S2", at, message));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn each_split_once_is_good() {
        let mut story = Story::new();
        story.run_sources();
        passes(check, &story);
    }

    #[test]
    fn a_split_that_two_readers_consumed_is_caught() {
        let mut story = Story::new();
        story.start();
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[1, 2, 3]);
        caught(check, &story, "split 1 was consumed by v0.0.e1a1 and by v0.1.e1a1");
    }

    #[test]
    fn a_split_that_nobody_consumed_is_caught_when_all_is_finished() {
        let mut story = Story::new();
        story.start();
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[3]);
        passes(check, &story);
        story.run_sinks();
        caught(check, &story, "split 2 of Source was consumed 0 times");
    }

    #[test]
    fn a_finish_with_splits_that_it_was_not_assigned_is_caught() {
        let mut story = Story::new();
        story.start();
        story.note(Note::FinishAccepted { attempt: attempt(0, 0, 1, 1), splits: vec![0], inputs: vec![] });
        caught(check, &story, "it was assigned []");
    }

    #[test]
    fn an_assignment_that_is_repeated_is_one_assignment() {
        let mut story = Story::new();
        story.start();
        story.note(Note::SplitAssigned { attempt: attempt(0, 0, 1, 1), split: 0 });
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]);
        passes(check, &story);
    }

    #[test]
    fn a_split_given_back_by_a_reset_may_be_consumed_again() {
        let mut story = Story::new();
        story.start();
        story.finish_source(attempt(0, 0, 1, 1), &[0, 1]);
        story.note(Note::SubtaskReset { subtask: attempt(0, 0, 1, 1).subtask });
        story.finish_source(attempt(0, 1, 1, 1), &[0, 1, 2, 3]);
        passes(check, &story);
    }
}
