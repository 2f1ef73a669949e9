//! S4: the input ranges of a vertex's subtasks tile each of its inputs: every subpartition of every
//! partition is read by exactly one subtask. On a forward edge each subtask reads its own partition.

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
        if edge.partitioner == Partitioner::Forward
            && let Some(subtask) = (0_u32..).zip(&ranges).find_map(|(subtask, (partitions, _))| {
                (*partitions != IndexRange::new(subtask, subtask)).then_some(subtask)
            })
        {
            return Err(format!("{}.{subtask} does not read its own partition of {data_set}", edge.consumer));
        }
        tiles(&ranges, producer.parallelism, history.shape.subpartitions[data_set.0 as usize])
            .map_err(|message| format!("ranges of {} over {data_set}: {message}", edge.consumer))?;
    }
    Ok(())
}

/// Whether the rectangles cover `partitions` × `subpartitions` without gap and overlap.
fn tiles(ranges: &[(IndexRange, IndexRange)], partitions: u32, subpartitions: u32) -> Result<(), String> {
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
        let meets = |a: &IndexRange, b: &IndexRange| a.start <= b.end && b.start <= a.end;
        if let Some(other) =
            ranges[..subtask].iter().position(|other| meets(&other.0, rows) && meets(&other.1, columns))
        {
            return Err(format!("subtasks {other} and {subtask} read the same"));
        }
    }
    let all = u64::from(partitions) * u64::from(subpartitions);
    if area == all { Ok(()) } else { Err(format!("{area} of {all} subpartitions are read")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    const ALL: IndexRange = IndexRange::new(0, 1);

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
}
