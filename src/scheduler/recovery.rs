//! The fold of a replayed log into what had been decided and what had finished (FLIP-383,
//! "Re-schedule after JM restart", steps 1 and 2). Which of it stands is then a question of the
//! partitions that still exist.

use std::collections::BTreeMap;

use crate::coordinator::CoordinatorSnapshot;
use crate::graph::JobGraph;
use crate::ids::{ExecutionVertexId, JobVertexId};
use crate::job_event::{Finish, JobEvent};
use crate::message::PartitionWithMetrics;

use super::InputRanges;

/// The JobMaster's state as the log tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredLog {
    /// Input ranges of each subtask, by initialized vertex.
    pub initialized: BTreeMap<JobVertexId, Vec<InputRanges>>,
    /// Finishes that no later reset took back.
    pub finished: BTreeMap<ExecutionVertexId, Finish>,
    /// The latest snapshot of each vertex's coordinator.
    pub coordinators: BTreeMap<JobVertexId, CoordinatorSnapshot>,
}

/// Folds the events in their order. An event that cannot be true of this graph is an error.
pub fn fold(events: &[JobEvent], graph: &JobGraph) -> Result<RecoveredLog, String> {
    let mut log = RecoveredLog::default();
    let from = events.iter().rposition(|event| {
        matches!(event, JobEvent::HistoryDiscarded { .. } | JobEvent::BaseRecorded { .. })
    });
    for event in &events[from.unwrap_or(0)..] {
        match event {
            JobEvent::EpochStarted { .. } | JobEvent::HistoryDiscarded { .. } => {}
            JobEvent::ExecutionJobVertexInitialized { vertex, parallelism, inputs } => {
                log.initialize(graph, *vertex, *parallelism, inputs)?;
            }
            JobEvent::ExecutionVertexFinished { finish, coordinators } => {
                log.finish(graph, finish)?;
                log.coordinators.extend(coordinators.iter().cloned());
            }
            JobEvent::ExecutionVertexReset { subtasks } => {
                for id in subtasks {
                    log.finished.remove(id);
                }
            }
            JobEvent::BaseRecorded { initialized, finished, coordinators } => {
                for (vertex, inputs) in initialized {
                    log.initialize(graph, *vertex, inputs.len() as u32, inputs)?;
                }
                for finish in finished {
                    log.finish(graph, finish)?;
                }
                log.coordinators.extend(coordinators.iter().cloned());
            }
        }
    }
    Ok(log)
}

impl RecoveredLog {
    fn initialize(
        &mut self,
        graph: &JobGraph,
        vertex: JobVertexId,
        parallelism: u32,
        inputs: &[InputRanges],
    ) -> Result<(), String> {
        check_initialized(graph, self, vertex, parallelism, inputs)?;
        self.initialized.insert(vertex, inputs.to_vec());
        Ok(())
    }

    fn finish(&mut self, graph: &JobGraph, finish: &Finish) -> Result<(), String> {
        let attempt = &finish.attempt;
        let id = attempt.subtask;
        if self.initialized.get(&id.vertex).is_none_or(|inputs| inputs.len() <= id.subtask as usize) {
            return Err(format!("{attempt} finished, but {} was never initialized with it", id.vertex));
        }
        let is_output = |partition: &PartitionWithMetrics| {
            let edge = graph.edges.get(partition.partition.data_set.0 as usize);
            partition.partition.producer == *attempt && edge.is_some_and(|edge| edge.producer == id.vertex)
        };
        if !finish.partitions.iter().all(is_output) {
            return Err(format!("{attempt} finished with partitions that are not its own"));
        }
        self.finished.insert(id, finish.clone());
        Ok(())
    }
}

fn check_initialized(
    graph: &JobGraph,
    log: &RecoveredLog,
    vertex: JobVertexId,
    parallelism: u32,
    inputs: &[InputRanges],
) -> Result<(), String> {
    let known =
        graph.vertices.get(vertex.0 as usize).ok_or_else(|| format!("{vertex} is not in the job graph"))?;
    let producers = known.inputs.iter().map(|&input| {
        let producer = graph.edge(input).producer;
        log.initialized.get(&producer).map_or(0, Vec::len)
    });
    let producers: Vec<usize> = producers.collect();
    let reads_what_exists = |ranges: &InputRanges| {
        ranges.len() == producers.len()
            && ranges.iter().zip(&producers).all(|((partitions, subpartitions), &count)| {
                partitions.start <= partitions.end
                    && (partitions.end as usize) < count
                    && subpartitions.start <= subpartitions.end
            })
    };
    if parallelism > 0 && inputs.len() == parallelism as usize && inputs.iter().all(reads_what_exists) {
        Ok(())
    } else {
        Err(format!("{vertex} was initialized with inputs that its producers do not have"))
    }
}
