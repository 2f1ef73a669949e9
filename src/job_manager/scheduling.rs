//! The running job: vertices are initialized when their inputs are finished, subtasks deployed when
//! there is a slot, finishes accepted and recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actor::{Outbox, Time};
use crate::graph::Partitioner;
use crate::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use crate::job_event::{Finish, JobEvent};
use crate::message::{
    AddSplit, IndexRange, InputGateDescriptor, NoMoreSplits, PartitionWithMetrics, RequestSplit,
    ResultPartitionDescriptor, ShuffleDescriptor, SubmitTask, TaskDeploymentDescriptor, TaskFailure,
    TaskState, UpdateTaskExecutionState,
};
use crate::note::Note;
use crate::planted::PlantedBug;
use crate::scheduler::{Bounds, Input, SubtaskState, decide_parallelism, input_ranges, subpartition_count};

use super::{JobMaster, Phase};

/// Descriptors of a range of a data set's partitions, shared by all subtasks that read it.
type Descriptors = BTreeMap<(IntermediateDataSetId, IndexRange), Arc<Vec<ShuffleDescriptor>>>;

impl JobMaster {
    pub(super) fn run(&mut self, now: Time, out: &mut Outbox) {
        self.enter(Phase::Running, out);
        // A TaskManager may have been lost since the recovery window closed.
        self.fail(now, &[], "partitions were lost", out);
        self.schedule(out);
    }

    /// Does whatever can be done now.
    pub(super) fn schedule(&mut self, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Running) || self.restart_pending {
            return;
        }
        for vertex in 0..self.execution.vertices.len() as u32 {
            let vertex = JobVertexId(vertex);
            if self.execution.is_initializable(vertex) {
                self.initialize(vertex, out);
            }
        }
        if !matches!(self.phase, Phase::Running) {
            return; // The job cannot go on.
        }
        self.deploy(out);
        if self.execution.is_job_finished() {
            self.decide_commit(out);
        }
    }

    fn initialize(&mut self, vertex: JobVertexId, out: &mut Outbox) {
        self.create_coordinator(vertex);
        let parallelism = self.parallelism(vertex);
        let graph = &self.execution.graph;
        let inputs: Vec<Input> = graph
            .vertex(vertex)
            .inputs
            .iter()
            .map(|&data_set| Input {
                partitioner: graph.edge(data_set).partitioner,
                partitions: self.execution.parallelism(graph.edge(data_set).producer).unwrap_or(1),
                subpartitions: subpartition_count(graph, data_set, &self.boot.config),
            })
            .collect();
        let Some(inputs) = input_ranges(&inputs, parallelism) else {
            let name = &graph.vertex(vertex).name;
            let reason = format!(
                "{vertex} ({name}) cannot run with parallelism {parallelism}: an input has fewer subpartitions; \
                 raise execution.batch.adaptive.auto-parallelism.max-parallelism or set the parallelism"
            );
            return self.fail_job(&reason, out);
        };
        self.execution.initialize(vertex, inputs.clone());
        out.note(Note::VertexInitialized { token: self.token, vertex, parallelism, inputs: inputs.clone() });
        self.record_event(JobEvent::ExecutionJobVertexInitialized { vertex, parallelism, inputs }, out);
    }

    fn parallelism(&self, vertex: JobVertexId) -> u32 {
        let config = &self.boot.config;
        let known = self.execution.graph.vertex(vertex);
        if let Some(parallelism) = known.parallelism {
            return parallelism;
        }
        if let Some(producer) = self.execution.forward_producer(vertex) {
            return self.execution.parallelism(producer).unwrap_or(1);
        }
        let bounds = Bounds::of(known, config);
        if let Some(coordinator) = self.coordinators.get(&vertex) {
            let limit = match config.default_source_parallelism {
                0 => bounds.max,
                limit => limit.min(bounds.max),
            };
            return coordinator.split_count().clamp(1, limit);
        }
        let bytes = known.inputs.iter().map(|&input| self.execution.data_set_bytes(input)).sum();
        decide_parallelism(bytes, config.avg_data_volume_per_task.0, bounds)
    }

    fn deploy(&mut self, out: &mut Outbox) {
        let unchecked = self.is_planted(PlantedBug::FinishWithoutPartitions);
        let ready: Vec<ExecutionVertexId> = self
            .execution
            .subtasks()
            .filter(|(_, subtask)| subtask.state == SubtaskState::Created)
            .map(|(id, _)| id)
            .filter(|&id| unchecked || self.execution.is_consumable(id, &self.tracker))
            .collect();
        let mut descriptors = Descriptors::new();
        for id in ready {
            let has_results = !self.execution.graph.vertex(id.vertex).outputs.is_empty();
            if has_results && !self.shuffle_master.has_place() {
                continue; // until a shuffle service registers
            }
            let Some(location) = self.slots.take() else { break };
            let attempt = self.execution.deploy(id, self.token, location);
            let results = if has_results { self.shuffle_master.place(attempt, location) } else { location };
            let task = Box::new(self.descriptor(attempt, results, &mut descriptors));
            out.note(Note::Deployed { attempt, location });
            out.send(Address::worker(location), SubmitTask { token: self.token, task });
        }
    }

    fn descriptor(
        &self,
        attempt: ExecutionAttemptId,
        results: ProcessId,
        shared: &mut Descriptors,
    ) -> TaskDeploymentDescriptor {
        let id = attempt.subtask;
        let graph = &self.execution.graph;
        let vertex = graph.vertex(id.vertex);
        let ranges = self
            .execution
            .initialized(id.vertex)
            .map_or(&[][..], |initialized| initialized.inputs[id.subtask as usize].as_slice());
        let inputs = vertex
            .inputs
            .iter()
            .zip(ranges)
            .map(|(&data_set, &(partitions, subpartitions))| InputGateDescriptor {
                data_set,
                partitions: Arc::clone(
                    shared
                        .entry((data_set, partitions))
                        .or_insert_with(|| Arc::new(self.shuffle_descriptors(data_set, partitions))),
                ),
                subpartitions,
            })
            .collect();
        let outputs = vertex.outputs.iter().map(|&data_set| ResultPartitionDescriptor {
            partition: ResultPartitionId { data_set, producer: attempt },
            subpartitions: subpartition_count(graph, data_set, &self.boot.config),
            location: results,
        });
        TaskDeploymentDescriptor {
            token: self.token,
            job: Arc::clone(&self.record),
            attempt,
            parallelism: self.execution.parallelism(id.vertex).unwrap_or(1),
            inputs,
            outputs: outputs.collect(),
        }
    }

    fn shuffle_descriptors(
        &self,
        data_set: IntermediateDataSetId,
        partitions: IndexRange,
    ) -> Vec<ShuffleDescriptor> {
        let producer = self.execution.graph.edge(data_set).producer;
        partitions
            .indices()
            .filter_map(|index| {
                let finish = self.execution.finish(ExecutionVertexId::new(producer, index))?;
                let partition = ResultPartitionId { data_set, producer: finish.attempt };
                let location = self.tracker.get(partition)?.location;
                Some(ShuffleDescriptor { partition, location })
            })
            .collect()
    }

    pub(super) fn split_requested(&mut self, from: Address, request: &RequestSplit, out: &mut Outbox) {
        let RequestSplit { attempt, received } = *request;
        if self.execution.deployed_at(attempt) != Some(from.process) {
            return;
        }
        let Some(coordinator) = self.coordinators.get_mut(&attempt.subtask.vertex) else { return };
        match coordinator.split_after(attempt.subtask.subtask, received) {
            Some(split) => {
                out.note(Note::SplitAssigned { attempt, split: split.id });
                out.send(from, AddSplit { attempt, split });
            }
            None => out.send(from, NoMoreSplits { attempt }),
        }
    }

    pub(super) fn task_state(
        &mut self,
        now: Time,
        from: Address,
        message: UpdateTaskExecutionState,
        out: &mut Outbox,
    ) {
        let UpdateTaskExecutionState { token, session, attempt, state } = message;
        if token != self.token {
            return;
        }
        self.heard_from(now, from.process, session);
        if self.execution.deployed_at(attempt) != Some(from.process) {
            return self.release_results_of_others(from, state, out);
        }
        match state {
            TaskState::Finished { partitions, .. } if !self.are_results(attempt, &partitions) => {
                let message = format!("{attempt} finished with other results than its vertex has");
                self.task_failed(now, attempt, &TaskFailure { message, missing: None }, out);
            }
            TaskState::Finished { partitions, committables, metrics, accumulators } => {
                let location = from.process;
                let finish = Finish { attempt, location, partitions, committables, metrics, accumulators };
                self.accept_finish(finish, out);
            }
            TaskState::Failed(failure) => self.task_failed(now, attempt, &failure, out),
            TaskState::Canceled => {
                let message = "it was cancelled by its TaskManager".to_owned();
                self.task_failed(now, attempt, &TaskFailure { message, missing: None }, out);
            }
        }
    }

    /// Whether these are one partition for each output of the attempt's vertex.
    fn are_results(&self, attempt: ExecutionAttemptId, partitions: &[PartitionWithMetrics]) -> bool {
        let outputs = &self.execution.graph.vertex(attempt.subtask.vertex).outputs;
        let expected = outputs.iter().map(|&data_set| ResultPartitionId { data_set, producer: attempt });
        partitions.iter().map(|partition| partition.partition).eq(expected)
    }

    /// An attempt that was cancelled may have finished before it heard of it: nobody reads its result.
    fn release_results_of_others(&self, from: Address, state: TaskState, out: &mut Outbox) {
        let TaskState::Finished { partitions, .. } = state else { return };
        let partitions = partitions.into_iter().map(|partition| partition.partition);
        let unread: Vec<_> = partitions.filter(|&partition| self.tracker.get(partition).is_none()).collect();
        if !unread.is_empty() {
            let places = self.shuffle_master.places(from.process).into_iter();
            self.send_releases(places.map(|place| (place, unread.clone())).collect(), out);
        }
    }

    fn accept_finish(&mut self, finish: Finish, out: &mut Outbox) {
        let (attempt, location) = (finish.attempt, finish.location);
        let id = attempt.subtask;
        self.slots.give_back(location);
        let results = self.shuffle_master.forget(attempt).unwrap_or(location);
        for partition in &finish.partitions {
            self.tracker.track(partition.partition, results);
        }
        let coordinator = self.coordinators.get(&id.vertex);
        let snapshot = coordinator.map(|coordinator| (id.vertex, coordinator.checkpoint()));
        let event = JobEvent::ExecutionVertexFinished {
            finish: finish.clone(),
            coordinators: snapshot.into_iter().collect(),
        };
        let splits =
            coordinator.map_or_else(Vec::new, |coordinator| coordinator.assigned(id.subtask).to_vec());
        let inputs = self.partitions_read_by(id);
        self.execution.set_finished(finish);
        out.note(Note::FinishAccepted { attempt, splits, inputs });
        let sequence = self.record_event(event, out);
        let consumed = self.consumed_by(id);
        if self.is_planted(PlantedBug::ReleaseTooEarly) {
            self.release_unneeded(consumed, out);
        } else {
            self.release_when_durable(sequence, consumed, out);
        }
        self.schedule(out);
    }

    /// The partitions that a subtask reads, by gate.
    fn partitions_read_by(&self, id: ExecutionVertexId) -> Vec<Vec<ResultPartitionId>> {
        let mut gates: Vec<Vec<ResultPartitionId>> = Vec::new();
        let inputs = &self.execution.graph.vertex(id.vertex).inputs;
        for &input in inputs {
            let of_gate = self.execution.producers(id).filter(|(data_set, _)| *data_set == input);
            let partitions = of_gate.filter_map(|(data_set, producer)| {
                let finish = self.execution.finish(producer)?;
                Some(ResultPartitionId { data_set, producer: finish.attempt })
            });
            gates.push(partitions.collect());
        }
        gates
    }

    /// The partitions of which this subtask was the last consumer to finish.
    fn consumed_by(&self, id: ExecutionVertexId) -> Vec<ResultPartitionId> {
        let all_finished = self.execution.is_vertex_finished(id.vertex);
        let shared = |data_set| self.execution.graph.edge(data_set).partitioner != Partitioner::Forward;
        self.execution
            .producers(id)
            .filter(|&(data_set, _)| all_finished || !shared(data_set))
            .filter(|&(data_set, producer)| !self.execution.is_needed(data_set, producer.subtask))
            .filter_map(|(data_set, producer)| {
                let finish = self.execution.finish(producer)?;
                Some(ResultPartitionId { data_set, producer: finish.attempt })
            })
            .collect()
    }

    fn task_failed(
        &mut self,
        now: Time,
        attempt: ExecutionAttemptId,
        failure: &TaskFailure,
        out: &mut Outbox,
    ) {
        if let Some(partition) = failure.missing
            && let Some(location) = self.tracker.untrack(partition)
        {
            // It may be there after all, and only not have been readable in time.
            self.send_releases([(location, vec![partition])].into(), out);
        }
        self.fail(now, &[attempt], &failure.message, out);
    }
}
