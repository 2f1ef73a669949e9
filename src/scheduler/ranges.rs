//! Which partitions and subpartitions each subtask of a consumer reads (ranges by count, as in
//! Flink's VertexInputInfoComputationUtils). Over all subtasks the ranges of an edge tile its
//! partitions × subpartitions exactly.

use crate::graph::Partitioner;
use crate::message::IndexRange;

/// For each input edge the range of partitions and of subpartitions.
pub type InputRanges = Vec<(IndexRange, IndexRange)>;

/// An input edge whose producers are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    pub partitioner: Partitioner,
    pub partitions: u32,
    pub subpartitions: u32,
}

/// The ranges of each of `parallelism` subtasks. `None` if an edge cannot be read by so many: a
/// forwarded edge has one partition for each subtask, any other at least as many subpartitions.
pub fn input_ranges(inputs: &[Input], parallelism: u32) -> Option<Vec<InputRanges>> {
    let readable = |input: &Input| match input.partitioner {
        Partitioner::Forward => input.partitions == parallelism,
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Rescale | Partitioner::Broadcast => {
            input.partitions > 0 && input.subpartitions >= parallelism
        }
    };
    if parallelism == 0 || !inputs.iter().all(readable) {
        return None;
    }
    let ranges = (0..parallelism)
        .map(|subtask| inputs.iter().map(|input| range(input, subtask, parallelism)).collect())
        .collect();
    Some(ranges)
}

fn range(input: &Input, subtask: u32, parallelism: u32) -> (IndexRange, IndexRange) {
    match input.partitioner {
        Partitioner::Forward => (IndexRange::new(subtask, subtask), IndexRange::new(0, 0)),
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Rescale | Partitioner::Broadcast => {
            (IndexRange::new(0, input.partitions - 1), share(input.subpartitions, subtask, parallelism))
        }
    }
}

/// Share `index` of `count` in `total` things.
fn share(total: u32, index: u32, count: u32) -> IndexRange {
    let bound = |i: u32| (u64::from(i) * u64::from(total) / u64::from(count)) as u32;
    IndexRange::new(bound(index), bound(index + 1) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_tile_the_subpartitions() {
        for total in 1..40 {
            for count in 1..=total {
                let mut next = 0;
                for index in 0..count {
                    let share = share(total, index, count);
                    assert_eq!(share.start, next);
                    assert!(share.end >= share.start);
                    next = share.end + 1;
                }
                assert_eq!(next, total);
            }
        }
    }

    #[test]
    fn a_forwarded_edge_ties_each_subtask_to_one_partition() {
        let input = Input { partitioner: Partitioner::Forward, partitions: 3, subpartitions: 1 };
        let ranges = input_ranges(&[input], 3).unwrap();
        assert_eq!(ranges[2], [(IndexRange::new(2, 2), IndexRange::new(0, 0))]);
        assert_eq!(input_ranges(&[input], 4), None);
    }

    #[test]
    fn more_subtasks_than_subpartitions_are_refused() {
        let input = Input { partitioner: Partitioner::Hash, partitions: 3, subpartitions: 2 };
        assert!(input_ranges(&[input], 2).is_some());
        assert_eq!(input_ranges(&[input], 3), None);
    }
}
