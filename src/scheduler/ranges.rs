//! Which partitions and subpartitions each subtask of a consumer reads, when nothing but their
//! numbers counts (Flink's VertexInputInfoComputationUtils). Over all subtasks the ranges of an edge
//! tile its partitions × subpartitions exactly; of a broadcast each subtask reads everything. How
//! many subtasks there are is decided elsewhere.

use crate::graph::Partitioner;
use crate::message::IndexRange;

/// For each input edge the range of partitions and of subpartitions.
pub type InputRanges = Vec<(IndexRange, IndexRange)>;

/// An input edge whose producers are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    pub partitioner: Partitioner,
    pub partitions: u32,
    /// Of each partition.
    pub subpartitions: u32,
}

/// Why a vertex cannot read an input with a parallelism, and what to do. Inputs count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableInput {
    #[error("it has no subtask; give it a parallelism of at least 1")]
    NoSubtask,
    #[error("input {input} has no partition; give its producer a parallelism of at least 1")]
    NoPartition { input: usize },
    #[error(
        "input {input} is forwarded by {partitions} subtasks and can only be read by as many, not by {parallelism}; \
         give both operators the same parallelism, or put a rebalance between them"
    )]
    Forward { input: usize, partitions: u32, parallelism: u32 },
    #[error(
        "each partition of input {input} has {subpartitions} subpartitions, too few for {readers} subtasks to share; \
         raise execution.batch.adaptive.auto-parallelism.max-parallelism, or set the operator's parallelism"
    )]
    TooFewSubpartitions { input: usize, subpartitions: u32, readers: u32 },
}

/// The ranges of each of `parallelism` subtasks, by count.
pub fn input_ranges(inputs: &[Input], parallelism: u32) -> Result<Vec<InputRanges>, UnreadableInput> {
    if parallelism == 0 {
        return Err(UnreadableInput::NoSubtask);
    }
    for (index, input) in inputs.iter().enumerate() {
        check(index, input, parallelism)?;
    }
    let ranges = (0..parallelism)
        .map(|subtask| inputs.iter().map(|input| range(input, subtask, parallelism)).collect())
        .collect();
    Ok(ranges)
}

fn check(index: usize, input: &Input, parallelism: u32) -> Result<(), UnreadableInput> {
    let Input { partitioner, partitions, subpartitions } = *input;
    if partitions == 0 {
        return Err(UnreadableInput::NoPartition { input: index });
    }
    // The most subtasks that share a partition, and so its subpartitions.
    let readers = match partitioner {
        Partitioner::Forward if partitions != parallelism => {
            return Err(UnreadableInput::Forward { input: index, partitions, parallelism });
        }
        Partitioner::Forward | Partitioner::Broadcast => 1,
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
            parallelism
        }
        Partitioner::Rescale => parallelism.div_ceil(partitions),
    };
    if subpartitions < readers {
        return Err(UnreadableInput::TooFewSubpartitions { input: index, subpartitions, readers });
    }
    Ok(())
}

fn range(input: &Input, subtask: u32, parallelism: u32) -> (IndexRange, IndexRange) {
    let all_partitions = IndexRange::new(0, input.partitions - 1);
    match input.partitioner {
        Partitioner::Forward => (IndexRange::new(subtask, subtask), IndexRange::new(0, 0)),
        Partitioner::Broadcast => (all_partitions, IndexRange::new(0, 0)),
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
            (all_partitions, share(input.subpartitions, subtask, parallelism))
        }
        Partitioner::Rescale => pointwise(input, subtask, parallelism),
    }
}

/// With no fewer partitions than subtasks a subtask reads whole partitions; otherwise a few subtasks
/// share one.
fn pointwise(input: &Input, subtask: u32, parallelism: u32) -> (IndexRange, IndexRange) {
    let Input { partitions, subpartitions, .. } = *input;
    if partitions >= parallelism {
        return (share(partitions, subtask, parallelism), IndexRange::new(0, subpartitions - 1));
    }
    let partition = scale(subtask, partitions, parallelism);
    let first_reader = |partition: u32| {
        let first = u64::from(partition) * u64::from(parallelism);
        first.div_ceil(u64::from(partitions)) as u32
    };
    let readers = first_reader(partition + 1) - first_reader(partition);
    (IndexRange::new(partition, partition), share(subpartitions, subtask % readers, readers))
}

/// Share `index` of `count` in `total` things; `total` is at least `count`.
fn share(total: u32, index: u32, count: u32) -> IndexRange {
    IndexRange::new(scale(index, total, count), scale(index + 1, total, count) - 1)
}

/// `⌊value · to / from⌋`
fn scale(value: u32, to: u32, from: u32) -> u32 {
    (u64::from(value) * u64::from(to) / u64::from(from)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(partitioner: Partitioner, partitions: u32, subpartitions: u32) -> Input {
        Input { partitioner, partitions, subpartitions }
    }

    /// The ranges of a single input as `partitions/subpartitions`, by subtask.
    fn shown(input: Input, parallelism: u32) -> Vec<String> {
        let range = |range: IndexRange| format!("{}-{}", range.start, range.end);
        let ranges = input_ranges(&[input], parallelism).unwrap();
        ranges.iter().map(|gates| format!("{}/{}", range(gates[0].0), range(gates[0].1))).collect()
    }

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
        let forward = input(Partitioner::Forward, 3, 1);
        assert_eq!(shown(forward, 3), ["0-0/0-0", "1-1/0-0", "2-2/0-0"]);
    }

    #[test]
    fn subtasks_of_an_all_to_all_edge_share_the_subpartitions_of_all_partitions() {
        for partitioner in [Partitioner::Hash, Partitioner::Rebalance] {
            assert_eq!(shown(input(partitioner, 4, 5), 3), ["0-3/0-0", "0-3/1-2", "0-3/3-4"]);
        }
    }

    #[test]
    fn every_subtask_reads_all_of_a_broadcast() {
        assert_eq!(shown(input(Partitioner::Broadcast, 2, 1), 3), ["0-1/0-0"; 3]);
    }

    #[test]
    fn with_more_partitions_than_subtasks_a_rescale_gives_each_subtask_whole_partitions() {
        assert_eq!(shown(input(Partitioner::Rescale, 5, 2), 2), ["0-1/0-1", "2-4/0-1"]);
        assert_eq!(shown(input(Partitioner::Rescale, 2, 3), 2), ["0-0/0-2", "1-1/0-2"]);
    }

    /// Partition 0 of 2 is read by subtasks 0 to 2 of 5, partition 1 by subtasks 3 and 4; a subtask's
    /// place among the readers is its number modulo theirs.
    #[test]
    fn with_fewer_partitions_than_subtasks_a_rescale_shares_each_partition_among_a_few() {
        let expected = ["0-0/0-0", "0-0/1-1", "0-0/2-2", "1-1/1-2", "1-1/0-0"];
        assert_eq!(shown(input(Partitioner::Rescale, 2, 3), 5), expected);
    }

    #[test]
    fn several_inputs_are_each_read_in_their_own_way() {
        let inputs = [
            input(Partitioner::Forward, 2, 1),
            input(Partitioner::Rescale, 4, 1),
            input(Partitioner::Broadcast, 3, 1),
            input(Partitioner::Hash, 3, 2),
        ];
        let ranges = input_ranges(&inputs, 2).unwrap();
        let range = IndexRange::new;
        let second = [
            (range(1, 1), range(0, 0)),
            (range(2, 3), range(0, 0)),
            (range(0, 2), range(0, 0)),
            (range(0, 2), range(1, 1)),
        ];
        assert_eq!(ranges[1], second);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_to_do() {
        let refused = |input, parallelism| input_ranges(&[input], parallelism).unwrap_err().to_string();
        assert_eq!(
            refused(input(Partitioner::Forward, 3, 1), 4),
            "input 0 is forwarded by 3 subtasks and can only be read by as many, not by 4; give both operators the \
             same parallelism, or put a rebalance between them"
        );
        assert_eq!(
            refused(input(Partitioner::Hash, 3, 2), 3),
            "each partition of input 0 has 2 subpartitions, too few for 3 subtasks to share; raise \
             execution.batch.adaptive.auto-parallelism.max-parallelism, or set the operator's parallelism"
        );
        let rescale = input(Partitioner::Rescale, 2, 2);
        assert!(input_ranges(&[rescale], 4).is_ok());
        assert!(refused(rescale, 5).contains("too few for 3 subtasks"));
        assert!(refused(input(Partitioner::Broadcast, 0, 1), 1).starts_with("input 0 has no partition"));
        assert!(refused(input(Partitioner::Hash, 1, 1), 0).starts_with("it has no subtask"));
    }
}
