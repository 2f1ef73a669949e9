//! What the execution graph counts as things change is what a look at everything says.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// Any subtask, whatever it does.
    Deploy(u32),
    /// Its partitions are at a location, or the report of them is still to come.
    Finish(u32, Option<u32>),
    Reset(u32),
    Track(u32, u32),
    Untrack(u32),
    UntrackLocation(u32),
    /// A vertex, for the first time or again, with so many subtasks.
    Initialize(u32, u32),
    NextReady,
}

fn step() -> impl Strategy<Value = Step> {
    let any = || any::<u32>();
    prop_oneof![
        3 => any().prop_map(Step::Deploy),
        12 => (any(), proptest::option::of(0..3_u32)).prop_map(|(id, location)| Step::Finish(id, location)),
        4 => any().prop_map(Step::Reset),
        3 => (any(), 0..3_u32).prop_map(|(id, location)| Step::Track(id, location)),
        2 => any().prop_map(Step::Untrack),
        1 => (0..3_u32).prop_map(Step::UntrackLocation),
        1 => (0..5_u32, 1..6_u32).prop_map(|(vertex, parallelism)| Step::Initialize(vertex, parallelism)),
        6 => Just(Step::NextReady),
    ]
}

struct Fixture {
    execution: ExecutionGraph,
    tracker: PartitionTracker,
    number: u32,
}

impl Fixture {
    /// Two sources and three vertices that read them and one another, by every exchange.
    fn new() -> Self {
        use Partitioner::{Broadcast, Forward, Hash, Rebalance, Rescale};
        let edges = [
            (0, 2, Rescale),
            (1, 2, Hash),
            (0, 3, Forward),
            (2, 3, Broadcast),
            (3, 4, Rescale),
            (1, 4, Rebalance),
            (2, 4, Rescale),
        ];
        let mut execution = ExecutionGraph::new(graph(5, &edges));
        execution.initialize(JobVertexId(0), vec![vec![]; 3]);
        execution.initialize(JobVertexId(1), vec![vec![]; 5]);
        Self { execution, tracker: PartitionTracker::default(), number: 0 }
    }

    fn pick(&self, draw: u32) -> ExecutionVertexId {
        let ids: Vec<ExecutionVertexId> = self.execution.subtasks().map(|(id, _)| id).collect();
        ids[draw as usize % ids.len()]
    }

    /// Some partition of a finished subtask.
    fn result(&self, draw: u32) -> Option<ResultPartitionId> {
        let finish = self.execution.finish(self.pick(draw))?;
        let partitions = &finish.partitions;
        partitions.get(draw as usize / 7 % partitions.len().max(1)).map(|partition| partition.partition)
    }

    fn take(&mut self, step: &Step) {
        let location = |n: u32| ProcessId::TaskManager(n + 1);
        match *step {
            Step::Deploy(draw) => {
                self.execution.deploy(self.pick(draw), EPOCH, location(0));
            }
            Step::Finish(draw, tracked) => {
                self.number += 1;
                let attempt =
                    ExecutionAttemptId { subtask: self.pick(draw), epoch: EPOCH, number: self.number };
                let finish = finish(&self.execution.graph, attempt, &[1]);
                for partition in finish.partitions.iter().filter(|_| tracked.is_some()) {
                    self.tracker.track(partition.partition, location(tracked.unwrap_or(0)));
                }
                self.execution.set_finished(finish);
            }
            Step::Reset(draw) => {
                self.execution.reset(self.pick(draw));
            }
            Step::Track(draw, n) => {
                if let Some(partition) = self.result(draw) {
                    self.tracker.track(partition, location(n));
                }
            }
            Step::Untrack(draw) => {
                if let Some(partition) = self.result(draw) {
                    self.tracker.untrack(partition);
                }
            }
            Step::UntrackLocation(n) => self.tracker.untrack_location(location(n)),
            Step::Initialize(vertex, parallelism) => self.initialize(JobVertexId(vertex), parallelism),
            Step::NextReady => {
                let expected = self.all_ready().next();
                assert_eq!(self.execution.next_ready(&mut self.tracker), expected);
            }
        }
    }

    fn initialize(&mut self, vertex: JobVertexId, parallelism: u32) {
        let graph = Arc::clone(&self.execution.graph);
        let inputs = &graph.vertex(vertex).inputs;
        if inputs.is_empty() {
            self.execution.initialize(vertex, vec![vec![]; parallelism as usize]);
        } else if inputs.iter().all(|&input| self.execution.initialized(graph.edge(input).producer).is_some())
        {
            let forwarded = self.execution.forward_producer(vertex);
            let forwarded = forwarded.and_then(|producer| self.execution.parallelism(producer));
            initialize(&mut self.execution, vertex, forwarded.unwrap_or(parallelism));
        }
    }

    // ---- What a look at everything says ----

    fn readers(&self, data_set: IntermediateDataSetId, index: u32) -> Option<Vec<ExecutionVertexId>> {
        let edge = self.execution.graph.edge(data_set);
        let inputs = &self.execution.graph.vertex(edge.consumer).inputs;
        let gate = inputs.iter().position(|&input| input == data_set).unwrap();
        let initialized = self.execution.initialized(edge.consumer)?;
        let readers = (0..).zip(&initialized.inputs);
        let readers = readers.filter(|(_, ranges)| ranges[gate].0.indices().contains(&index));
        Some(readers.map(|(subtask, _)| ExecutionVertexId::new(edge.consumer, subtask)).collect())
    }

    fn is_needed(&self, data_set: IntermediateDataSetId, index: u32) -> bool {
        let readers = self.readers(data_set, index);
        readers.is_none_or(|readers| readers.iter().any(|&reader| self.execution.finish(reader).is_none()))
    }

    fn available(
        &self,
        data_set: IntermediateDataSetId,
        producer: ExecutionVertexId,
    ) -> Option<TrackedPartition> {
        let finish = self.execution.finish(producer)?;
        self.tracker.get(ResultPartitionId { data_set, producer: finish.attempt })
    }

    fn all_ready(&self) -> impl Iterator<Item = ExecutionVertexId> {
        let created = self.execution.subtasks().filter(|(_, subtask)| subtask.state == SubtaskState::Created);
        created.map(|(id, _)| id).filter(|&id| {
            let mut producers = self.execution.producers(id);
            producers.all(|(data_set, producer)| self.available(data_set, producer).is_some())
        })
    }

    fn check(&self) {
        let execution = &self.execution;
        for vertex in &execution.graph.vertices {
            let subtasks = execution.subtasks().filter(|(id, _)| id.vertex == vertex.id);
            let subtasks: Vec<_> = subtasks.collect();
            let finished = execution.initialized(vertex.id).is_some()
                && subtasks.iter().all(|(_, subtask)| subtask.finish().is_some());
            assert_eq!(execution.is_vertex_finished(vertex.id), finished);
            for (id, _) in subtasks {
                let unneeded = execution
                    .producers(id)
                    .filter(|&(data_set, producer)| !self.is_needed(data_set, producer.subtask));
                assert_eq!(execution.consumed_by(id).collect::<Vec<_>>(), unneeded.collect::<Vec<_>>());
                for &data_set in &vertex.outputs {
                    assert_eq!(execution.consumers(data_set, id.subtask), self.readers(data_set, id.subtask));
                    let is_needed = self.is_needed(data_set, id.subtask);
                    assert_eq!(execution.is_needed(data_set, id.subtask), is_needed);
                }
            }
        }
    }

    /// Descriptors are as of the last change, also those that were asked for before.
    fn check_descriptors(&mut self) {
        self.execution.next_ready(&mut self.tracker);
        let ids: Vec<ExecutionVertexId> = self.execution.subtasks().map(|(id, _)| id).collect();
        for id in ids {
            let gates = self.execution.graph.vertex(id.vertex).inputs.clone();
            for (gate, &input) in gates.iter().enumerate() {
                let producers = self.execution.producers(id).filter(|(data_set, _)| *data_set == input);
                let expected = producers.filter_map(|(data_set, producer)| {
                    let location = self.available(data_set, producer)?.location;
                    Some((self.execution.finish(producer)?.attempt, location))
                });
                let expected: Vec<_> = expected.collect();
                let found = self.execution.shuffle_descriptors(id, gate, &self.tracker);
                let found = found.iter().map(|found| (found.partition.producer, found.location));
                assert_eq!(found.collect::<Vec<_>>(), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn counts_agree_with_a_look_at_everything(steps in vec(step(), 0..80)) {
        let mut fixture = Fixture::new();
        for (vertex, parallelism) in [(2, 4), (3, 3), (4, 7)] {
            fixture.initialize(JobVertexId(vertex), parallelism);
        }
        for (n, step) in steps.iter().enumerate() {
            fixture.take(step);
            fixture.check();
            if n % 8 == 0 {
                fixture.check_descriptors();
            }
        }
        let expected: Vec<ExecutionVertexId> = fixture.all_ready().collect();
        let mut ready = Vec::new();
        while let Some(id) = fixture.execution.next_ready(&mut fixture.tracker) {
            fixture.execution.deploy(id, EPOCH, ProcessId::TaskManager(1));
            ready.push(id);
        }
        prop_assert_eq!(ready, expected);
    }
}
