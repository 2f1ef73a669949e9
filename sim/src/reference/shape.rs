//! Numbers that follow from the job graph and the configuration alone.

use revenant::graph::{JobGraph, Partitioner};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of splits of each vertex that is a source.
    pub splits: Vec<Option<u32>>,
    /// Number of subpartitions of each data set's partitions: what the consumer's parallelism is or
    /// can at most become.
    pub subpartitions: Vec<u32>,
}

impl Shape {
    /// `max_parallelism` is the configuration's upper bound for a decided parallelism.
    pub fn of(graph: &JobGraph, max_parallelism: u32) -> Self {
        let splits = graph.vertices.iter().map(|vertex| {
            let source = vertex.source.as_ref()?;
            Some(source.splits().len() as u32)
        });
        let subpartitions = graph.edges.iter().map(|edge| {
            let consumer = graph.vertex(edge.consumer);
            match edge.partitioner {
                Partitioner::Forward | Partitioner::Broadcast => 1,
                Partitioner::Hash | Partitioner::Rebalance | Partitioner::Rescale => {
                    consumer.parallelism.unwrap_or_else(|| {
                        consumer.max_parallelism.map_or(max_parallelism, |own| own.min(max_parallelism))
                    })
                }
            }
        });
        Self { splits: splits.collect(), subpartitions: subpartitions.collect() }
    }
}
