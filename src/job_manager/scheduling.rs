//! The running job: vertices are initialized when their inputs are finished, subtasks deployed when
//! there is a slot, finishes accepted and recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::actor::{Outbox, Time};
use crate::coordinator::{CoordinatorSnapshot, SnapshotKind};
use crate::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use crate::job_event::{Finish, JobEvent};
use crate::message::{
    AddSplit, InputGateDescriptor, NoMoreSplits, PartitionWithMetrics, RequestSplit,
    ResultPartitionDescriptor, SubmitTask, TaskDeploymentDescriptor, TaskFailure, TaskState,
    UpdateTaskExecutionState,
};
use crate::note::Note;
use crate::planted::PlantedBug;
use crate::scheduler::{
    Bounds, Input, InputRanges, ProducedInput, SubtaskState, UnreadableInput, decide, input_ranges,
    subpartition_count,
};

use super::{JobMaster, Phase};

impl JobMaster {
    pub(super) fn run(&mut self, now: Time, out: &mut Outbox) {
        self.enter(Phase::Running, out);
        // A TaskManager may have been lost since the recovery window closed.
        self.fail(now, &[], "partitions were lost", out);
        self.schedule(out);
    }

    /// Does whatever can be done now.
    pub(super) fn schedule(&mut self, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Running) || self.restart_at.is_some() {
            return;
        }
        let no_scan = self.is_planted(PlantedBug::SkipInitializeScan) && self.has_only_recovered();
        for vertex in 0..self.execution.vertices.len() as u32 {
            let vertex = JobVertexId(vertex);
            if !no_scan && self.execution.is_initializable(vertex) {
                self.initialize(vertex, out);
            }
            if !matches!(self.phase, Phase::Running) {
                return; // The job cannot go on.
            }
        }
        self.deploy(out);
        let no_check = self.is_planted(PlantedBug::SkipCompletionCheck) && self.has_only_recovered();
        if !no_check && self.execution.is_job_finished() {
            self.decide_commit(out);
        }
    }

    /// [`PlantedBug::SkipInitializeScan`], [`PlantedBug::SkipCompletionCheck`]: whether some finishes count,
    /// and none of them under this leader.
    fn has_only_recovered(&self) -> bool {
        let finishes = self.execution.subtasks().filter_map(|(_, subtask)| subtask.finish());
        let mut is_own = finishes.map(|finish| finish.attempt.epoch == self.token).peekable();
        is_own.peek().is_some() && !is_own.any(|is_own| is_own)
    }

    fn initialize(&mut self, vertex: JobVertexId, out: &mut Outbox) {
        self.create_coordinator(vertex);
        let inputs: Vec<Input> =
            self.execution.graph.vertex(vertex).inputs.iter().map(|&input| self.input(input)).collect();
        let ranges = match self.parallelism(vertex) {
            Some(parallelism) => input_ranges(&inputs, parallelism),
            None => self.decide(vertex, &inputs),
        };
        let inputs = match ranges {
            Ok(ranges) => ranges,
            Err(error) => {
                let name = &self.execution.graph.vertex(vertex).name;
                return self.fail_job(&format!("{vertex} ({name}) cannot be scheduled: {error}"), out);
            }
        };
        let parallelism = inputs.len() as u32;
        self.execution.initialize(vertex, inputs.clone());
        if let Some(coordinator) = self.coordinators.get_mut(&vertex) {
            coordinator.set_parallelism(parallelism);
        }
        out.note(Note::VertexInitialized { token: self.token, vertex, parallelism, inputs: inputs.clone() });
        self.record_event(JobEvent::ExecutionJobVertexInitialized { vertex, parallelism, inputs }, out);
    }

    fn input(&self, data_set: IntermediateDataSetId) -> Input {
        let graph = &self.execution.graph;
        let edge = graph.edge(data_set);
        let partitions = self.execution.parallelism(edge.producer).unwrap_or(1);
        let subpartitions = subpartition_count(graph, data_set, partitions, &self.boot.config);
        Input { partitioner: edge.partitioner, partitions, subpartitions }
    }

    /// The parallelism of a vertex for which what its producers wrote does not count: it was set, or
    /// is that of the vertex that forwards to it, or that of a source.
    fn parallelism(&self, vertex: JobVertexId) -> Option<u32> {
        let config = &self.boot.config;
        let known = self.execution.graph.vertex(vertex);
        if let Some(parallelism) = known.parallelism {
            return Some(parallelism);
        }
        if let Some(producer) = self.execution.forward_producer(vertex) {
            return self.execution.parallelism(producer);
        }
        let coordinator = self.coordinators.get(&vertex)?;
        let bounds = Bounds::of(known, config);
        let limit = match config.default_source_parallelism {
            0 => bounds.max,
            limit => limit.min(bounds.max),
        };
        Some(coordinator.split_count().clamp(1, limit))
    }

    fn decide(&self, vertex: JobVertexId, inputs: &[Input]) -> Result<Vec<InputRanges>, UnreadableInput> {
        let (config, known) = (&self.boot.config, self.execution.graph.vertex(vertex));
        let produced = known.inputs.iter().zip(inputs).map(|(&data_set, &input)| ProducedInput {
            input,
            bytes: self.execution.subpartition_bytes(data_set, input.subpartitions),
        });
        let produced: Vec<ProducedInput> = produced.collect();
        decide(&produced, config.avg_data_volume_per_task.0, Bounds::of(known, config))
    }

    fn deploy(&mut self, out: &mut Outbox) {
        let unchecked = self.is_planted(PlantedBug::FinishWithoutPartitions);
        let mut created = VecDeque::new();
        if unchecked {
            let subtasks = self.execution.subtasks();
            let waiting = subtasks.filter(|(_, subtask)| subtask.state == SubtaskState::Created);
            created.extend(waiting.map(|(id, _)| id));
        }
        loop {
            let ready = self.execution.next_ready(&mut self.tracker);
            let Some(id) = (if unchecked { created.pop_front() } else { ready }) else { break };
            let has_results = !self.execution.graph.vertex(id.vertex).outputs.is_empty();
            if has_results && !self.shuffle_master.has_place() {
                break; // until a shuffle service registers
            }
            let Some(location) = self.slots.take() else { break };
            let attempt = self.execution.deploy(id, self.token, location);
            let results = if has_results { self.shuffle_master.place(attempt, location) } else { location };
            let task = Box::new(self.descriptor(attempt, results));
            out.note(Note::Deployed { attempt, location });
            if let Some(session) = self.workers.session(location) {
                out.send(Address::worker(location), SubmitTask { token: self.token, session, task });
            }
        }
    }

    fn descriptor(&mut self, attempt: ExecutionAttemptId, results: ProcessId) -> TaskDeploymentDescriptor {
        let id = attempt.subtask;
        let graph = Arc::clone(&self.execution.graph);
        let vertex = graph.vertex(id.vertex);
        let ranges = self
            .execution
            .initialized(id.vertex)
            .map_or_else(Vec::new, |initialized| initialized.inputs[id.subtask as usize].clone());
        let gates = vertex.inputs.iter().zip(ranges).enumerate();
        let inputs = gates.map(|(gate, (&data_set, (_, subpartitions)))| InputGateDescriptor {
            data_set,
            partitions: self.execution.shuffle_descriptors(id, gate, &self.tracker),
            subpartitions,
        });
        let inputs = inputs.collect();
        let parallelism = self.execution.parallelism(id.vertex).unwrap_or(1);
        let outputs = vertex.outputs.iter().map(|&data_set| ResultPartitionDescriptor {
            partition: ResultPartitionId { data_set, producer: attempt },
            subpartitions: subpartition_count(&graph, data_set, parallelism, &self.boot.config),
            location: results,
        });
        TaskDeploymentDescriptor {
            token: self.token,
            job_manager: self.boot.process,
            job: Arc::clone(&self.record),
            attempt,
            parallelism,
            inputs,
            outputs: outputs.collect(),
        }
    }

    pub(super) fn split_requested(
        &mut self,
        now: Time,
        from: Address,
        request: &RequestSplit,
        out: &mut Outbox,
    ) {
        let RequestSplit { attempt, received } = *request;
        if self.is_ending() {
            return; // The task is told to stop.
        }
        if self.execution.deployed_at(attempt) != Some(from.process) {
            return;
        }
        let Some(coordinator) = self.coordinators.get_mut(&attempt.subtask.vertex) else { return };
        match coordinator.split_after(attempt.subtask.subtask, received) {
            Ok(Some(split)) => {
                out.note(Note::SplitAssigned { attempt, split: split.id });
                out.send(from, AddSplit { attempt, split });
            }
            Ok(None) if self.is_planted(PlantedBug::TellNoMoreSplitsOnce) && self.restarts(attempt) => {}
            Ok(None) => out.send(from, NoMoreSplits { attempt }),
            // Who read what is not known any more, so nothing that was read can stay.
            Err(reason) => self.fail_globally(now, &format!("the source of {attempt}: {reason}"), out),
        }
    }

    /// [`PlantedBug::TellNoMoreSplitsOnce`]: whether an earlier attempt may have run, under this leader or another.
    fn restarts(&self, attempt: ExecutionAttemptId) -> bool {
        let mut finishes = self.execution.subtasks().filter_map(|(_, subtask)| subtask.finish());
        attempt.number > 1 || finishes.any(|finish| finish.attempt.epoch != self.token)
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
        if self.is_ending() {
            return self.attempts_ended(&[attempt], out);
        }
        match state {
            TaskState::Finished { partitions, .. } if !self.are_results(attempt, &partitions) => {
                let message = format!("{attempt} finished with other results than its vertex has");
                self.task_failed(now, attempt, &TaskFailure { message, missing: None }, out);
            }
            TaskState::Finished { partitions, committables, metrics, accumulators } => {
                let location = from.process;
                let finish = Finish { attempt, location, partitions, committables, metrics, accumulators };
                self.accept_finish(now, finish, out);
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

    fn accept_finish(&mut self, now: Time, finish: Finish, out: &mut Outbox) {
        let (attempt, location) = (finish.attempt, finish.location);
        let id = attempt.subtask;
        self.slots.give_back(location);
        let results = self.shuffle_master.forget(attempt).unwrap_or(location);
        for partition in &finish.partitions {
            self.tracker.track(partition.partition, results);
        }
        self.execution.set_finished(finish.clone());
        let splits = self.coordinators.get(&id.vertex).map_or(&[][..], |c| c.assigned(id.subtask)).to_vec();
        let inputs = self.partitions_read_by(id);
        let results: Vec<_> = finish.partitions.iter().map(|partition| partition.partition).collect();
        out.note(Note::FinishAccepted { attempt, splits, inputs });
        let coordinators = self.snapshots_with(now, id.vertex);
        let event = JobEvent::ExecutionVertexFinished { finish, coordinators };
        let sequence = if self.execution.is_vertex_finished(id.vertex) {
            self.record_last_finish(event, out)
        } else {
            self.record_event(event, out)
        };
        let mut consumed = self.consumed_by(id);
        // A determinate subtask that ran again may have results that all have read before.
        consumed.extend(results.into_iter().filter(|p| !self.execution.is_needed(p.data_set, p.index())));
        if self.is_planted(PlantedBug::ReleaseTooEarly) {
            self.release_unneeded(consumed, out);
        } else {
            self.release_when_durable(sequence, consumed, out);
        }
        self.schedule(out);
    }

    /// The coordinators' snapshots that are recorded with a finish of the vertex.
    fn snapshots_with(&mut self, now: Time, vertex: JobVertexId) -> Vec<(JobVertexId, CoordinatorSnapshot)> {
        let source = self.execution.graph.vertex(vertex).source.as_ref();
        if source.is_some_and(|source| source.snapshot_kind() == SnapshotKind::Supported) {
            self.snapshots.finished(vertex);
        }
        let last_of_vertex = self.execution.is_vertex_finished(vertex);
        let due = self.snapshots.due(now, self.boot.config.snapshot_min_pause, last_of_vertex);
        let snapshot = |vertex| Some((vertex, self.coordinators.get(&vertex)?.checkpoint_coordinator()?));
        due.into_iter().filter_map(snapshot).collect()
    }

    /// The partitions that a subtask reads, by gate.
    fn partitions_read_by(&self, id: ExecutionVertexId) -> Vec<Vec<ResultPartitionId>> {
        let mut producers = self.execution.producers(id).peekable();
        let inputs = self.execution.graph.vertex(id.vertex).inputs.iter();
        let gate = |input: &IntermediateDataSetId| {
            let of_gate = std::iter::from_fn(|| producers.next_if(|(data_set, _)| data_set == input));
            of_gate.filter_map(|(data_set, producer)| self.result_of(data_set, producer)).collect()
        };
        inputs.map(gate).collect()
    }

    /// The partitions of which this subtask was the last consumer to finish.
    fn consumed_by(&self, id: ExecutionVertexId) -> Vec<ResultPartitionId> {
        let consumed = self.execution.consumed_by(id);
        consumed.filter_map(|(data_set, producer)| self.result_of(data_set, producer)).collect()
    }

    fn result_of(
        &self,
        data_set: IntermediateDataSetId,
        producer: ExecutionVertexId,
    ) -> Option<ResultPartitionId> {
        let producer = self.execution.finish(producer)?.attempt;
        Some(ResultPartitionId { data_set, producer })
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
