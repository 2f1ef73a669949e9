//! Who reads what through an input edge. Subtasks that read the same partitions are one group
//! (Flink's ConsumedPartitionGroup and its ConsumerVertexGroup), which counts the partitions that it
//! misses and the subtasks that are not finished: an ALL_TO_ALL edge is one group however many
//! subtasks it joins, a POINTWISE edge has about as many groups as the smaller side has subtasks.
//! Whether a partition is there and a subtask finished is said by the execution graph.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::message::{IndexRange, ShuffleDescriptor};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartitionGroup {
    pub partitions: IndexRange,
    /// Subtasks of the consumer, rising.
    pub consumers: Vec<u32>,
    /// Partitions that cannot be read now.
    pub missing: u32,
    /// Consumers that are not finished.
    pub unfinished: u32,
    /// Where the partitions are, once a consumer asked. Forgotten when one of them changes.
    pub descriptors: Option<Arc<Vec<ShuffleDescriptor>>>,
}

/// The groups of an input edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputGate {
    /// By range of partitions.
    groups: Vec<PartitionGroup>,
    /// Index of each subtask's group; `None` for a subtask without ranges.
    group_of: Vec<Option<usize>>,
    /// Partitions of the longest group.
    longest: u64,
}

impl InputGate {
    /// `partitions` is what each subtask reads; `available` says of each partition whether it is there.
    pub fn new(
        partitions: impl Iterator<Item = Option<IndexRange>>,
        available: &[bool],
        is_finished: impl Fn(u32) -> bool,
    ) -> Self {
        let ranges: Vec<Option<IndexRange>> = partitions.collect();
        let mut consumers: BTreeMap<IndexRange, Vec<u32>> = BTreeMap::new();
        for (subtask, range) in (0..).zip(&ranges) {
            if let Some(range) = range {
                consumers.entry(*range).or_default().push(subtask);
            }
        }
        let missing = Missing::of(available);
        let groups: Vec<PartitionGroup> = consumers
            .into_iter()
            .map(|(partitions, consumers)| PartitionGroup {
                partitions,
                missing: missing.within(partitions),
                unfinished: consumers.iter().filter(|&&subtask| !is_finished(subtask)).count() as u32,
                consumers,
                descriptors: None,
            })
            .collect();
        let place = |range: IndexRange| groups.binary_search_by_key(&range, |group| group.partitions).ok();
        let group_of = ranges.iter().map(|range| range.and_then(place)).collect();
        let longest = groups.iter().map(|group| length(group.partitions)).max().unwrap_or(0);
        Self { groups, group_of, longest }
    }

    /// A group whose count of unfinished consumers is not what it should be, if there is one.
    pub fn miscounted(&self, is_finished: impl Fn(u32) -> bool) -> Option<&PartitionGroup> {
        let unfinished =
            |group: &PartitionGroup| group.consumers.iter().filter(|&&subtask| !is_finished(subtask)).count();
        self.groups.iter().find(|group| group.unfinished as usize != unfinished(group))
    }

    pub fn of_subtask(&self, subtask: u32) -> Option<&PartitionGroup> {
        let group = *self.group_of.get(subtask as usize)?;
        self.groups.get(group?)
    }

    pub fn of_subtask_mut(&mut self, subtask: u32) -> Option<&mut PartitionGroup> {
        let group = *self.group_of.get(subtask as usize)?;
        self.groups.get_mut(group?)
    }

    pub fn of_partition(&self, index: u32) -> impl Iterator<Item = &PartitionGroup> {
        self.groups[self.around(index)]
            .iter()
            .filter(move |group| group.partitions.indices().contains(&index))
    }

    pub fn of_partition_mut(&mut self, index: u32) -> impl Iterator<Item = &mut PartitionGroup> {
        let around = self.around(index);
        self.groups[around].iter_mut().filter(move |group| group.partitions.indices().contains(&index))
    }

    /// The groups that begin near enough to a partition to contain it: of groups that tile the
    /// partitions never more than a few.
    fn around(&self, index: u32) -> Range<usize> {
        let starts_before =
            |limit: u64| self.groups.partition_point(|group| u64::from(group.partitions.start) < limit);
        let next = u64::from(index) + 1;
        starts_before(next.saturating_sub(self.longest))..starts_before(next)
    }
}

fn length(range: IndexRange) -> u64 {
    (u64::from(range.end) + 1).saturating_sub(u64::from(range.start))
}

/// Sums from which the available partitions of any range follow.
struct Missing {
    /// Available partitions before each index.
    available: Vec<u64>,
}

impl Missing {
    fn of(available: &[bool]) -> Self {
        let mut sums = vec![0];
        sums.extend(available.iter().scan(0, |sum, &is_available| {
            *sum += u64::from(is_available);
            Some(*sum)
        }));
        Self { available: sums }
    }

    fn within(&self, range: IndexRange) -> u32 {
        let before = |index: u64| self.available[(index as usize).min(self.available.len() - 1)];
        let available = before(u64::from(range.end) + 1).saturating_sub(before(u64::from(range.start)));
        u32::try_from(length(range) - available).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(ranges: &[(u32, u32)], available: &[bool]) -> InputGate {
        let ranges = ranges.iter().map(|&(start, end)| Some(IndexRange::new(start, end)));
        InputGate::new(ranges, available, |subtask| subtask == 0)
    }

    fn readers(gate: &InputGate, partition: u32) -> Vec<u32> {
        let mut readers: Vec<u32> =
            gate.of_partition(partition).flat_map(|group| group.consumers.iter().copied()).collect();
        readers.sort_unstable();
        readers
    }

    #[test]
    fn subtasks_that_read_the_same_are_one_group() {
        let gate = gate(&[(0, 2), (0, 2), (0, 2)], &[true, false, true]);
        assert_eq!(gate.groups.len(), 1);
        let group = gate.of_subtask(1).unwrap();
        assert_eq!((group.missing, group.unfinished), (1, 2));
        assert_eq!(readers(&gate, 2), [0, 1, 2]);
        assert_eq!(readers(&gate, 3), [0; 0]);
    }

    #[test]
    fn readers_are_found_also_where_ranges_overlap() {
        let gate = gate(&[(4, 5), (0, 3), (0, 0), (2, 2), (9, 20)], &[true; 6]);
        for partition in 0..22 {
            let ranges = [(4, 5), (0, 3), (0, 0), (2, 2), (9, 20)];
            let expected = (0..).zip(ranges).filter(|&(_, (from, to))| (from..=to).contains(&partition));
            assert_eq!(readers(&gate, partition), expected.map(|(i, _)| i).collect::<Vec<u32>>());
        }
        assert_eq!(gate.of_subtask(1).unwrap().missing, 0);
        assert_eq!(gate.of_subtask(4).unwrap().missing, 12);
    }

    #[test]
    fn a_subtask_without_ranges_has_no_group() {
        let range = IndexRange::new(0, u32::MAX);
        let gate = InputGate::new([None, Some(range)].into_iter(), &[], |_| false);
        assert_eq!(gate.of_subtask(0), None);
        assert_eq!(gate.of_subtask(2), None);
        assert_eq!(gate.of_subtask(1).unwrap().missing, u32::MAX);
    }
}
