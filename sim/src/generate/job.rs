//! The job: a plan of drawn shape, or one of the other jobs that come with the program; and its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use revenant::api::Program;
use revenant::config::JobArguments;

use super::data;
use super::plan::{OPERATIONS, PlanShape, SINKS, SourceShape, StageShape, WAYS};
use super::stream::Stream;
use crate::scenario::{Arguments, Input, Job};

/// With more records of sources, rows keep a hash of what they are made of, and no ids.
const SMALL: usize = 100;

pub fn draw(draws: &mut Stream, of_data: &mut Stream, program: &Arc<Program>) -> (Job, Vec<Input>) {
    match draws.below(10) {
        0 => word_count(draws, of_data),
        1 => (line_items(draws, true), Vec::new()),
        2 => (line_items(draws, false), Vec::new()),
        _ => dataflow(draws, of_data, program),
    }
}

fn job<const N: usize>(name: &str, arguments: [(&str, String); N]) -> Job {
    let arguments = arguments.map(|(name, value)| (name.to_owned(), value));
    Job { name: name.to_owned(), arguments: Arguments(BTreeMap::from(arguments)) }
}

fn word_count(draws: &mut Stream, of_data: &mut Stream) -> (Job, Vec<Input>) {
    let arguments = [
        ("input", "in".to_owned()),
        ("split-bytes", draws.one_of(&[7, 100, 1 << 20]).to_string()),
        ("source-parallelism", draws.between(1, 8).to_string()),
    ];
    (job("word-count", arguments), data::words(of_data, "in"))
}

fn line_items(draws: &mut Stream, totals: bool) -> Job {
    let (splits, parallelism) = (draws.between(1, 10), draws.between(1, 8));
    let mut job = job(
        if totals { "lineitem-totals" } else { "lineitem-by-ship-date" },
        [
            ("scale-factor", "0.0001".to_owned()),
            ("splits", splits.to_string()),
            ("source-parallelism", parallelism.to_string()),
            ("quantity-below", draws.one_of(&[1, 5, 24]).to_string()),
        ],
    );
    if !totals && draws.one_in(2) {
        job.arguments.0.insert("map-parallelism".to_owned(), draws.between(1, 8).to_string());
        job.arguments.0.insert("sort-parallelism".to_owned(), draws.between(1, 8).to_string());
    }
    job
}

fn dataflow(draws: &mut Stream, of_data: &mut Stream, program: &Arc<Program>) -> (Job, Vec<Input>) {
    let sources = draws.between(1, 3);
    let mut inputs = Vec::new();
    let parallelism = |draws: &mut Stream| {
        if draws.one_in(2) { Some(draws.between(1, 8)) } else { None }
    };
    let mut records = 0;
    let mut source = |number: u32| SourceShape {
        words: source(draws, of_data, number, &mut inputs, &mut records),
        is_static: draws.one_in(2),
        parallelism: parallelism(draws),
    };
    let sources = (0..sources).map(&mut source).collect();
    let stages = draws.between(1, 6);
    let stage = |_| StageShape {
        operation: draws.one_of(&OPERATIONS),
        inputs: [draws.below(64) as usize, draws.below(64) as usize],
        both: draws.one_in(3),
        per_key: draws.one_in(2),
        ways: [draws.one_of(&WAYS), draws.one_of(&WAYS)],
        parallelism: parallelism(draws),
        is_written: draws.one_in(3),
        sink: draws.one_of(&SINKS),
    };
    let stages = (0..stages).map(stage).collect();
    let lineage = if records > SMALL { "hash" } else { "ids" };
    let shape = PlanShape { lineage, sources, stages };
    let text = shape.text();
    let arguments = vec![("plan".to_owned(), text.clone())];
    let given = JobArguments { name: "dataflow".to_owned(), arguments };
    // Then a forward is between different parallelisms, and nothing else can be wrong.
    let text = if program.build(&given).is_err() { text.replace("forward", "rebalance") } else { text };
    (job("dataflow", [("plan", text)]), inputs)
}

/// The words of a source; adds its files, and how many records it has at most.
fn source(
    draws: &mut Stream,
    of_data: &mut Stream,
    number: u32,
    inputs: &mut Vec<Input>,
    records: &mut usize,
) -> String {
    let files = inputs.len();
    let keys = draws.one_of(&[1, 7, 1000]);
    let (rows, splits) = (draws.one_of(&[0_usize, 1, 20, 60, 300]), draws.between(1, 7));
    let split_bytes = draws.one_of(&[16, 100, 1 << 20]);
    let places = format!("rows={rows} splits={splits} keys={keys}");
    let directory = format!("in-{number}");
    let snapshots = if draws.one_in(4) { " snapshots=false" } else { "" };
    let words = match draws.below(8) {
        0 => format!("kind=collection {places}"),
        1 => format!("kind=sequence {places}{snapshots}"),
        2 => {
            inputs.extend(data::rows(of_data, &directory, 100 + u64::from(number), false));
            format!("kind=csv path={directory} split-bytes={split_bytes}")
        }
        3 => {
            inputs.extend(data::rows(of_data, &directory, 100 + u64::from(number), true));
            format!("kind=json-lines path={directory} split-bytes={split_bytes}")
        }
        4 => {
            inputs.extend(data::words(of_data, &directory));
            format!("kind=text path={directory} split-bytes={split_bytes} keys={keys}")
        }
        _ => format!("{places}{snapshots}"),
    };
    let lines = |file: &Input| file.text.lines().count() * file.repeat as usize;
    let of_files: usize = inputs[files..].iter().map(lines).sum();
    *records += if words.contains("rows=") { rows } else { of_files };
    words
}
