//! Decides a vertex's parallelism from what its producers produced (a first, simple rule of
//! Flink's DefaultVertexParallelismAndInputInfosDecider), and how many subpartitions a producer
//! makes for a consumer whose parallelism is not known yet.

use crate::config::Configuration;
use crate::graph::{JobGraph, JobVertex, Partitioner};
use crate::ids::IntermediateDataSetId;

/// Bounds of a decided parallelism; both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min: u32,
    pub max: u32,
}

impl Bounds {
    /// The configured bounds, within the vertex's own maximum.
    pub fn of(vertex: &JobVertex, config: &Configuration) -> Self {
        let max = vertex.max_parallelism.unwrap_or(config.max_parallelism).min(config.max_parallelism).max(1);
        Self { min: config.min_parallelism.clamp(1, max), max }
    }
}

/// Parallelism for reading `bytes` when one subtask should read `bytes_per_task`.
pub fn decide_parallelism(bytes: u64, bytes_per_task: u64, bounds: Bounds) -> u32 {
    let wanted = bytes.div_ceil(bytes_per_task.max(1));
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(bounds.min, bounds.max)
}

/// Subpartitions of each partition of a data set: one if it is forwarded, else the consumer's
/// parallelism, or the most that it may get.
pub fn subpartition_count(graph: &JobGraph, data_set: IntermediateDataSetId, config: &Configuration) -> u32 {
    let edge = graph.edge(data_set);
    let consumer = graph.vertex(edge.consumer);
    match edge.partitioner {
        Partitioner::Forward | Partitioner::Broadcast => 1,
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Rescale => {
            consumer.parallelism.unwrap_or_else(|| Bounds::of(consumer, config).max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallelism_follows_the_bytes_within_the_bounds() {
        let bounds = Bounds { min: 2, max: 8 };
        assert_eq!(decide_parallelism(0, 100, bounds), 2);
        assert_eq!(decide_parallelism(300, 100, bounds), 3);
        assert_eq!(decide_parallelism(301, 100, bounds), 4);
        assert_eq!(decide_parallelism(u64::MAX, 1, bounds), 8);
    }
}
