//! S10: only completed partitions are consumed: when a subtask is deployed, every subtask that it reads
//! counts as finished, and a worker had told that each partition that it is to read is complete. (All
//! exchanges are blocking; a reader that comes earlier would read a prefix.)

use revenant::ids::ExecutionVertexId;

use super::history::Deployed;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    history.deployed.iter().try_for_each(|deployed| {
        let fault = incomplete(history, deployed);
        fault.map_or(Ok(()), |message| Err(history.violation("S10", deployed.at, message)))
    })
}

fn incomplete(history: &History, deployed: &Deployed) -> Option<String> {
    let (attempt, at) = (deployed.attempt, deployed.at);
    let vertex = history.graph.vertex(attempt.subtask.vertex);
    if vertex.inputs.is_empty() {
        return None;
    }
    let Some(decision) = history.initialized(vertex.id, at) else {
        return Some(format!("{attempt} was deployed before {} was initialized", vertex.id));
    };
    let gates = decision.inputs.get(attempt.subtask.subtask as usize)?;
    vertex.inputs.iter().zip(gates).find_map(|(&data_set, (partitions, _))| {
        let producer = history.graph.edge(data_set).producer;
        partitions.indices().find_map(|index| {
            let producer = ExecutionVertexId::new(producer, index);
            let Some(finish) = history.counted(producer, at) else {
                return Some(format!(
                    "{attempt} was deployed though its producer {producer} had not finished"
                ));
            };
            let mut partitions = history.partitions(finish.attempt);
            let partition = partitions.find(|partition| partition.data_set == data_set)?;
            let complete = history.held.iter().any(|held| held.partition == partition && held.from < at);
            (!complete).then(|| format!("{attempt} was deployed before {partition} was complete"))
        })
    })
}

#[cfg(test)]
mod tests {
    use revenant::note::Note;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn a_consumer_of_what_is_complete_is_good() {
        let mut story = Story::new();
        story.run_sources().run_sinks();
        passes(check, &story);
    }

    #[test]
    fn a_consumer_that_is_deployed_before_a_producer_has_finished_is_caught() {
        let mut story = Story::new();
        story.start().finish_source(attempt(0, 0, 1, 1), &[0, 1]).deploy(attempt(0, 1, 1, 1)).init_sinks();
        story.deploy(attempt(1, 0, 1, 1));
        caught(check, &story, "v1.0.e1a1 was deployed though its producer v0.1 had not finished");
    }

    #[test]
    fn a_finish_whose_partition_nobody_has_told_of_is_not_enough() {
        let mut story = Story::new();
        story.start().finish_source(attempt(0, 0, 1, 1), &[0, 1]);
        let finish = Note::FinishAccepted { attempt: attempt(0, 1, 1, 1), splits: vec![], inputs: vec![] };
        story.note(finish).init_sinks().deploy(attempt(1, 0, 1, 1));
        caught(check, &story, "before d0/v0.1.e1a1 was complete");
    }
}
