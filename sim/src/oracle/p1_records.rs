//! P1: each record is seen exactly once: the subtasks of a vertex that count read together as many
//! records as those that they read from emitted (of a broadcast each reads all), by what their tasks
//! counted. Which records, and in which subtask, is what S1 compares byte by byte.

use std::collections::BTreeMap;

use revenant::graph::Partitioner;
use revenant::ids::{ExecutionAttemptId, JobVertexId};
use revenant::message::IoMetrics;
use revenant::note::Note;

use super::{History, Violation};
use crate::reference::Reference;
use crate::trace::TraceKind;

pub fn check(history: &History, reference: &Reference) -> Result<(), Violation> {
    let Some(complete) = history.complete else { return Ok(()) };
    let metrics = metrics(history);
    if metrics.is_empty() {
        return Ok(());
    }
    for vertex in &history.graph.vertices {
        let mut expected = Some(0);
        for &data_set in &vertex.inputs {
            let edge = history.graph.edge(data_set);
            let alone = history.graph.vertex(edge.producer).outputs.len() == 1
                && !reference.counting(edge.producer).writes;
            let emitted =
                of_vertex(history, &metrics, edge.producer, complete, |metrics| metrics.records_out);
            let readers = match edge.partitioner {
                Partitioner::Broadcast => {
                    history.initialized(vertex.id, complete).map_or(0, |decision| decision.parallelism)
                }
                _ => 1,
            };
            // What is counted of several outputs cannot be told apart.
            let emitted = emitted.filter(|_| alone).map(|emitted| emitted * u64::from(readers));
            expected = expected.zip(emitted).map(|(sum, emitted)| sum + emitted);
        }
        let read = of_vertex(history, &metrics, vertex.id, complete, |metrics| metrics.records_in);
        if !vertex.inputs.is_empty()
            && let Some((expected, read)) = expected.zip(read)
            && (read > expected || (read < expected && !reference.counting(vertex.id).ends_early))
        {
            let message =
                format!("{} read {read} records, of {expected} that were emitted for it", vertex.name);
            return Err(history.violation("P1", complete, message));
        }
    }
    Ok(())
}

/// What each attempt that ended well had counted.
pub fn metrics(history: &History) -> BTreeMap<ExecutionAttemptId, IoMetrics> {
    let notes = history.outcome.trace.iter().filter_map(|event| match &event.what {
        TraceKind::Note(Note::TaskMetrics { attempt, metrics }) => Some((*attempt, *metrics)),
        _ => None,
    });
    notes.collect()
}

/// A sum over the attempts of a vertex that count. `None` if one of them has not told what it counted.
fn of_vertex(
    history: &History,
    metrics: &BTreeMap<ExecutionAttemptId, IoMetrics>,
    vertex: JobVertexId,
    at: usize,
    what: impl Fn(&IoMetrics) -> u64,
) -> Option<u64> {
    let finishes = history.all_counted(at).filter(|finish| finish.attempt.subtask.vertex == vertex);
    finishes.map(|finish| metrics.get(&finish.attempt).map(&what)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes, test_reference};

    fn judge(history: &History) -> Result<(), Violation> {
        check(history, &test_reference())
    }

    fn counted(read: u64) -> Story {
        let mut story = Story::new();
        for subtask in [0, 1] {
            story.counts(attempt(0, subtask, 1, 1), 0, 2).counts(attempt(1, subtask, 1, 1), read, read);
        }
        story.run_sources().run_sinks();
        story
    }

    #[test]
    fn as_many_records_as_were_emitted_are_good() {
        passes(judge, &counted(2));
    }

    #[test]
    fn a_record_that_is_read_twice_or_not_at_all_is_caught() {
        caught(judge, &counted(3), "Sink read 6 records, of 4 that were emitted");
        caught(judge, &counted(1), "Sink read 2 records, of 4 that were emitted");
    }

    #[test]
    fn an_attempt_that_does_not_count_does_not_count() {
        let mut story = counted(2);
        story.counts(attempt(1, 0, 1, 7), 9, 9);
        passes(judge, &story);
    }
}
