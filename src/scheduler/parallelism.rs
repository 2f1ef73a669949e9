//! Decides a vertex's parallelism, and what each of its subtasks reads, from what its producers
//! produced (Flink's DefaultVertexParallelismAndInputInfosDecider); and how many subpartitions a
//! producer makes for a consumer whose parallelism is not known yet. What counts as produced is
//! handed in; nothing is remembered from one decision to the next.
//!
//! Where every input that is not broadcast is ALL_TO_ALL, neighbouring subpartitions are put
//! together until a subtask would read more than it should: ranges of even bytes. Anywhere else the
//! bytes say how many subtasks there are, and their ranges are even by count.

use crate::config::Configuration;
use crate::graph::{JobGraph, JobVertex, Partitioner};
use crate::ids::IntermediateDataSetId;
use crate::message::IndexRange;

use super::ranges::{Input, InputRanges, UnreadableInput, input_ranges};

/// The most subpartitions that a subtask should read of one input, as in Flink.
pub const MAX_SUBPARTITIONS_PER_TASK: u32 = 32_768;

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

/// An input edge with what its producers wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedInput {
    pub input: Input,
    /// Bytes of each subpartition, over all partitions.
    pub bytes: Vec<u64>,
}

impl ProducedInput {
    fn total(&self) -> u64 {
        self.bytes.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }
}

/// The ranges of each subtask of a vertex whose parallelism is to be decided, which is their number:
/// so that a subtask reads about `bytes_per_task` of what is not broadcast.
pub fn decide(
    inputs: &[ProducedInput],
    bytes_per_task: u64,
    bounds: Bounds,
) -> Result<Vec<InputRanges>, UnreadableInput> {
    if let Some(ranges) = ranges_by_bytes(inputs, bytes_per_task, bounds) {
        return Ok(ranges);
    }
    let inputs: Vec<&ProducedInput> = inputs.iter().collect();
    let shared = inputs.iter().copied().filter(|input| !is_broadcast(input));
    let parallelism = parallelism_by_bytes(&shared.collect::<Vec<_>>(), bytes_per_task, bounds);
    let inputs: Vec<Input> = inputs.iter().map(|input| input.input).collect();
    input_ranges(&inputs, parallelism)
}

fn is_broadcast(input: &ProducedInput) -> bool {
    input.input.partitioner == Partitioner::Broadcast
}

/// Ranges of even bytes. `None` if an input has none, or no number of them is within the bounds.
fn ranges_by_bytes(
    inputs: &[ProducedInput],
    bytes_per_task: u64,
    bounds: Bounds,
) -> Option<Vec<InputRanges>> {
    let is_readable = |input: &ProducedInput| match input.input.partitioner {
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
            input.input.partitions > 0
        }
        Partitioner::Broadcast => input.input.partitions > 0 && input.input.subpartitions > 0,
        Partitioner::Forward | Partitioner::Rescale => false,
    };
    let shared: Vec<&ProducedInput> = inputs.iter().filter(|input| !is_broadcast(input)).collect();
    let subpartitions = shared.first()?.input.subpartitions;
    if subpartitions == 0
        || !inputs.iter().all(is_readable)
        || shared.iter().any(|input| input.input.subpartitions != subpartitions)
    {
        return None;
    }
    let mut bytes = vec![0_u64; subpartitions as usize];
    for input in &shared {
        for (sum, &more) in bytes.iter_mut().zip(&input.bytes) {
            *sum = sum.saturating_add(more);
        }
    }
    let partitions = shared.iter().map(|input| input.input.partitions).max()?;
    let cut = Cut { bytes, longest: (MAX_SUBPARTITIONS_PER_TASK / partitions).max(1) };
    let limit = cut.limit_within(bytes_per_task, bounds)?;
    let ranges_of_subtask = |range: IndexRange| {
        let of_input = |input: &ProducedInput| {
            let partitions = IndexRange::new(0, input.input.partitions - 1);
            (partitions, if is_broadcast(input) { IndexRange::new(0, 0) } else { range })
        };
        inputs.iter().map(of_input).collect()
    };
    Some(cut.ranges(limit).into_iter().map(ranges_of_subtask).collect())
}

/// How a row of subpartitions is cut into ranges.
struct Cut {
    /// By subpartition; not empty.
    bytes: Vec<u64>,
    /// The most subpartitions in a range.
    longest: u32,
}

impl Cut {
    /// A range goes on as long as it has no more than `limit` bytes, and has at least one subpartition.
    fn ranges(&self, limit: u64) -> Vec<IndexRange> {
        let mut ranges: Vec<IndexRange> = Vec::new();
        let mut sum = 0_u64;
        for (index, &bytes) in (0_u32..).zip(&self.bytes) {
            sum = sum.saturating_add(bytes);
            match ranges.last_mut() {
                Some(range) if sum <= limit && index - range.start < self.longest => range.end = index,
                _ => {
                    ranges.push(IndexRange::new(index, index));
                    sum = bytes;
                }
            }
        }
        ranges
    }

    fn count(&self, limit: u64) -> u32 {
        self.ranges(limit).len() as u32
    }

    /// The limit nearest to the wanted one that gives a number of ranges within the bounds: a higher
    /// limit never gives more ranges. Of the limits below the wanted one that give the same number,
    /// the lowest: it makes the ranges most even.
    fn limit_within(&self, wanted: u64, bounds: Bounds) -> Option<u64> {
        let count = self.count(wanted);
        let limit = if count < bounds.min {
            let first_below_min = lowest(0, wanted, |limit| self.count(limit) < bounds.min);
            let count = self.count(first_below_min.checked_sub(1)?);
            lowest(0, first_below_min, |limit| self.count(limit) <= count)
        } else if count > bounds.max {
            let total = self.bytes.iter().fold(0, |sum: u64, &bytes| sum.saturating_add(bytes));
            lowest(wanted, total.max(wanted), |limit| self.count(limit) <= bounds.max)
        } else {
            wanted
        };
        (bounds.min..=bounds.max).contains(&self.count(limit)).then_some(limit)
    }
}

/// The lowest number of `from..=to` with a property that all above it have; `to` if none has it.
fn lowest(mut from: u64, mut to: u64, has: impl Fn(u64) -> bool) -> u64 {
    while from < to {
        let middle = from + (to - from) / 2;
        if has(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    to
}

/// As many subtasks as the bytes want, and as it takes for none to read too many subpartitions; the
/// fewest if there is nothing but broadcasts.
fn parallelism_by_bytes(shared: &[&ProducedInput], bytes_per_task: u64, bounds: Bounds) -> u32 {
    let total = shared.iter().fold(0, |sum: u64, input| sum.saturating_add(input.total()));
    let widths =
        shared.iter().map(|input| u64::from(input.input.partitions) * u64::from(input.input.subpartitions));
    let by_width = widths.max().unwrap_or(0).div_ceil(u64::from(MAX_SUBPARTITIONS_PER_TASK));
    let wanted = total.div_ceil(bytes_per_task.max(1)).max(by_width);
    let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).clamp(bounds.min, bounds.max);
    // Shares by count are not all of one size: a few more subtasks may be needed.
    let fits = |&parallelism: &u32| {
        let width = |input: &&ProducedInput| widest_share(&input.input, parallelism);
        shared.iter().map(width).max() <= Some(u64::from(MAX_SUBPARTITIONS_PER_TASK))
    };
    (wanted..=bounds.max).find(fits).unwrap_or(wanted)
}

/// The most subpartitions that one of `parallelism` subtasks reads by count.
fn widest_share(input: &Input, parallelism: u32) -> u64 {
    let Input { partitioner, partitions, subpartitions } = *input;
    let (rows, columns) = match partitioner {
        Partitioner::Forward | Partitioner::Broadcast => (1, 1),
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
            (partitions, subpartitions.div_ceil(parallelism))
        }
        Partitioner::Rescale if partitions >= parallelism => {
            (partitions.div_ceil(parallelism), subpartitions)
        }
        Partitioner::Rescale => (1, subpartitions.div_ceil(parallelism / partitions.max(1))),
    };
    u64::from(rows) * u64::from(columns)
}

/// Subpartitions of each partition of a data set with `producers` partitions: one if it is forwarded
/// or broadcast; else the consumer's parallelism, or the most that it may get; of a rescale what
/// falls to one producer.
pub fn subpartition_count(
    graph: &JobGraph,
    data_set: IntermediateDataSetId,
    producers: u32,
    config: &Configuration,
) -> u32 {
    let edge = graph.edge(data_set);
    let consumer = graph.vertex(edge.consumer);
    let consumers = || consumer.parallelism.unwrap_or_else(|| Bounds::of(consumer, config).max);
    match edge.partitioner {
        Partitioner::Forward | Partitioner::Broadcast => 1,
        Partitioner::Hash | Partitioner::Rebalance | Partitioner::Shuffle | Partitioner::Custom => {
            consumers()
        }
        Partitioner::Rescale => consumers().div_ceil(producers.max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { min: 1, max: 8 };

    fn produced(partitioner: Partitioner, partitions: u32, bytes: &[u64]) -> ProducedInput {
        let input = Input { partitioner, partitions, subpartitions: bytes.len() as u32 };
        ProducedInput { input, bytes: bytes.to_vec() }
    }

    fn hash(bytes: &[u64]) -> ProducedInput {
        produced(Partitioner::Hash, 3, bytes)
    }

    /// The subpartitions of each subtask in the first input.
    fn cut(inputs: &[ProducedInput], bytes_per_task: u64, (min, max): (u32, u32)) -> Vec<(u32, u32)> {
        let ranges = decide(inputs, bytes_per_task, Bounds { min, max }).unwrap();
        ranges.iter().map(|gates| (gates[0].1.start, gates[0].1.end)).collect()
    }

    #[test]
    fn subpartitions_are_put_together_until_a_subtask_has_enough_to_read() {
        let inputs = [hash(&[40, 60, 10, 95, 5, 200, 0, 1])];
        assert_eq!(cut(&inputs, 100, (1, 8)), [(0, 1), (2, 2), (3, 4), (5, 5), (6, 7)]);
    }

    #[test]
    fn several_inputs_are_cut_together_and_a_broadcast_does_not_count() {
        let small = produced(Partitioner::Rebalance, 2, &[10, 90, 10, 0]);
        let broadcast = produced(Partitioner::Broadcast, 5, &[1_000_000]);
        let inputs = [hash(&[40, 60, 10, 20]), broadcast, small];
        let ranges = decide(&inputs, 100, BOUNDS).unwrap();
        let range = IndexRange::new;
        let gates = |part| vec![(range(0, 2), part), (range(0, 4), range(0, 0)), (range(0, 1), part)];
        assert_eq!(ranges, [gates(range(0, 0)), gates(range(1, 1)), gates(range(2, 3))]);
    }

    #[test]
    fn too_few_subtasks_become_more_by_the_most_even_cut() {
        let inputs = [hash(&[10, 10, 10, 10, 10, 10])];
        assert_eq!(cut(&inputs, 1000, (1, 6)), [(0, 5)]);
        assert_eq!(cut(&inputs, 1000, (2, 6)), [(0, 2), (3, 5)]);
        assert_eq!(cut(&inputs, 1000, (4, 6)), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
    }

    #[test]
    fn too_many_subtasks_become_fewer_by_the_lowest_limit_that_does() {
        let inputs = [hash(&[10, 10, 10, 50, 10, 10])];
        assert_eq!(cut(&inputs, 10, (1, 3)), [(0, 2), (3, 3), (4, 5)]);
        assert_eq!(cut(&inputs, 10, (1, 2)), [(0, 2), (3, 5)]);
    }

    #[test]
    fn where_no_cut_by_bytes_is_within_the_bounds_the_ranges_are_by_count() {
        // By bytes: one range, or all six.
        let inputs = [hash(&[10, 10, 10, 10, 10, 10])];
        assert_eq!(cut(&inputs, 1000, (4, 5)), [(0, 0), (1, 2), (3, 3), (4, 5)]);
        // Empty subpartitions cannot be told apart by bytes.
        assert_eq!(cut(&[hash(&[0, 0, 0, 0])], 1000, (2, 3)), [(0, 1), (2, 3)]);
    }

    #[test]
    fn a_subtask_reads_at_most_32768_subpartitions() {
        let inputs = [produced(Partitioner::Hash, 20_000, &[0, 0, 0, 0])];
        assert_eq!(cut(&inputs, 1000, (1, 8)), [(0, 0), (1, 1), (2, 2), (3, 3)]);
        let inputs = [produced(Partitioner::Hash, 10_000, &[0, 0, 0, 0, 0])];
        assert_eq!(cut(&inputs, 1000, (1, 8)), [(0, 2), (3, 4)]);
        // One subpartition is the least.
        let inputs = [produced(Partitioner::Hash, 40_000, &[0, 0])];
        assert_eq!(cut(&inputs, 1000, (1, 8)), [(0, 0), (1, 1)]);
        // Whole partitions: 5 subtasks would read 3 or 4 of them.
        let inputs = [produced(Partitioner::Rescale, 16, &vec![0; 10_000])];
        assert_eq!(decide(&inputs, 1000, BOUNDS).unwrap().len(), 6);
    }

    #[test]
    fn parallelism_follows_the_bytes_where_an_input_is_pointwise() {
        let parallelism = |bytes: &[u64], per_task, bounds| {
            let inputs = [produced(Partitioner::Rescale, 4, bytes), hash(&[0; 8])];
            decide(&inputs, per_task, bounds).unwrap().len()
        };
        assert_eq!(parallelism(&[0, 0], 100, BOUNDS), 1);
        assert_eq!(parallelism(&[200, 100], 100, BOUNDS), 3);
        assert_eq!(parallelism(&[200, 101], 100, BOUNDS), 4);
        assert_eq!(parallelism(&[200, 100], 100, Bounds { min: 5, max: 8 }), 5);
        assert_eq!(parallelism(&[u64::MAX, u64::MAX], 1, BOUNDS), 8);
    }

    #[test]
    fn with_nothing_but_broadcasts_there_are_as_few_subtasks_as_may_be() {
        let inputs = [produced(Partitioner::Broadcast, 4, &[1_000_000])];
        assert_eq!(decide(&inputs, 10, Bounds { min: 2, max: 8 }).unwrap().len(), 2);
    }

    #[test]
    fn an_input_that_cannot_be_read_is_refused() {
        let inputs = [produced(Partitioner::Hash, 0, &[0, 0])];
        assert_eq!(decide(&inputs, 10, BOUNDS), Err(UnreadableInput::NoPartition { input: 0 }));
        let inputs = [produced(Partitioner::Forward, 3, &[1])];
        assert!(decide(&inputs, 10, BOUNDS).is_err());
    }
}
