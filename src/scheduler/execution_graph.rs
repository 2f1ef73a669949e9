//! The execution graph: the job graph with decided parallelisms and the state of every subtask. What
//! many subtasks have in common is counted when one of them changes, so that no question that is
//! asked at every finish looks at all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::graph::{JobGraph, JobVertex, Partitioner};
use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use crate::job_event::Finish;

use super::InputRanges;
use super::partition_group::InputGate;
use super::readiness::Readiness;

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
    /// Subtasks that are finished.
    finished: u32,
    /// By input edge: who reads what.
    pub(super) gates: Vec<InputGate>,
}

#[derive(Debug)]
pub struct ExecutionGraph {
    pub graph: Arc<JobGraph>,
    pub vertices: Vec<ExecutionJobVertex>,
    /// Attempts that run, with where.
    deployed: BTreeSet<(ProcessId, ExecutionAttemptId)>,
    pub(super) readiness: Readiness,
}

impl ExecutionGraph {
    pub fn new(graph: Arc<JobGraph>) -> Self {
        let vertices = graph
            .vertices
            .iter()
            .map(|vertex| ExecutionJobVertex { id: vertex.id, initialized: None })
            .collect();
        let readiness = Readiness { available: vec![Vec::new(); graph.edges.len()], ..Readiness::default() };
        Self { graph, vertices, deployed: BTreeSet::new(), readiness }
    }

    /// The vertex has subtasks from now on, one for each entry of `inputs`. A vertex that is
    /// initialized again begins anew.
    pub fn initialize(&mut self, vertex: JobVertexId, inputs: Vec<InputRanges>) {
        let graph = Arc::clone(&self.graph);
        let JobVertex { inputs: consumed, outputs, .. } = graph.vertex(vertex);
        let created = ExecutionVertex { state: SubtaskState::Created, attempts: 0 };
        let subtasks = vec![created; inputs.len()];
        let ids = (0..inputs.len() as u32).map(|subtask| ExecutionVertexId::new(vertex, subtask));
        self.readiness.candidates.extend(ids);
        let initialized = Initialized { inputs, subtasks, finished: 0, gates: Vec::new() };
        for &data_set in outputs {
            self.readiness.available[data_set.0 as usize] = vec![false; initialized.subtasks.len()];
        }
        self.vertices[vertex.0 as usize].initialized = Some(initialized);
        self.deployed.retain(|(_, attempt)| attempt.subtask.vertex != vertex);
        self.group_inputs(vertex, consumed);
        for &data_set in outputs {
            let consumer = graph.edge(data_set).consumer;
            self.group_inputs(consumer, &graph.vertex(consumer).inputs);
        }
    }

    /// Finds out who reads what, if the vertex is initialized.
    fn group_inputs(&mut self, vertex: JobVertexId, data_sets: &[IntermediateDataSetId]) {
        let Some(initialized) = &mut self.vertices[vertex.0 as usize].initialized else { return };
        let gates = data_sets.iter().enumerate().map(|(gate, data_set)| {
            InputGate::new(
                initialized.inputs.iter().map(|ranges| ranges.get(gate).map(|&(partitions, _)| partitions)),
                &self.readiness.available[data_set.0 as usize],
                |subtask| initialized.subtasks[subtask as usize].finish().is_some(),
            )
        });
        initialized.gates = gates.collect();
    }

    /// What is counted when a subtask changes and is not what a look at all of them gives.
    pub fn contradiction(&self) -> Option<String> {
        let mut deployed = 0;
        for (id, subtask) in self.subtasks() {
            let SubtaskState::Deployed { attempt, location } = subtask.state else { continue };
            deployed += 1;
            if !self.deployed.contains(&(location, attempt)) {
                return Some(format!("{id} is deployed as {attempt}, and does not count as deployed"));
            }
        }
        if deployed != self.deployed.len() {
            return Some(format!("{:?} count as deployed, {deployed} are", self.deployed));
        }
        self.vertices.iter().find_map(|vertex| {
            let initialized = vertex.initialized.as_ref()?;
            let is_finished = |subtask: u32| {
                initialized.subtasks.get(subtask as usize).is_some_and(|subtask| subtask.finish().is_some())
            };
            let finished =
                (0..initialized.subtasks.len() as u32).filter(|&subtask| is_finished(subtask)).count();
            if finished != initialized.finished as usize {
                let counted = initialized.finished;
                return Some(format!(
                    "{counted} subtasks of {} count as finished, {finished} are",
                    vertex.id
                ));
            }
            let mut gates = initialized.gates.iter().enumerate();
            gates.find_map(|(gate, groups)| {
                let wrong = groups.miscounted(is_finished)?;
                Some(format!("gate {gate} of {} counts its readers wrongly: {wrong:?}", vertex.id))
            })
        })
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
        self.subtask(id)?.finish()
    }

    pub fn is_finished(&self, id: ExecutionVertexId) -> bool {
        self.finish(id).is_some()
    }

    pub fn is_vertex_finished(&self, vertex: JobVertexId) -> bool {
        self.initialized(vertex)
            .is_some_and(|initialized| initialized.finished as usize == initialized.subtasks.len())
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

    /// All attempts that run, with where.
    pub fn deployed(&self) -> impl Iterator<Item = (ProcessId, ExecutionAttemptId)> {
        self.deployed.iter().copied()
    }

    /// The attempts that run in a process, in topological order.
    pub fn attempts_at(&self, process: ProcessId) -> impl Iterator<Item = ExecutionAttemptId> {
        let first = ExecutionAttemptId {
            subtask: ExecutionVertexId::new(JobVertexId(0), 0),
            epoch: FencingToken::default(),
            number: 0,
        };
        let from_there = self.deployed.range((process, first)..).copied();
        from_there.take_while(move |(location, _)| *location == process).map(|(_, attempt)| attempt)
    }

    /// Starts a new attempt of a subtask.
    pub fn deploy(
        &mut self,
        id: ExecutionVertexId,
        epoch: FencingToken,
        location: ProcessId,
    ) -> ExecutionAttemptId {
        let vertex =
            self.vertices.get_mut(id.vertex.0 as usize).and_then(|vertex| vertex.initialized.as_mut());
        let subtask = vertex.and_then(|vertex| vertex.subtasks.get_mut(id.subtask as usize));
        let subtask = subtask.expect("only subtasks of this graph are deployed");
        subtask.attempts += 1;
        let attempt = ExecutionAttemptId { subtask: id, epoch, number: subtask.attempts };
        self.set_state(id, SubtaskState::Deployed { attempt, location });
        attempt
    }

    pub fn set_finished(&mut self, finish: Finish) {
        self.set_state(finish.attempt.subtask, SubtaskState::Finished(finish));
    }

    /// The subtask will run again. Returns what it was before.
    pub fn reset(&mut self, id: ExecutionVertexId) -> Option<SubtaskState> {
        self.set_state(id, SubtaskState::Created)
    }

    /// The only way to another state; returns the one before.
    fn set_state(&mut self, id: ExecutionVertexId, state: SubtaskState) -> Option<SubtaskState> {
        let initialized = self.vertices.get_mut(id.vertex.0 as usize)?.initialized.as_mut()?;
        let subtask = initialized.subtasks.get_mut(id.subtask as usize)?;
        if state == SubtaskState::Created {
            self.readiness.candidates.insert(id);
        } else {
            self.readiness.candidates.remove(&id);
        }
        if let SubtaskState::Deployed { attempt, location } = subtask.state {
            self.deployed.remove(&(location, attempt));
        }
        if let SubtaskState::Deployed { attempt, location } = state {
            self.deployed.insert((location, attempt));
        }
        let before = std::mem::replace(&mut subtask.state, state);
        let was_finished = matches!(before, SubtaskState::Finished(_));
        let is_finished = subtask.finish().is_some();
        if was_finished || is_finished {
            self.readiness.changed.push(id);
        }
        if was_finished != is_finished {
            let count = |unfinished: &mut u32| if is_finished { *unfinished -= 1 } else { *unfinished += 1 };
            let groups = initialized.gates.iter_mut().filter_map(|gate| gate.of_subtask_mut(id.subtask));
            groups.for_each(|group| count(&mut group.unfinished));
            if is_finished {
                initialized.finished += 1;
            } else {
                initialized.finished -= 1;
            }
        }
        Some(before)
    }

    /// The subtasks that read partition `index` of a data set, rising; `None` while the consumer is
    /// not initialized.
    pub fn consumers(&self, data_set: IntermediateDataSetId, index: u32) -> Option<Vec<ExecutionVertexId>> {
        let consumer = self.graph.edge(data_set).consumer;
        let groups = self.consuming_gate(data_set)?.of_partition(index);
        let mut readers: Vec<u32> = groups.flat_map(|group| group.consumers.iter().copied()).collect();
        readers.sort_unstable();
        Some(readers.into_iter().map(|subtask| ExecutionVertexId::new(consumer, subtask)).collect())
    }

    fn consuming_gate(&self, data_set: IntermediateDataSetId) -> Option<&InputGate> {
        let consumer = self.graph.edge(data_set).consumer;
        self.initialized(consumer)?.gates.get(self.gate(data_set))
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
    pub(super) fn gate(&self, data_set: IntermediateDataSetId) -> usize {
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
        self.consuming_gate(data_set)
            .is_none_or(|gate| gate.of_partition(index).any(|group| group.unfinished > 0))
    }

    /// Of the partitions that a subtask reads, those that no consumer needs any more, in gate order.
    pub fn consumed_by(
        &self,
        id: ExecutionVertexId,
    ) -> impl Iterator<Item = (IntermediateDataSetId, ExecutionVertexId)> {
        let gates = self.initialized(id.vertex).map_or(&[][..], |initialized| initialized.gates.as_slice());
        let inputs = &self.graph.vertex(id.vertex).inputs;
        let groups = inputs.iter().zip(gates).filter_map(move |(&data_set, gate)| {
            let group = gate.of_subtask(id.subtask).filter(|group| group.unfinished == 0)?;
            Some((data_set, group))
        });
        groups.flat_map(move |(data_set, group)| {
            let producer = self.graph.edge(data_set).producer;
            let unneeded = group.partitions.indices().filter(move |&index| !self.is_needed(data_set, index));
            unneeded.map(move |index| (data_set, ExecutionVertexId::new(producer, index)))
        })
    }

    /// FLIP-383, "all partitions required to continue running": partitions of finished producers
    /// that an unfinished consumer reads or will read.
    pub fn required_partitions(&self) -> Vec<ResultPartitionId> {
        self.subtasks()
            .filter_map(|(_, subtask)| subtask.finish())
            .flat_map(|finish| {
                let outputs = &self.graph.vertex(finish.attempt.subtask.vertex).outputs;
                outputs.iter().map(|&data_set| ResultPartitionId { data_set, producer: finish.attempt })
            })
            .filter(|partition| self.is_needed(partition.data_set, partition.index()))
            .collect()
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
        let initialized = self.vertices.iter().filter_map(|vertex| vertex.initialized.as_ref());
        let (finished, known) = initialized.fold((0, 0), |(finished, known), vertex| {
            (finished + vertex.finished, known + vertex.subtasks.len() as u32)
        });
        (finished, self.deployed.len() as u32, known)
    }

    /// Whether an edge ties its consumer's parallelism to its producer's.
    pub fn forward_producer(&self, vertex: JobVertexId) -> Option<JobVertexId> {
        let inputs = self.graph.vertex(vertex).inputs.iter().map(|&input| self.graph.edge(input));
        inputs.filter(|edge| edge.partitioner == Partitioner::Forward).map(|edge| edge.producer).next()
    }
}
