//! The fold of a replayed log into what had been decided and what had finished (FLIP-383,
//! "Re-schedule after JM restart", steps 1 and 2), reconciled with the coordinators: a source's
//! vertex goes back to the time of its coordinator's latest snapshot. Which of it stands is then a
//! question of the partitions that still exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::coordinator::{CoordinatorSnapshot, SnapshotKind};
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
    /// Finishes that count: no later reset took them back, and the coordinators know of them.
    pub finished: BTreeMap<ExecutionVertexId, Finish>,
    /// The latest snapshot of each vertex's coordinator.
    pub coordinators: BTreeMap<JobVertexId, CoordinatorSnapshot>,
    /// Finishes of sources that cannot count, because their coordinator's state of that time is lost:
    /// they came after its latest snapshot, or it has none and the vertex was not whole.
    pub taken_back: BTreeSet<ExecutionVertexId>,
    /// Vertices that are finished, but whose coordinator could not be recovered: if one of their
    /// subtasks runs again, all have to.
    pub unrecovered: BTreeSet<JobVertexId>,
}

/// Folds the events in their order. An event that cannot be true of this graph is an error.
pub fn fold(events: &[JobEvent], graph: &JobGraph) -> Result<RecoveredLog, String> {
    let mut log = RecoveredLog::default();
    // Finishes since the latest snapshot of their vertex's coordinator.
    let mut uncovered: BTreeSet<ExecutionVertexId> = BTreeSet::new();
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
                log.finish(graph, finish, &mut uncovered)?;
                log.snapshot(coordinators, &mut uncovered);
            }
            JobEvent::ExecutionVertexReset { subtasks } => {
                for id in subtasks {
                    log.finished.remove(id);
                    uncovered.remove(id);
                }
            }
            JobEvent::BaseRecorded { initialized, finished, coordinators } => {
                for (vertex, inputs) in initialized {
                    log.initialize(graph, *vertex, inputs.len() as u32, inputs)?;
                }
                for finish in finished {
                    log.finish(graph, finish, &mut uncovered)?;
                }
                log.snapshot(coordinators, &mut uncovered);
            }
        }
    }
    log.reconcile(graph, &uncovered);
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

    fn finish(
        &mut self,
        graph: &JobGraph,
        finish: &Finish,
        uncovered: &mut BTreeSet<ExecutionVertexId>,
    ) -> Result<(), String> {
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
        uncovered.insert(id);
        Ok(())
    }

    fn snapshot(
        &mut self,
        coordinators: &[(JobVertexId, CoordinatorSnapshot)],
        uncovered: &mut BTreeSet<ExecutionVertexId>,
    ) {
        for (vertex, snapshot) in coordinators {
            uncovered.retain(|id| id.vertex != *vertex);
            self.coordinators.insert(*vertex, snapshot.clone());
        }
    }

    /// FLIP-383: "we will adjust the execution job vertex to the state at the time of the latest
    /// snapshot [of] operator coordinators".
    fn reconcile(&mut self, graph: &JobGraph, uncovered: &BTreeSet<ExecutionVertexId>) {
        for vertex in &graph.vertices {
            let (Some(source), Some(inputs)) = (&vertex.source, self.initialized.get(&vertex.id)) else {
                continue;
            };
            let subtasks = (0..inputs.len() as u32).map(|subtask| ExecutionVertexId::new(vertex.id, subtask));
            let finished: Vec<_> = subtasks.filter(|id| self.finished.contains_key(id)).collect();
            let whole = finished.len() == inputs.len();
            match source.snapshot_kind() {
                SnapshotKind::Stateless => {}
                SnapshotKind::Supported => {
                    self.taken_back.extend(finished.iter().filter(|id| uncovered.contains(id)));
                }
                SnapshotKind::Unsupported if whole => {
                    self.unrecovered.insert(vertex.id);
                }
                SnapshotKind::Unsupported => self.taken_back.extend(finished),
            }
        }
        for id in &self.taken_back {
            self.finished.remove(id);
        }
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
