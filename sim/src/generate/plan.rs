//! The text of a plan of the job `dataflow` from a shape: sources, stages behind them, and a sink for
//! whatever nobody uses. A shape always makes sense, except that a forward may be between different
//! parallelisms.

use std::fmt::Write as _;

#[derive(Clone, Debug)]
pub struct PlanShape {
    /// How lineages are kept.
    pub lineage: &'static str,
    pub sources: Vec<SourceShape>,
    pub stages: Vec<StageShape>,
}

#[derive(Clone, Debug)]
pub struct SourceShape {
    /// `rows=7 splits=2`, or another kind with its options.
    pub words: String,
    pub is_static: bool,
    pub parallelism: Option<u32>,
}

/// A stage behind the sources.
#[allow(clippy::struct_excessive_bools, reason = "each is a dimension of its own")]
#[derive(Clone, Debug)]
pub struct StageShape {
    pub operation: &'static str,
    /// Of the stages before it, modulo their number.
    pub inputs: [usize; 2],
    pub both: bool,
    /// Where the operation knows that.
    pub per_key: bool,
    pub ways: [&'static str; 2],
    pub parallelism: Option<u32>,
    pub is_written: bool,
    /// What it is written as, if it is.
    pub sink: &'static str,
}

pub const WAYS: [&str; 7] = ["forward", "hash", "rebalance", "rescale", "shuffle", "custom", "broadcast"];

pub const LINEAGES: [&str; 2] = ["ids", "hash"];

pub const SINKS: [&str; 4] = ["csv", "json-lines", "collect", "print"];

pub const OPERATIONS: [&str; 11] = [
    "map",
    "filter",
    "skew",
    "join",
    "group",
    "sort",
    "sort by=value",
    "sort order=descending",
    "count",
    "reduce",
    "first 3 of",
];

impl StageShape {
    fn is_per_key(&self) -> bool {
        self.per_key && ["sort", "count", "reduce", "first"].iter().any(|has| self.operation.starts_with(has))
    }
}

impl PlanShape {
    pub fn text(&self) -> String {
        let mut plan = format!("lineage = {}\n", self.lineage);
        let mut names = Vec::new();
        let set =
            |parallelism: Option<u32>| parallelism.map_or_else(String::new, |p| format!(" parallelism={p}"));
        for (number, source) in self.sources.iter().enumerate() {
            let assignment = if source.is_static { "static" } else { "dynamic" };
            let parallelism = set(source.parallelism);
            let _ =
                writeln!(plan, "s{number} = source {} assignment={assignment}{parallelism}", source.words);
            names.push((format!("s{number}"), true, SINKS[number % SINKS.len()]));
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let per_key = stage.is_per_key();
            let two = stage.both || stage.operation == "join";
            let [first, second] = stage.inputs.map(|input| names[input % names.len()].0.clone());
            let ways = match stage.operation {
                "join" if stage.both => ["hash", "hash"],
                "join" => ["broadcast", stage.ways[1]],
                "group" => ["hash", "hash"],
                _ if per_key => ["hash", "hash"],
                _ => stage.ways,
            };
            let (inputs, ways) =
                if two { (format!("{first} {second}"), ways.join(",")) } else { (first, ways[0].to_owned()) };
            let (operation, options) = match stage.operation.split_once(' ') {
                Some((operation, option)) if option.contains('=') => (operation, format!(" {option}")),
                _ => (stage.operation, String::new()),
            };
            let (parallelism, per) = (set(stage.parallelism), if per_key { " per=key" } else { "" });
            let _ = writeln!(plan, "n{number} = {operation} {inputs} via {ways}{options}{per}{parallelism}");
            names.push((format!("n{number}"), stage.is_written, stage.sink));
        }
        // Whatever nobody uses must be written.
        for (name, is_written, sink) in names {
            let is_used = plan.split_whitespace().filter(|word| *word == name).count() > 1;
            if is_written || !is_used {
                let kind = if sink == "csv" { String::new() } else { format!(" kind={sink}") };
                let _ = writeln!(plan, "o-{name} = sink {name}{kind}");
            }
        }
        plan
    }
}
