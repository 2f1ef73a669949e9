//! When another attempt's result is as good as the one that was read: two accepted attempts of a
//! subtask of a determinate vertex have the same result if they had the same input. Follows from what
//! the attempts were given, never from what the engine decided about them.

use std::collections::BTreeMap;

use revenant::graph::Determinacy;
use revenant::ids::ExecutionAttemptId;

use super::History;

/// Compares attempts of one history; what was compared once is known.
pub struct Equivalence<'a> {
    history: &'a History<'a>,
    known: BTreeMap<(ExecutionAttemptId, ExecutionAttemptId), bool>,
}

impl<'a> Equivalence<'a> {
    pub const fn of(history: &'a History<'a>) -> Self {
        Self { history, known: BTreeMap::new() }
    }

    /// Whether two attempts of a subtask have the same result: they are one, or both were accepted, of a
    /// determinate vertex, with the same splits in the same order, or the same ranges of inputs that are
    /// pairwise equal or equivalent.
    pub fn holds(&mut self, one: ExecutionAttemptId, other: ExecutionAttemptId) -> bool {
        if one == other {
            return true;
        }
        if let Some(&known) = self.known.get(&(one, other)) {
            return known;
        }
        let equivalent = self.compare(one, other);
        self.known.insert((one, other), equivalent);
        equivalent
    }

    fn compare(&mut self, one: ExecutionAttemptId, other: ExecutionAttemptId) -> bool {
        let history = self.history;
        let (Some(a), Some(b)) = (history.accepted(one), history.accepted(other)) else { return false };
        one.subtask == other.subtask
            && history.graph.vertex(one.subtask.vertex).determinacy == Determinacy::Determinate
            && a.splits == b.splits
            && history.ranges_of(a) == history.ranges_of(b)
            && a.inputs.len() == b.inputs.len()
            && a.inputs.iter().zip(b.inputs).all(|(a, b)| {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.data_set == b.data_set && self.holds(a.producer, b.producer))
            })
    }
}

#[cfg(test)]
mod tests {
    use revenant::message::IndexRange;
    use revenant::note::Note;

    use super::*;
    use crate::oracle::testing::{Story, attempt, with_history};

    fn again(story: &mut Story, splits: &[u32]) {
        story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
        story.finish_source(attempt(0, 1, 1, 2), splits);
    }

    fn holds(story: &Story, one: ExecutionAttemptId, other: ExecutionAttemptId) -> bool {
        with_history(story, |history| Equivalence::of(history).holds(one, other))
    }

    #[test]
    fn sources_are_compared_by_their_splits_in_order() {
        let (first, second) = (attempt(0, 1, 1, 1), attempt(0, 1, 1, 2));
        for (splits, same) in [(&[2, 3][..], true), (&[3, 2], false), (&[2], false), (&[], false)] {
            let mut story = Story::determinate();
            again(story.run_sources(), splits);
            assert_eq!(holds(&story, first, second), same, "{splits:?}");
        }
        let mut story = Story::new();
        again(story.run_sources(), &[2, 3]);
        assert!(!holds(&story, first, second), "of an indeterminate vertex nothing is known");
        assert!(holds(&story, first, first));
    }

    #[test]
    fn others_are_compared_by_what_they_read_down_to_the_splits() {
        for (splits, same) in [(&[2, 3], true), (&[3, 2], false)] {
            let mut story = Story::determinate();
            story.run_sources().init_sinks().finish_sink(attempt(1, 0, 1, 1));
            again(&mut story, splits);
            story.note(Note::SubtaskReset { subtask: attempt(1, 0, 1, 1).subtask });
            story.finish_sink(attempt(1, 0, 1, 2));
            assert_eq!(holds(&story, attempt(1, 0, 1, 1), attempt(1, 0, 1, 2)), same);
        }
    }

    #[test]
    fn other_ranges_of_the_same_inputs_are_other_input() {
        for (split_at, same) in [(1, true), (2, false)] {
            let mut story = Story::determinate();
            story.run_sources().init_sinks().finish_sink(attempt(1, 0, 1, 1)).crash().lead(2);
            let all = IndexRange::new(0, 1);
            let ranges = [IndexRange::new(0, split_at), IndexRange::new(split_at + 1, 3)];
            story.init(2, 1, 2, ranges.map(|range| vec![(all, range)]).to_vec());
            story.finish_sink(attempt(1, 0, 2, 1));
            assert_eq!(holds(&story, attempt(1, 0, 1, 1), attempt(1, 0, 2, 1)), same);
        }
    }

    #[test]
    fn what_was_never_accepted_or_is_of_another_subtask_is_nothing_like() {
        let mut story = Story::determinate();
        story.run_sources();
        assert!(!holds(&story, attempt(0, 0, 1, 1), attempt(0, 0, 1, 2)));
        assert!(!holds(&story, attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)));
    }
}
