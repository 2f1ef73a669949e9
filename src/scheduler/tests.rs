//! The execution graph called by hand, over graphs whose tasks do nothing.

mod consistency;
mod work;

use std::sync::Arc;

use super::*;
use crate::graph::{Determinacy, JobEdge, JobGraph, JobVertex, Partitioner};
use crate::ids::{
    ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId, ProcessId,
    ResultPartitionId,
};
use crate::job_event::Finish;
use crate::message::{Accumulators, IoMetrics, PartitionWithMetrics};
use crate::task::{TaskBody, TaskBodyFactory, TaskContext};

const EPOCH: FencingToken = FencingToken(1);

struct Nothing;

impl TaskBodyFactory for Nothing {
    fn start(&self, _context: TaskContext) -> TaskBody {
        Box::pin(async { Ok(()) })
    }
}

/// Vertices joined by (producer, consumer, partitioner); edges in the order of their consumers.
fn graph(vertices: u32, edges: &[(u32, u32, Partitioner)]) -> Arc<JobGraph> {
    let edges = (0..).zip(edges).map(|(id, &(producer, consumer, partitioner))| JobEdge {
        data_set: IntermediateDataSetId(id),
        producer: JobVertexId(producer),
        consumer: JobVertexId(consumer),
        partitioner,
    });
    let edges: Vec<JobEdge> = edges.collect();
    let ids = |is_mine: &dyn Fn(&JobEdge) -> bool| {
        edges.iter().filter(|edge| is_mine(edge)).map(|edge| edge.data_set).collect()
    };
    let vertex = |id| JobVertex {
        id,
        name: format!("{id}"),
        parallelism: None,
        max_parallelism: None,
        inputs: ids(&|edge| edge.consumer == id),
        outputs: ids(&|edge| edge.producer == id),
        source: None,
        determinacy: Determinacy::Indeterminate,
        recovery_obstacles: vec![],
        body: Arc::new(Nothing),
    };
    let vertices = (0..vertices).map(|id| vertex(JobVertexId(id))).collect();
    Arc::new(JobGraph { name: "test".to_owned(), vertices, edges, fingerprint: 1 })
}

/// Initializes a vertex with ranges by count; an exchange has as many subpartitions as it takes.
fn initialize(execution: &mut ExecutionGraph, vertex: JobVertexId, parallelism: u32) {
    let graph = Arc::clone(&execution.graph);
    let inputs = graph.vertex(vertex).inputs.iter().map(|&data_set| {
        let edge = graph.edge(data_set);
        let partitions = execution.parallelism(edge.producer).unwrap();
        Input { partitioner: edge.partitioner, partitions, subpartitions: parallelism }
    });
    let ranges = input_ranges(&inputs.collect::<Vec<_>>(), parallelism).unwrap();
    execution.initialize(vertex, ranges);
}

/// The attempt's finish with partitions of these bytes by subpartition.
fn finish(graph: &JobGraph, attempt: ExecutionAttemptId, bytes: &[u64]) -> Finish {
    let outputs = &graph.vertex(attempt.subtask.vertex).outputs;
    let partition = |&data_set: &IntermediateDataSetId| PartitionWithMetrics {
        partition: ResultPartitionId { data_set, producer: attempt },
        subpartition_bytes: bytes.to_vec(),
    };
    Finish {
        attempt,
        location: ProcessId::TaskManager(1),
        partitions: outputs.iter().map(partition).collect(),
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: Accumulators::new(),
    }
}

#[test]
fn b47_bytes_of_a_finish_that_was_taken_back_do_not_count() {
    let data_set = IntermediateDataSetId(0);
    let mut execution = ExecutionGraph::new(graph(2, &[(0, 1, Partitioner::Hash)]));
    execution.initialize(JobVertexId(0), vec![vec![]; 2]);
    let subtask = |subtask| ExecutionVertexId::new(JobVertexId(0), subtask);
    let location = ProcessId::TaskManager(1);
    let run = |execution: &mut ExecutionGraph, index, bytes: &[u64]| {
        let attempt = execution.deploy(subtask(index), EPOCH, location);
        let finish = finish(&execution.graph, attempt, bytes);
        execution.set_finished(finish);
    };
    run(&mut execution, 0, &[1, 2, 3]);
    run(&mut execution, 1, &[10, 20, 30]);
    assert_eq!(execution.subpartition_bytes(data_set, 3), [11, 22, 33]);
    // Asked once, and it is other bytes that are there when the decision is taken.
    execution.reset(subtask(1));
    assert_eq!(execution.subpartition_bytes(data_set, 3), [1, 2, 3]);
    run(&mut execution, 1, &[0, 0, 500]);
    assert_eq!(execution.subpartition_bytes(data_set, 3), [1, 2, 503]);
}
