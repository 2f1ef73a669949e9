//! S4: the input ranges of a vertex's subtasks tile each of its inputs: every subpartition of every
//! partition is read by exactly one subtask. On a forward edge each subtask reads its own partition,
//! of a broadcast each subtask reads everything. On a POINTWISE edge a subtask reads either whole
//! partitions or a part of one.

use std::collections::{BTreeMap, BTreeSet};

use revenant::graph::Partitioner;
use revenant::message::IndexRange;

use super::history::Initialized;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    history.initialized.iter().try_for_each(|decision| {
        judge(history, decision).map_err(|message| history.violation("S4", decision.at, message))
    })
}

fn judge(history: &History, decision: &Initialized) -> Result<(), String> {
    let vertex = history.graph.vertex(decision.vertex);
    if decision.parallelism == 0 {
        return Err(format!("{} has no subtask", decision.vertex));
    }
    if vertex.inputs.is_empty() {
        return Ok(());
    }
    if decision.inputs.len() != decision.parallelism as usize {
        let subtasks = decision.inputs.len();
        return Err(format!(
            "{} has {} subtasks, ranges for {subtasks}",
            decision.vertex, decision.parallelism
        ));
    }
    for (gate, &data_set) in vertex.inputs.iter().enumerate() {
        let edge = history.graph.edge(data_set);
        let Some(producer) = history.initialized(edge.producer, decision.at) else {
            return Err(format!("{} was initialized before its producer {}", decision.vertex, edge.producer));
        };
        let ranges: Option<Vec<_>> = decision.inputs.iter().map(|gates| gates.get(gate).copied()).collect();
        let ranges =
            ranges.ok_or_else(|| format!("{} has a subtask without ranges of {data_set}", edge.consumer))?;
        let size = (producer.parallelism, history.shape.subpartitions(data_set, producer.parallelism));
        reads(edge.partitioner, &ranges, size)
            .map_err(|message| format!("ranges of {} over {data_set}: {message}", edge.consumer))?;
    }
    Ok(())
}

type Rectangle = (IndexRange, IndexRange);

/// Whether the subtasks read `partitions` × `subpartitions` as the exchange wants it.
fn reads(
    partitioner: Partitioner,
    ranges: &[Rectangle],
    (partitions, subpartitions): (u32, u32),
) -> Result<(), String> {
    let whole = IndexRange::new(0, subpartitions.saturating_sub(1));
    let all = (IndexRange::new(0, partitions.saturating_sub(1)), whole);
    let is_part = |(rows, columns): &Rectangle| rows.start == rows.end || *columns == whole;
    let wrong = |is_right: &dyn Fn(u32, &Rectangle) -> bool| {
        (0_u32..).zip(ranges).find_map(|(subtask, range)| (!is_right(subtask, range)).then_some(subtask))
    };
    if partitioner == Partitioner::Broadcast {
        return wrong(&|_, range| *range == all)
            .map_or(Ok(()), |subtask| Err(format!("subtask {subtask} does not read all of a broadcast")));
    }
    tiles(ranges, partitions, subpartitions)?;
    let own = |subtask, (rows, _): &Rectangle| *rows == IndexRange::new(subtask, subtask);
    let (wrong, what) = match partitioner {
        Partitioner::Forward => (wrong(&own), "its own partition"),
        Partitioner::Rescale => (wrong(&|_, range| is_part(range)), "whole partitions or a part of one"),
        Partitioner::Hash
        | Partitioner::Rebalance
        | Partitioner::Shuffle
        | Partitioner::Custom
        | Partitioner::Broadcast => (None, ""),
    };
    wrong.map_or(Ok(()), |subtask| Err(format!("subtask {subtask} does not read {what}")))
}

/// Whether the rectangles cover `partitions` × `subpartitions` without gap and overlap.
fn tiles(ranges: &[Rectangle], partitions: u32, subpartitions: u32) -> Result<(), String> {
    let mut area = 0;
    for (subtask, (rows, columns)) in ranges.iter().enumerate() {
        let outside = |range: &IndexRange, count| range.start > range.end || range.end >= count;
        if outside(rows, partitions) || outside(columns, subpartitions) {
            return Err(format!(
                "subtask {subtask} reads partitions {}..={} of {partitions}, subpartitions {}..={} of {subpartitions}",
                rows.start, rows.end, columns.start, columns.end
            ));
        }
        area += u64::from(rows.end - rows.start + 1) * u64::from(columns.end - columns.start + 1);
    }
    if let Some((one, other)) = overlap(ranges) {
        return Err(format!("subtasks {one} and {other} read the same"));
    }
    let all = u64::from(partitions) * u64::from(subpartitions);
    if area == all { Ok(()) } else { Err(format!("{area} of {all} subpartitions are read")) }
}

/// Two subtasks whose rectangles meet. Goes over the partitions and keeps the columns that are read of
/// the current one, so that thousands of subtasks are judged quickly.
fn overlap(ranges: &[Rectangle]) -> Option<(usize, usize)> {
    let mut by_start: Vec<usize> = (0..ranges.len()).collect();
    by_start.sort_by_key(|&subtask| ranges[subtask].0.start);
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    let mut ends: BTreeSet<(u32, usize)> = BTreeSet::new();
    for subtask in by_start {
        let (rows, columns) = ranges[subtask];
        while let Some(&(end, over)) = ends.first().filter(|(end, _)| *end < rows.start) {
            ends.remove(&(end, over));
            open.remove(&ranges[over].1.start);
        }
        // Open columns do not meet, so the last one that begins before these end also ends last.
        if let Some((_, &other)) = open.range(..=columns.end).next_back()
            && ranges[other].1.end >= columns.start
        {
            return Some((other.min(subtask), other.max(subtask)));
        }
        open.insert(columns.start, subtask);
        ends.insert((rows.end, subtask));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, caught, graph, passes, with_history_of};

    const ALL: IndexRange = IndexRange::new(0, 1);

    /// Judges what the sinks read of two partitions over another exchange: first and last partition,
    /// first and last subpartition of each subtask.
    fn judged(
        partitioner: Partitioner,
        parallelism: u32,
        ranges: &[(u32, u32, u32, u32)],
    ) -> Result<(), String> {
        let mut graph = graph(revenant::graph::Determinacy::Indeterminate);
        graph.edges[0].partitioner = partitioner;
        let rectangle = |&(from, to, first, last): &(u32, u32, u32, u32)| {
            vec![(IndexRange::new(from, to), IndexRange::new(first, last))]
        };
        let mut story = Story::new();
        story.run_sources();
        story.init(1, 1, parallelism, ranges.iter().map(rectangle).collect());
        with_history_of(&graph, &story, |history| check(history).map_err(|violation| violation.message))
    }

    #[test]
    fn ranges_that_tile_are_good() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        passes(check, &story);
    }

    #[test]
    fn a_gap_an_overlap_and_a_range_outside_are_caught() {
        for (last, message) in [
            (IndexRange::new(3, 3), "6 of 8 subpartitions are read"),
            (IndexRange::new(1, 3), "subtasks 0 and 1 read the same"),
            (IndexRange::new(2, 4), "subtask 1 reads partitions 0..=1 of 2, subpartitions 2..=4 of 4"),
        ] {
            let mut story = Story::new();
            story.run_sources();
            story.init(1, 1, 2, vec![vec![(ALL, IndexRange::new(0, 1))], vec![(ALL, last)]]);
            caught(check, &story, message);
        }
    }

    #[test]
    fn a_subtask_without_ranges_is_caught() {
        let mut story = Story::new();
        story.run_sources();
        story.init(1, 1, 2, vec![vec![(ALL, IndexRange::new(0, 3))]]);
        caught(check, &story, "v1 has 2 subtasks, ranges for 1");
    }

    #[test]
    fn a_subtask_that_does_not_read_all_of_a_broadcast_is_caught() {
        judged(Partitioner::Broadcast, 2, &[(0, 1, 0, 0), (0, 1, 0, 0)]).unwrap();
        // As a tiling this would do.
        let message = judged(Partitioner::Broadcast, 2, &[(0, 0, 0, 0), (1, 1, 0, 0)]).unwrap_err();
        assert!(message.ends_with("subtask 0 does not read all of a broadcast"), "{message}");
        judged(Partitioner::Broadcast, 2, &[(0, 1, 0, 0), (0, 1, 0, 1)]).unwrap_err();
    }

    #[test]
    fn a_forwarded_partition_of_another_is_caught() {
        judged(Partitioner::Forward, 2, &[(0, 0, 0, 0), (1, 1, 0, 0)]).unwrap();
        let message = judged(Partitioner::Forward, 2, &[(1, 1, 0, 0), (0, 0, 0, 0)]).unwrap_err();
        assert!(message.ends_with("subtask 0 does not read its own partition"), "{message}");
    }

    /// The sink has at most 4 subtasks, so 2 subpartitions fall to each of 2 producers.
    #[test]
    fn pointwise_ranges_with_a_gap_an_overlap_or_across_partitions_are_caught() {
        judged(Partitioner::Rescale, 2, &[(0, 0, 0, 1), (1, 1, 0, 1)]).unwrap();
        judged(Partitioner::Rescale, 1, &[(0, 1, 0, 1)]).unwrap();
        judged(Partitioner::Rescale, 3, &[(0, 0, 1, 1), (0, 0, 0, 0), (1, 1, 0, 1)]).unwrap();
        for (ranges, expected) in [
            (&[(0, 0, 0, 1), (1, 1, 0, 0)][..], "3 of 4 subpartitions are read"),
            (&[(0, 0, 0, 1), (0, 1, 1, 1)], "subtasks 0 and 1 read the same"),
            (
                &[(0, 0, 0, 1), (1, 1, 0, 2)],
                "subtask 1 reads partitions 1..=1 of 2, subpartitions 0..=2 of 2",
            ),
            (&[(0, 1, 0, 0), (0, 1, 1, 1)], "subtask 0 does not read whole partitions or a part of one"),
        ] {
            let message = judged(Partitioner::Rescale, ranges.len() as u32, ranges).unwrap_err();
            assert!(message.ends_with(expected), "{message}");
        }
    }

    #[test]
    fn an_overlap_is_found_wherever_it_is() {
        let range = IndexRange::new;
        let grid: Vec<Rectangle> = (0..6)
            .flat_map(|row| (0..6).map(move |column| (range(row, row), range(column, column))))
            .collect();
        assert_eq!(overlap(&grid), None);
        for (rows, columns) in
            [(range(0, 0), range(5, 7)), (range(3, 9), range(2, 2)), (range(5, 5), range(0, 9))]
        {
            for at in [0, 17, 36] {
                let mut ranges = grid.clone();
                ranges.insert(at, (rows, columns));
                let (one, other) = overlap(&ranges).unwrap();
                assert!(one == at || other == at);
            }
        }
    }
}
