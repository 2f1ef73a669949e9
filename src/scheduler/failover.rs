//! What must run again when subtasks fail or partitions are lost (Flink's
//! RestartPipelinedRegionFailoverStrategy; every exchange is blocking, so a region is a subtask).
//! Knows which results stand when their producer runs again, and never which restarts are allowed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Determinacy;
use crate::ids::{ExecutionVertexId, IntermediateDataSetId, JobVertexId, ResultPartitionId};
use crate::message::IndexRange;

use super::{ExecutionGraph, PartitionTracker, SubtaskState};

impl ExecutionGraph {
    /// The roots, the producers of partitions that a restarted subtask needs and that are not
    /// tracked, and consumers: all of them, finished ones included, if the restarted subtask may come
    /// to another result (hazard B28), else those that are at work and may be reading the old one. Of a
    /// vertex in `unrecovered`, whose coordinator knows nothing of its subtasks' splits, all subtasks run
    /// again or none. Subtasks that have not been started are left out. Time grows with the subtasks
    /// and distinct input ranges, not with the pairs of producer and consumer.
    pub fn restart_set(
        &self,
        roots: &[ExecutionVertexId],
        tracker: &PartitionTracker,
        unrecovered: &BTreeSet<JobVertexId>,
    ) -> BTreeSet<ExecutionVertexId> {
        let mut restart = Restart {
            execution: self,
            tracker,
            unrecovered: unrecovered.clone(),
            members: BTreeMap::new(),
            work: Vec::new(),
            searched: BTreeSet::new(),
            readers: BTreeMap::new(),
        };
        for &root in roots {
            restart.add(root);
        }
        while let Some(id) = restart.work.pop() {
            restart.follow(id);
        }
        let members = restart.members.into_keys();
        members.filter(|&id| self.subtask(id).is_some_and(|s| s.state != SubtaskState::Created)).collect()
    }

    fn is_deployed(&self, id: ExecutionVertexId) -> bool {
        self.subtask(id).is_some_and(|subtask| matches!(subtask.state, SubtaskState::Deployed { .. }))
    }
}

/// A restart set as it grows to its fixed point.
struct Restart<'a> {
    execution: &'a ExecutionGraph,
    tracker: &'a PartitionTracker,
    /// Vertices whose subtasks are not all members yet.
    unrecovered: BTreeSet<JobVertexId>,
    /// Whether the subtask may come to another result than before. Subtasks that have not been started
    /// are among them: what has read an earlier result of theirs may have to go too.
    members: BTreeMap<ExecutionVertexId, bool>,
    /// Members that are new or whose result was found to change.
    work: Vec<ExecutionVertexId>,
    /// Input ranges whose producers were looked at.
    searched: BTreeSet<(IntermediateDataSetId, IndexRange)>,
    readers: BTreeMap<IntermediateDataSetId, Readers>,
}

impl Restart<'_> {
    fn add(&mut self, id: ExecutionVertexId) {
        self.insert(id);
        if self.unrecovered.remove(&id.vertex) {
            for subtask in 0..self.execution.parallelism(id.vertex).unwrap_or(0) {
                self.insert(ExecutionVertexId::new(id.vertex, subtask));
            }
        }
    }

    fn insert(&mut self, id: ExecutionVertexId) {
        if self.execution.subtask(id).is_none() {
            return;
        }
        if let Entry::Vacant(entry) = self.members.entry(id) {
            entry.insert(self.execution.graph.vertex(id.vertex).determinacy != Determinacy::Determinate);
            self.work.push(id);
        }
    }

    /// The subtask reads what a member may come to otherwise.
    fn change(&mut self, id: ExecutionVertexId) {
        self.add(id);
        if let Some(changed @ false) = self.members.get_mut(&id) {
            *changed = true;
            self.work.push(id);
        }
    }

    fn follow(&mut self, id: ExecutionVertexId) {
        self.add_lost_producers(id);
        let changed = self.members.get(&id).is_some_and(|&changed| changed);
        let execution = self.execution;
        for &data_set in &execution.graph.vertex(id.vertex).outputs {
            let readers = self.readers.entry(data_set).or_insert_with(|| Readers::of(execution, data_set));
            if changed {
                for reader in readers.take(id.subtask) {
                    self.change(reader);
                }
            } else {
                for reader in readers.not_looked_at(id.subtask) {
                    if execution.is_deployed(reader) {
                        self.add(reader);
                    }
                }
            }
        }
    }

    fn add_lost_producers(&mut self, id: ExecutionVertexId) {
        let execution = self.execution;
        let Some(initialized) = execution.initialized(id.vertex) else { return };
        let ranges = initialized.inputs.get(id.subtask as usize).into_iter().flatten();
        for (&data_set, &(partitions, _)) in execution.graph.vertex(id.vertex).inputs.iter().zip(ranges) {
            if !self.searched.insert((data_set, partitions)) {
                continue;
            }
            let producer = execution.graph.edge(data_set).producer;
            for index in partitions.indices() {
                let producer = ExecutionVertexId::new(producer, index);
                let lost = execution.finish(producer).is_some_and(|finish| {
                    self.tracker.get(ResultPartitionId { data_set, producer: finish.attempt }).is_none()
                });
                if lost {
                    self.add(producer);
                }
            }
        }
    }
}

/// The consumer's subtasks by the partitions of a data set that they read.
struct Readers {
    by_range: BTreeMap<IndexRange, Group>,
    /// Length of the longest range, less one.
    reach: u32,
}

struct Group {
    subtasks: Vec<ExecutionVertexId>,
    looked_at: bool,
}

impl Readers {
    fn of(execution: &ExecutionGraph, data_set: IntermediateDataSetId) -> Self {
        let consumer = execution.graph.edge(data_set).consumer;
        let gates = &execution.graph.vertex(consumer).inputs;
        let gate = gates.iter().position(|&input| input == data_set);
        let mut readers = Self { by_range: BTreeMap::new(), reach: 0 };
        let inputs = execution.initialized(consumer).map_or(&[][..], |initialized| &initialized.inputs);
        for (subtask, ranges) in (0..).zip(inputs) {
            let Some(&(range, _)) = gate.and_then(|gate| ranges.get(gate)) else { continue };
            readers.reach = readers.reach.max(range.end.saturating_sub(range.start));
            let group = readers.by_range.entry(range);
            let group = group.or_insert_with(|| Group { subtasks: Vec::new(), looked_at: false });
            group.subtasks.push(ExecutionVertexId::new(consumer, subtask));
        }
        readers
    }

    fn ranges_with(&self, index: u32) -> Vec<IndexRange> {
        let first = IndexRange::new(index.saturating_sub(self.reach), 0);
        let near = self.by_range.range(first..=IndexRange::new(index, u32::MAX));
        near.map(|(&range, _)| range).filter(|range| range.indices().contains(&index)).collect()
    }

    /// All readers of a partition, for good: nobody asks for them again.
    fn take(&mut self, index: u32) -> Vec<ExecutionVertexId> {
        let ranges = self.ranges_with(index).into_iter();
        ranges.filter_map(|range| self.by_range.remove(&range)).flat_map(|group| group.subtasks).collect()
    }

    /// The readers of a partition that this did not give before.
    fn not_looked_at(&mut self, index: u32) -> Vec<ExecutionVertexId> {
        let mut readers = Vec::new();
        for range in self.ranges_with(index) {
            if let Some(group) = self.by_range.get_mut(&range)
                && !std::mem::replace(&mut group.looked_at, true)
            {
                readers.extend(&group.subtasks);
            }
        }
        readers
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::{JobEdge, JobGraph, JobVertex, Partitioner};
    use crate::ids::{FencingToken, ProcessId};
    use crate::job_event::Finish;
    use crate::message::IoMetrics;
    use crate::task::{TaskBody, TaskBodyFactory, TaskContext};

    use Determinacy::{Determinate, Indeterminate, Unordered};

    struct Nothing;

    impl TaskBodyFactory for Nothing {
        fn start(&self, _context: TaskContext) -> TaskBody {
            Box::pin(async { Ok(()) })
        }
    }

    const TM: ProcessId = ProcessId::TaskManager(1);
    const EPOCH: FencingToken = FencingToken(1);

    /// A chain of vertices with `parallelism` subtasks each, all finished, all partitions tracked.
    struct Chain {
        execution: ExecutionGraph,
        tracker: PartitionTracker,
    }

    impl Chain {
        fn of(vertices: &[Determinacy], parallelism: u32) -> Self {
            let count = vertices.len() as u32;
            let data_sets = |range: std::ops::Range<u32>| range.map(IntermediateDataSetId).collect();
            let vertex = |(id, &determinacy): (u32, &Determinacy)| JobVertex {
                id: JobVertexId(id),
                name: format!("v{id}"),
                parallelism: Some(parallelism),
                max_parallelism: None,
                inputs: data_sets(id.saturating_sub(1)..id),
                outputs: data_sets(id..(id + 1).min(count - 1)),
                source: None,
                uids: vec![],
                determinacy,
                recovery_obstacles: vec![],
                body: Arc::new(Nothing),
            };
            let edge = |id| JobEdge {
                data_set: IntermediateDataSetId(id),
                producer: JobVertexId(id),
                consumer: JobVertexId(id + 1),
                partitioner: Partitioner::Hash,
            };
            let graph = JobGraph {
                name: "chain".to_owned(),
                options: vec![],
                vertices: (0..).zip(vertices).map(vertex).collect(),
                edges: (0..count - 1).map(edge).collect(),
                fingerprint: 1,
            };
            let mut chain = Self {
                execution: ExecutionGraph::new(Arc::new(graph)),
                tracker: PartitionTracker::default(),
            };
            for vertex in 0..count {
                let all = (IndexRange::new(0, parallelism - 1), IndexRange::new(0, 0));
                let inputs = if vertex == 0 { vec![] } else { vec![all] };
                chain.execution.initialize(JobVertexId(vertex), vec![inputs; parallelism as usize]);
                for subtask in 0..parallelism {
                    chain.finish(id(vertex, subtask));
                }
            }
            chain
        }

        fn finish(&mut self, id: ExecutionVertexId) {
            let attempt = self.execution.deploy(id, EPOCH, TM);
            for &data_set in &self.execution.graph.vertex(id.vertex).outputs {
                self.tracker.track(ResultPartitionId { data_set, producer: attempt }, TM);
            }
            self.execution.set_finished(Finish {
                attempt,
                location: TM,
                partitions: vec![],
                committables: vec![],
                metrics: IoMetrics::default(),
                accumulators: [].into(),
            });
        }

        fn lose(&mut self, id: ExecutionVertexId) {
            let attempt = self.execution.finish(id).expect("it is finished").attempt;
            for &data_set in &self.execution.graph.vertex(id.vertex).outputs {
                self.tracker.untrack(ResultPartitionId { data_set, producer: attempt });
            }
        }

        fn run(&mut self, id: ExecutionVertexId) {
            self.execution.deploy(id, EPOCH, TM);
        }

        fn restart(&self, roots: &[ExecutionVertexId]) -> Vec<ExecutionVertexId> {
            self.execution.restart_set(roots, &self.tracker, &BTreeSet::new()).into_iter().collect()
        }
    }

    const fn id(vertex: u32, subtask: u32) -> ExecutionVertexId {
        ExecutionVertexId::new(JobVertexId(vertex), subtask)
    }

    #[test]
    fn b28_an_indeterminate_producer_that_runs_again_takes_its_finished_consumers_with_it() {
        for determinacy in [Indeterminate, Unordered] {
            let mut chain = Chain::of(&[determinacy, Determinate, Determinate], 2);
            chain.lose(id(0, 0));
            chain.run(id(1, 1));
            let all_behind = [id(0, 0), id(1, 0), id(1, 1), id(2, 0), id(2, 1)];
            assert_eq!(chain.restart(&[id(1, 1)]), all_behind);
        }
    }

    #[test]
    fn the_finished_consumers_of_a_determinate_producer_stay() {
        let mut chain = Chain::of(&[Determinate, Determinate, Determinate], 3);
        chain.lose(id(0, 0));
        chain.run(id(1, 1));
        chain.run(id(1, 2));
        assert_eq!(chain.restart(&[id(1, 1)]), [id(0, 0), id(1, 1), id(1, 2)]);
    }

    #[test]
    fn a_determinate_subtask_changes_with_what_it_reads() {
        let mut chain = Chain::of(&[Determinate, Indeterminate, Determinate, Determinate], 2);
        for subtask in [id(0, 0), id(1, 0), id(2, 0)] {
            chain.lose(subtask);
        }
        chain.run(id(3, 1));
        // Up to the source for want of partitions; down from the indeterminate vertex over all.
        let lost_and_changed = [id(0, 0), id(1, 0), id(2, 0), id(2, 1), id(3, 0), id(3, 1)];
        assert_eq!(chain.restart(&[id(3, 1)]), lost_and_changed);
    }

    #[test]
    fn a_change_is_passed_on_by_subtasks_that_wait_to_run_again() {
        let mut chain = Chain::of(&[Indeterminate, Determinate, Determinate], 1);
        chain.execution.reset(id(1, 0));
        assert_eq!(chain.restart(&[id(0, 0)]), [id(0, 0), id(2, 0)]);
    }

    #[test]
    fn only_producers_that_were_lost_run_again_for_a_failed_consumer() {
        let mut chain = Chain::of(&[Indeterminate, Determinate], 3);
        chain.run(id(1, 2));
        assert_eq!(chain.restart(&[id(1, 2)]), [id(1, 2)]);
        assert_eq!(chain.restart(&[]), []);
        assert_eq!(chain.restart(&[id(7, 0), id(1, 9)]), [], "of what does not exist nothing follows");
    }

    #[test]
    fn b24_of_a_source_that_cannot_remember_all_subtasks_run_again_with_what_follows_from_it() {
        let mut chain = Chain::of(&[Indeterminate, Determinate, Indeterminate, Determinate], 2);
        chain.lose(id(1, 1));
        chain.lose(id(0, 1));
        chain.run(id(2, 0));
        let unrecovered = |vertices: &[u32]| vertices.iter().map(|&vertex| JobVertexId(vertex)).collect();
        let with = |unrecovered| chain.execution.restart_set(&[id(2, 0)], &chain.tracker, &unrecovered);
        let all: BTreeSet<_> = (0..4).flat_map(|vertex| [id(vertex, 0), id(vertex, 1)]).collect();
        // The lost source brings its whole vertex, and that the rest, to the last vertex.
        assert_eq!(with(unrecovered(&[0, 2])), all);
        let known = with(unrecovered(&[]));
        assert!(!known.contains(&id(0, 0)) && known.contains(&id(0, 1)));
        let mut calm = Chain::of(&[Indeterminate, Determinate], 2);
        calm.run(id(1, 0));
        let restart = calm.execution.restart_set(&[id(1, 0)], &calm.tracker, &unrecovered(&[0]));
        assert_eq!(restart, [id(1, 0)].into(), "a source that need not run again does not");
    }

    #[test]
    fn a_wide_exchange_is_followed_in_less_than_a_step_for_each_pair() {
        let mut chain = Chain::of(&[Indeterminate, Determinate], 5_000);
        let roots: Vec<_> = (0..5_000).map(|subtask| id(0, subtask)).collect();
        for &root in &roots {
            chain.lose(root);
        }
        assert_eq!(chain.restart(&roots).len(), 10_000);
    }
}
