//! How much work large graphs are: counted, not timed.

use super::*;

const SUBTASKS: u32 = 5000;
const TASK_MANAGERS: u32 = 200;

/// A cluster whose tasks finish in the order in which they were deployed.
struct Large {
    execution: ExecutionGraph,
    tracker: PartitionTracker,
    slots: SlotPool,
    running: std::collections::VecDeque<(ExecutionAttemptId, ProcessId)>,
    deployed: Vec<ExecutionVertexId>,
    consumed: u32,
}

impl Large {
    fn new(partitioner: Partitioner) -> Self {
        let mut slots = SlotPool::default();
        for n in 1..=TASK_MANAGERS {
            slots.add(ProcessId::TaskManager(n), 2);
        }
        let mut execution = ExecutionGraph::new(graph(2, &[(0, 1, partitioner)]));
        execution.initialize(JobVertexId(0), vec![vec![]; SUBTASKS as usize]);
        Self {
            execution,
            tracker: PartitionTracker::default(),
            slots,
            running: [].into(),
            deployed: vec![],
            consumed: 0,
        }
    }

    fn deploy(&mut self) {
        while let Some(id) = self.execution.next_ready(&mut self.tracker) {
            let Some(location) = self.slots.take() else { break };
            let attempt = self.execution.deploy(id, EPOCH, location);
            self.running.push_back((attempt, location));
            self.deployed.push(id);
        }
    }

    fn run(&mut self) {
        self.deploy();
        while let Some((attempt, location)) = self.running.pop_front() {
            let finish = finish(&self.execution.graph, attempt, &[]);
            for partition in &finish.partitions {
                self.tracker.track(partition.partition, location);
            }
            self.slots.give_back(location);
            self.execution.set_finished(finish);
            self.consumed += self.execution.consumed_by(attempt.subtask).count() as u32;
            self.deploy();
        }
    }
}

/// Every partition is looked at when it is tracked and when its producer finishes, every subtask when
/// it becomes a candidate, before each slot that is sought for it, and when a group is complete.
fn assert_linear(large: &Large, subtasks: u32) {
    let looks = large.execution.readiness.looks;
    assert!(looks <= 6 * u64::from(subtasks), "{looks} looks for {subtasks} subtasks");
}

#[test]
fn a_finish_costs_the_same_however_many_subtasks_there_are() {
    for partitioner in [Partitioner::Rescale, Partitioner::Hash] {
        let mut large = Large::new(partitioner);
        large.run();
        assert!(large.execution.is_vertex_finished(JobVertexId(0)));
        initialize(&mut large.execution, JobVertexId(1), SUBTASKS);
        large.run();
        assert!(large.execution.is_job_finished());
        assert_eq!(large.consumed, SUBTASKS);
        assert!(large.deployed.is_sorted());
        assert_linear(&large, 2 * SUBTASKS);
    }
}

#[test]
fn a_lost_location_costs_what_was_there() {
    let mut large = Large::new(Partitioner::Rescale);
    large.run();
    initialize(&mut large.execution, JobVertexId(1), SUBTASKS);
    let before = large.execution.readiness.looks;
    let lost: Vec<ExecutionVertexId> = large
        .execution
        .subtasks()
        .filter_map(|(_, subtask)| subtask.finish())
        .filter(|finish| {
            let partition =
                ResultPartitionId { data_set: IntermediateDataSetId(0), producer: finish.attempt };
            large.tracker.get(partition).map(|tracked| tracked.location) == Some(ProcessId::TaskManager(7))
        })
        .map(|finish| finish.attempt.subtask)
        .collect();
    assert!(lost.len() >= (SUBTASKS / TASK_MANAGERS) as usize);
    large.tracker.untrack_location(ProcessId::TaskManager(7));
    for &id in &lost {
        large.execution.reset(id);
    }
    assert_eq!(large.execution.next_ready(&mut large.tracker), Some(lost[0]));
    let looks = large.execution.readiness.looks - before;
    assert!(looks <= 4 * lost.len() as u64, "{looks} looks for {} partitions", lost.len());
    large.run();
    assert!(large.execution.is_job_finished());
}
