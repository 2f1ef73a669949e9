//! The execution graph: the job graph with decided parallelisms and the state of every subtask.

use std::sync::Arc;

use crate::graph::{JobGraph, Partitioner};
use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use crate::job_event::Finish;

use super::{InputRanges, PartitionTracker};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubtaskState {
    /// Waits for its inputs or a slot.
    Created,
    /// Sent to a TaskManager.
    Deployed {
        attempt: ExecutionAttemptId,
        location: ProcessId,
    },
    Finished(Finish),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionVertex {
    pub state: SubtaskState,
    /// Tries that this leader made, so that the next gets a number of its own.
    attempts: u32,
}

impl ExecutionVertex {
    pub const fn finish(&self) -> Option<&Finish> {
        match &self.state {
            SubtaskState::Finished(finish) => Some(finish),
            SubtaskState::Created | SubtaskState::Deployed { .. } => None,
        }
    }
}

/// A job vertex; it has subtasks once it is initialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionJobVertex {
    pub id: JobVertexId,
    pub initialized: Option<Initialized>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialized {
    /// By subtask and input edge.
    pub inputs: Vec<InputRanges>,
    pub subtasks: Vec<ExecutionVertex>,
}

#[derive(Debug)]
pub struct ExecutionGraph {
    pub graph: Arc<JobGraph>,
    pub vertices: Vec<ExecutionJobVertex>,
}

impl ExecutionGraph {
    pub fn new(graph: Arc<JobGraph>) -> Self {
        let vertices = graph
            .vertices
            .iter()
            .map(|vertex| ExecutionJobVertex { id: vertex.id, initialized: None })
            .collect();
        Self { graph, vertices }
    }

    pub fn initialize(&mut self, vertex: JobVertexId, inputs: Vec<InputRanges>) {
        let subtasks =
            inputs.iter().map(|_| ExecutionVertex { state: SubtaskState::Created, attempts: 0 }).collect();
        self.vertices[vertex.0 as usize].initialized = Some(Initialized { inputs, subtasks });
    }

    pub fn initialized(&self, vertex: JobVertexId) -> Option<&Initialized> {
        self.vertices.get(vertex.0 as usize)?.initialized.as_ref()
    }

    pub fn parallelism(&self, vertex: JobVertexId) -> Option<u32> {
        self.initialized(vertex).map(|initialized| initialized.subtasks.len() as u32)
    }

    pub fn subtask(&self, id: ExecutionVertexId) -> Option<&ExecutionVertex> {
        self.initialized(id.vertex)?.subtasks.get(id.subtask as usize)
    }

    fn subtask_mut(&mut self, id: ExecutionVertexId) -> Option<&mut ExecutionVertex> {
        let vertex = self.vertices.get_mut(id.vertex.0 as usize)?;
        vertex.initialized.as_mut()?.subtasks.get_mut(id.subtask as usize)
    }

    /// All subtasks of initialized vertices, in topological order.
    pub fn subtasks(&self) -> impl Iterator<Item = (ExecutionVertexId, &ExecutionVertex)> {
        self.vertices.iter().filter_map(|vertex| Some((vertex.id, vertex.initialized.as_ref()?))).flat_map(
            |(id, initialized)| {
                initialized
                    .subtasks
                    .iter()
                    .enumerate()
                    .map(move |(i, subtask)| (ExecutionVertexId::new(id, i as u32), subtask))
            },
        )
    }

    pub fn finish(&self, id: ExecutionVertexId) -> Option<&Finish> {
        match &self.subtask(id)?.state {
            SubtaskState::Finished(finish) => Some(finish),
            _ => None,
        }
    }

    pub fn is_finished(&self, id: ExecutionVertexId) -> bool {
        self.finish(id).is_some()
    }

    pub fn is_vertex_finished(&self, vertex: JobVertexId) -> bool {
        self.initialized(vertex).is_some_and(|initialized| {
            initialized.subtasks.iter().all(|subtask| matches!(subtask.state, SubtaskState::Finished(_)))
        })
    }

    pub fn is_job_finished(&self) -> bool {
        self.vertices.iter().all(|vertex| self.is_vertex_finished(vertex.id))
    }

    /// The running attempt of a subtask, if `attempt` is it.
    pub fn deployed_at(&self, attempt: ExecutionAttemptId) -> Option<ProcessId> {
        match self.subtask(attempt.subtask)?.state {
            SubtaskState::Deployed { attempt: current, location } if current == attempt => Some(location),
            _ => None,
        }
    }

    /// Starts a new attempt of a subtask.
    pub fn deploy(
        &mut self,
        id: ExecutionVertexId,
        epoch: FencingToken,
        location: ProcessId,
    ) -> ExecutionAttemptId {
        let subtask = self.subtask_mut(id).expect("only subtasks of this graph are deployed");
        subtask.attempts += 1;
        let attempt = ExecutionAttemptId { subtask: id, epoch, number: subtask.attempts };
        subtask.state = SubtaskState::Deployed { attempt, location };
        attempt
    }

    pub fn set_finished(&mut self, finish: Finish) {
        if let Some(subtask) = self.subtask_mut(finish.attempt.subtask) {
            subtask.state = SubtaskState::Finished(finish);
        }
    }

    /// The subtask will run again. Returns what it was before.
    pub fn reset(&mut self, id: ExecutionVertexId) -> Option<SubtaskState> {
        let subtask = self.subtask_mut(id)?;
        Some(std::mem::replace(&mut subtask.state, SubtaskState::Created))
    }

    /// The subtasks that read partition `index` of a data set; `None` while the consumer is not
    /// initialized.
    pub fn consumers(&self, data_set: IntermediateDataSetId, index: u32) -> Option<Vec<ExecutionVertexId>> {
        let edge = self.graph.edge(data_set);
        let gate = self.gate(data_set);
        let initialized = self.initialized(edge.consumer)?;
        let reads = |inputs: &InputRanges| {
            inputs.get(gate).is_some_and(|(partitions, _)| partitions.indices().contains(&index))
        };
        let readers = initialized.inputs.iter().enumerate().filter(|(_, inputs)| reads(inputs));
        Some(readers.map(|(i, _)| ExecutionVertexId::new(edge.consumer, i as u32)).collect())
    }

    /// The producers whose partitions a subtask reads, with the data set of each, in gate order.
    pub fn producers(
        &self,
        id: ExecutionVertexId,
    ) -> impl Iterator<Item = (IntermediateDataSetId, ExecutionVertexId)> {
        let gates = &self.graph.vertex(id.vertex).inputs;
        let ranges =
            self.initialized(id.vertex).and_then(|initialized| initialized.inputs.get(id.subtask as usize));
        gates.iter().zip(ranges.into_iter().flatten()).flat_map(|(&data_set, (partitions, _))| {
            let producer = self.graph.edge(data_set).producer;
            partitions.indices().map(move |index| (data_set, ExecutionVertexId::new(producer, index)))
        })
    }

    /// Position of an edge among its consumer's inputs.
    fn gate(&self, data_set: IntermediateDataSetId) -> usize {
        let consumer = self.graph.edge(data_set).consumer;
        self.graph.vertex(consumer).inputs.iter().position(|&input| input == data_set).unwrap_or(usize::MAX)
    }

    /// Whether the job graph has such a result. What comes from outside may name others.
    pub fn is_output(&self, partition: ResultPartitionId) -> bool {
        let edge = self.graph.edges.get(partition.data_set.0 as usize);
        edge.is_some_and(|edge| edge.producer == partition.producer.subtask.vertex)
    }

    /// Whether some consumer of the partition has not finished, or is not even known.
    pub fn is_needed(&self, data_set: IntermediateDataSetId, index: u32) -> bool {
        self.consumers(data_set, index)
            .is_none_or(|readers| readers.iter().any(|&reader| !self.is_finished(reader)))
    }

    /// FLIP-383, "all partitions required to continue running": partitions of finished producers
    /// that an unfinished consumer reads or will read.
    pub fn required_partitions(&self) -> Vec<ResultPartitionId> {
        self.subtasks()
            .filter_map(|(_, subtask)| match &subtask.state {
                SubtaskState::Finished(finish) => Some(finish),
                _ => None,
            })
            .flat_map(|finish| {
                let outputs = &self.graph.vertex(finish.attempt.subtask.vertex).outputs;
                outputs.iter().map(|&data_set| ResultPartitionId { data_set, producer: finish.attempt })
            })
            .filter(|partition| self.is_needed(partition.data_set, partition.index()))
            .collect()
    }

    /// Whether all inputs of a subtask are finished and where the tracker knows them.
    pub fn is_consumable(&self, id: ExecutionVertexId, tracker: &PartitionTracker) -> bool {
        self.producers(id).all(|(data_set, producer)| {
            self.finish(producer).is_some_and(|finish| {
                tracker.get(ResultPartitionId { data_set, producer: finish.attempt }).is_some()
            })
        })
    }

    /// Whether the vertex can be initialized: all its producers' subtasks are finished.
    pub fn is_initializable(&self, vertex: JobVertexId) -> bool {
        self.initialized(vertex).is_none()
            && self
                .graph
                .vertex(vertex)
                .inputs
                .iter()
                .all(|&input| self.is_vertex_finished(self.graph.edge(input).producer))
    }

    /// Bytes of each of the `count` subpartitions of a data set, over all partitions whose producers'
    /// finishes count now.
    pub fn subpartition_bytes(&self, data_set: IntermediateDataSetId, count: u32) -> Vec<u64> {
        let producer = self.graph.edge(data_set).producer;
        let subtasks = self.initialized(producer).into_iter().flat_map(|initialized| &initialized.subtasks);
        let partitions = subtasks
            .filter_map(ExecutionVertex::finish)
            .flat_map(|finish| finish.partitions.iter().filter(|p| p.partition.data_set == data_set));
        let mut sums = vec![0_u64; count as usize];
        for partition in partitions {
            for (sum, &bytes) in sums.iter_mut().zip(&partition.subpartition_bytes) {
                *sum = sum.saturating_add(bytes);
            }
        }
        sums
    }

    /// Number of tasks that are (finished, running, known).
    pub fn progress(&self) -> (u32, u32, u32) {
        self.subtasks().fold((0, 0, 0), |(finished, running, known), (_, subtask)| match subtask.state {
            SubtaskState::Created => (finished, running, known + 1),
            SubtaskState::Deployed { .. } => (finished, running + 1, known + 1),
            SubtaskState::Finished(_) => (finished + 1, running, known + 1),
        })
    }

    /// Whether an edge ties its consumer's parallelism to its producer's.
    pub fn forward_producer(&self, vertex: JobVertexId) -> Option<JobVertexId> {
        let inputs = self.graph.vertex(vertex).inputs.iter().map(|&input| self.graph.edge(input));
        inputs.filter(|edge| edge.partitioner == Partitioner::Forward).map(|edge| edge.producer).next()
    }
}
