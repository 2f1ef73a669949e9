//! S3: every consumer read each of its partitions, and no other, from the one attempt of the
//! producer that counts. A partition's identity includes the attempt: output of an older attempt is
//! other data.

use revenant::ids::{ExecutionVertexId, ResultPartitionId};

use super::history::Finish;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    for finish in history.finishes.values().flatten() {
        // A producer may restart after its consumer has finished only if the consumer restarts too,
        // so judge at the start of the consumer's finish and at the end of the job.
        judge(history, finish, finish.from)?;
    }
    let Some(complete) = history.complete else { return Ok(()) };
    history.all_counted(complete).try_for_each(|finish| judge(history, finish, complete))
}

fn judge(history: &History, finish: &Finish, at: usize) -> Result<(), Violation> {
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
            let Some(accepted) = history.counted(ExecutionVertexId::new(producer, index), at) else {
                return fail(format!(
                    "{} counts though its producer {producer}.{index} does not",
                    finish.attempt
                ));
            };
            let expected = ResultPartitionId { data_set, producer: accepted.attempt };
            match read.next() {
                Some(&partition) if partition == expected => {}
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

    #[test]
    fn a_partition_that_was_not_read_is_caught() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        let inputs = vec![vec![partition(attempt(0, 0, 1, 1))]];
        story.note(Note::FinishAccepted { attempt: attempt(1, 0, 1, 1), splits: vec![], inputs });
        caught(check, &story, "did not read d0/v0.1.e1a1");
    }
}
