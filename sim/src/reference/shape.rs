//! Numbers that follow from the job graph and the configuration alone.

use revenant::graph::{JobGraph, Partitioner};
use revenant::ids::IntermediateDataSetId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of splits of each vertex that is a source. Of one that reads files, the job's reference
    /// says it.
    pub splits: Vec<Option<u32>>,
    /// How the partitions of each data set are cut.
    pub cuts: Vec<Cut>,
}

/// Into how many subpartitions a partition is cut. A number is what the consumer's parallelism is, or
/// can at most become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Forwarded or broadcast: it is not.
    Whole,
    /// ALL_TO_ALL: one for each consumer.
    AllToAll(u32),
    /// POINTWISE: one for each consumer that falls to a producer, rounded up.
    Pointwise(u32),
}

impl Shape {
    /// `max_parallelism` is the configuration's upper bound for a decided parallelism.
    pub fn of(graph: &JobGraph, max_parallelism: u32) -> Self {
        let splits = graph.vertices.iter().map(|vertex| {
            let source = vertex.source.as_ref()?;
            Some(source.splits().len() as u32)
        });
        let cuts = graph.edges.iter().map(|edge| {
            let consumer = graph.vertex(edge.consumer);
            let consumers = consumer.parallelism.unwrap_or_else(|| {
                consumer.max_parallelism.map_or(max_parallelism, |own| own.min(max_parallelism))
            });
            match edge.partitioner {
                Partitioner::Forward | Partitioner::Broadcast => Cut::Whole,
                Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
                    Cut::AllToAll(consumers)
                }
                Partitioner::Rescale => Cut::Pointwise(consumers),
            }
        });
        Self { splits: splits.collect(), cuts: cuts.collect() }
    }

    /// Number of subpartitions of each partition of a data set that has `producers` of them.
    pub fn subpartitions(&self, data_set: IntermediateDataSetId, producers: u32) -> u32 {
        match self.cuts[data_set.0 as usize] {
            Cut::Whole => 1,
            Cut::AllToAll(consumers) => consumers,
            Cut::Pointwise(consumers) => consumers.div_ceil(producers.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pointwise_cut_depends_on_the_number_of_producers() {
        let shape = Shape { splits: vec![], cuts: vec![Cut::Whole, Cut::AllToAll(8), Cut::Pointwise(8)] };
        let subpartitions =
            |producers| [0, 1, 2].map(|n| shape.subpartitions(IntermediateDataSetId(n), producers));
        assert_eq!(subpartitions(1), [1, 8, 8]);
        assert_eq!(subpartitions(3), [1, 8, 3]);
        assert_eq!(subpartitions(20), [1, 8, 1]);
    }
}
