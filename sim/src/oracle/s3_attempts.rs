//! S3: every consumer read each of its partitions, and no other, from the one attempt of the
//! producer that counts, or from one whose result is the same. A partition's identity includes the
//! attempt: output of an older attempt is other data, unless its producer is determinate and had the
//! same input.

use revenant::graph::Determinacy;
use revenant::ids::{ExecutionVertexId, ResultPartitionId};

use super::equivalence::Equivalence;
use super::history::Finish;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    let mut same = Equivalence::of(history);
    for finish in history.finishes.values().flatten() {
        // A producer may come to another result after its consumer has finished only if the consumer
        // restarts too, so judge at the start of the consumer's finish and at the end of the job.
        judge(history, &mut same, finish, finish.from)?;
    }
    let Some(complete) = history.complete else { return Ok(()) };
    history.all_counted(complete).try_for_each(|finish| judge(history, &mut same, finish, complete))
}

fn judge(history: &History, same: &mut Equivalence, finish: &Finish, at: usize) -> Result<(), Violation> {
    let subtask = finish.attempt.subtask;
    let fail = |message| Err(history.violation("S3", at, message));
    let Some(decision) = history.initialized(subtask.vertex, at) else {
        return fail(format!("{} finished though {} was never initialized", finish.attempt, subtask.vertex));
    };
    let gates = &history.graph.vertex(subtask.vertex).inputs;
    if finish.inputs.len() != gates.len() {
        return fail(format!("{} read {} inputs of {}", finish.attempt, finish.inputs.len(), gates.len()));
    }
    for (gate, (&data_set, read)) in gates.iter().zip(finish.inputs).enumerate() {
        let producer = history.graph.edge(data_set).producer;
        let ranges = decision.inputs.get(subtask.subtask as usize).and_then(|gates| gates.get(gate));
        let Some((partitions, _)) = ranges else {
            return fail(format!("{} has no input ranges for {data_set}", finish.attempt));
        };
        let mut read = read.iter();
        for index in partitions.indices() {
            let subtask = ExecutionVertexId::new(producer, index);
            let Some(accepted) = history.counted(subtask, at) else {
                // A determinate producer may be about to run again; its result is judged at the end.
                if history.graph.vertex(producer).determinacy == Determinacy::Determinate
                    && read.next().is_some_and(|read| {
                        read.data_set == data_set
                            && read.producer.subtask == subtask
                            && history.accepted(read.producer).is_some()
                    })
                {
                    continue;
                }
                return fail(format!("{} counts though its producer {subtask} does not", finish.attempt));
            };
            let expected = ResultPartitionId { data_set, producer: accepted.attempt };
            match read.next() {
                Some(&partition)
                    if partition.data_set == data_set
                        && same.holds(partition.producer, expected.producer) => {}
                Some(partition) => {
                    return fail(format!("{} read {partition}, what counts is {expected}", finish.attempt));
                }
                None => return fail(format!("{} did not read {expected}", finish.attempt)),
            }
        }
        if let Some(partition) = read.next() {
            return fail(format!("{} read {partition}, which is not among its inputs", finish.attempt));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use revenant::note::Note;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, partition, passes};

    #[test]
    fn consumers_of_the_counted_attempts_are_good() {
        let mut story = Story::new();
        story.run_sources().run_sinks();
        passes(check, &story);
    }

    #[test]
    fn a_consumer_of_an_older_attempt_is_caught() {
        let mut story = Story::new();
        story.run_sources();
        story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
        story.finish_source(attempt(0, 1, 1, 2), &[2, 3]);
        story.init_sinks();
        let inputs = vec![vec![partition(attempt(0, 0, 1, 1)), partition(attempt(0, 1, 1, 1))]];
        story.note(Note::FinishAccepted { attempt: attempt(1, 0, 1, 1), splits: vec![], inputs });
        caught(check, &story, "read d0/v0.1.e1a1, what counts is d0/v0.1.e1a2");
    }

    #[test]
    fn a_consumer_that_stays_finished_when_its_producer_restarts_is_caught() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        story.finish_sink(attempt(1, 0, 1, 1));
        story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
        story.finish_source(attempt(0, 1, 1, 2), &[2, 3]);
        let inputs = vec![vec![partition(attempt(0, 0, 1, 1)), partition(attempt(0, 1, 1, 2))]];
        story.note(Note::FinishAccepted { attempt: attempt(1, 1, 1, 1), splits: vec![], inputs });
        caught(check, &story, "v1.0.e1a1 read d0/v0.1.e1a1");
    }

    /// A sink finishes, a source runs again with these splits, the other sink finishes.
    fn with_a_source_again(mut story: Story, splits: &[u32]) -> Story {
        story.run_sources().init_sinks();
        story.finish_sink(attempt(1, 0, 1, 1));
        story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
        story.finish_source(attempt(0, 1, 1, 2), splits);
        story.finish_sink(attempt(1, 1, 1, 1));
        story
    }

    #[test]
    fn the_same_result_of_another_attempt_is_as_good() {
        passes(check, &with_a_source_again(Story::determinate(), &[2, 3]));
        for (story, splits) in [(Story::determinate(), [3, 2]), (Story::new(), [2, 3])] {
            let story = with_a_source_again(story, &splits);
            caught(check, &story, "v1.0.e1a1 read d0/v0.1.e1a1, what counts is d0/v0.1.e1a2");
        }
    }

    #[test]
    fn a_finish_without_a_producer_is_good_only_until_the_end_and_of_a_determinate_one() {
        let without = |mut story: Story| {
            story.run_sources().init_sinks();
            story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
            story.finish_sink(attempt(1, 0, 1, 1));
            story
        };
        passes(check, &without(Story::determinate()));
        caught(check, &without(Story::new()), "counts though its producer v0.1 does not");
        let mut story = Story::determinate();
        story.run_sources().init_sinks();
        story.note(Note::SubtaskReset { subtask: attempt(0, 1, 1, 1).subtask });
        let inputs = vec![vec![partition(attempt(0, 0, 1, 1)), partition(attempt(0, 1, 1, 9))]];
        story.note(Note::FinishAccepted { attempt: attempt(1, 0, 1, 1), splits: vec![], inputs });
        caught(check, &story, "counts though its producer v0.1 does not");
    }

    #[test]
    fn a_partition_that_was_not_read_is_caught() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        let inputs = vec![vec![partition(attempt(0, 0, 1, 1))]];
        story.note(Note::FinishAccepted { attempt: attempt(1, 0, 1, 1), splits: vec![], inputs });
        caught(check, &story, "did not read d0/v0.1.e1a1");
    }
}
