//! P2: nothing comes of nothing: a subtask that read no record emits none, unless it computes what has a
//! result of no records too, as a `mapPartition` or an `aggregate` may. Which do is known to the reference.

use super::p1_records::metrics;
use super::{History, Violation};
use crate::reference::Reference;

pub fn check(history: &History, reference: &Reference) -> Result<(), Violation> {
    let metrics = metrics(history);
    let finishes = history.finishes.values().flatten();
    let broken = finishes.filter_map(|finish| {
        let vertex = finish.attempt.subtask.vertex;
        let counted = metrics.get(&finish.attempt)?;
        let from_nothing = counted.records_in == 0 && counted.records_out > 0;
        let may = history.graph.vertex(vertex).inputs.is_empty() || reference.counting(vertex).of_nothing;
        (from_nothing && !may).then_some((finish.from, finish.attempt, counted.records_out))
    });
    match broken.min_by_key(|(at, ..)| *at) {
        Some((at, attempt, emitted)) => {
            let message = format!("{attempt} read nothing and emitted {emitted} records");
            Err(history.violation("P2", at, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes, test_reference};

    #[test]
    fn a_record_of_an_empty_partition_is_caught_and_one_of_a_source_is_not() {
        let counted = |emitted: u64| {
            let mut story = Story::new();
            story.counts(attempt(0, 0, 1, 1), 0, 4).counts(attempt(1, 0, 1, 1), 0, emitted);
            story.run_sources().run_sinks();
            story
        };
        let check = |history: &History| check(history, &test_reference());
        passes(check, &counted(0));
        caught(check, &counted(1), "v1.0.e1a1 read nothing and emitted 1 records");
    }
}
