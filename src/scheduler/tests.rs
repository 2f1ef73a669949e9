//! The execution graph called by hand, over graphs whose tasks do nothing.

mod consistency;
mod work;

use std::sync::Arc;

use super::*;
use crate::config::Configuration;
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
        uids: vec![],
        determinacy: Determinacy::Indeterminate,
        recovery_obstacles: vec![],
        body: Arc::new(Nothing),
    };
    let vertices = (0..vertices).map(|id| vertex(JobVertexId(id))).collect();
    Arc::new(JobGraph { name: "test".to_owned(), options: vec![], vertices, edges, fingerprint: 1 })
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

#[test]
fn the_bounds_of_a_decided_parallelism_are_within_the_vertexs_own_maximum() {
    let graph = graph(1, &[]);
    let bounds = |own, min, max| {
        let vertex = JobVertex {
            max_parallelism: own,
            body: Arc::new(Nothing),
            name: String::new(),
            inputs: vec![],
            outputs: vec![],
            source: None,
            uids: vec![],
            recovery_obstacles: vec![],
            ..graph.vertices[0]
        };
        let config = Configuration { min_parallelism: min, max_parallelism: max, ..Configuration::default() };
        let Bounds { min, max } = Bounds::of(&vertex, &config);
        (min, max)
    };
    assert_eq!(bounds(None, 2, 128), (2, 128));
    assert_eq!(bounds(Some(16), 2, 128), (2, 16));
    assert_eq!(bounds(Some(16), 20, 128), (16, 16));
    assert_eq!(bounds(Some(300), 2, 128), (2, 128));
}

#[test]
fn partitions_have_a_subpartition_for_each_consumer_that_there_may_be() {
    use Partitioner::{Broadcast, Forward, Hash, Rebalance, Rescale};
    let edges = [Forward, Hash, Rebalance, Rescale, Broadcast].map(|partitioner| (0, 1, partitioner));
    let mut graph = Arc::into_inner(graph(2, &edges)).unwrap();
    let config = Configuration { max_parallelism: 10, ..Configuration::default() };
    let counts = |graph: &JobGraph, producers| {
        let count = |data_set| subpartition_count(graph, IntermediateDataSetId(data_set), producers, &config);
        [0, 1, 2, 3, 4].map(count)
    };
    assert_eq!(counts(&graph, 1), [1, 10, 10, 10, 1]);
    assert_eq!(counts(&graph, 3), [1, 10, 10, 4, 1]);
    assert_eq!(counts(&graph, 30), [1, 10, 10, 1, 1]);
    graph.vertices[1].max_parallelism = Some(7);
    assert_eq!(counts(&graph, 3), [1, 7, 7, 3, 1]);
    graph.vertices[1].parallelism = Some(20);
    assert_eq!(counts(&graph, 3), [1, 20, 20, 7, 1]);
}
