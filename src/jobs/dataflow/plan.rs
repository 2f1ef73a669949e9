//! The text of a plan: one stage a line, or several with `;` between them; `#` begins a comment.
//! Decides whether a text is a plan, and says of a wrong one which line is wrong and what would be
//! right. What a plan means is described where the job is built.

use crate::api::Order;
use crate::config::MAX_PARALLELISM;

use super::lineage::Keeps;
use super::source::SourceOptions;

mod source;
mod words;

use words::{Clauses, Options, meant, shown};

/// What is wrong, with line and stage, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct PlanError(String);

/// Stages, each after those that it uses. There is a sink, and every other stage is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub stages: Vec<Stage>,
    /// How lineages are kept.
    pub keeps: Keeps,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub name: String,
    pub operation: Operation,
    /// Two for a join, none for a source, at least one for all others.
    pub inputs: Vec<Input>,
    /// Of each key for itself, instead of each subtask.
    pub per_key: bool,
    pub parallelism: Option<u32>,
    pub max_parallelism: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Source(SourceOptions),
    Map,
    Filter,
    Skew,
    Join,
    Group,
    Sort {
        by_value: bool,
        order: Order,
    },
    Count,
    Reduce,
    /// How many rows.
    First(u32),
    Sink(SinkKind),
}

/// What a sink writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkKind {
    Csv,
    JsonLines,
    /// Records for who runs the job.
    Collect,
    /// Lines for who runs the job.
    Print,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// Index of an earlier stage, which is no sink.
    pub stage: usize,
    pub via: Via,
}

/// How rows travel to a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Forward,
    Hash,
    Rebalance,
    Rescale,
    Shuffle,
    Custom,
    Broadcast,
}

/// Chains are built by recursion.
const MAX_STAGES: usize = 256;
const MAX_INPUTS: usize = 64;
const MAX_NAME: usize = 64;
const MAX_ROWS: u32 = 1_000_000_000;

/// No name of a stage: its line says how lineages are kept.
const LINEAGE: &str = "lineage";

const OPERATIONS: [&str; 11] =
    ["source", "map", "filter", "skew", "join", "group", "sort", "count", "reduce", "first", "sink"];

const VIAS: [(&str, Via); 7] = [
    ("forward", Via::Forward),
    ("hash", Via::Hash),
    ("rebalance", Via::Rebalance),
    ("rescale", Via::Rescale),
    ("shuffle", Via::Shuffle),
    ("custom", Via::Custom),
    ("broadcast", Via::Broadcast),
];

impl Plan {
    pub(super) fn parse(text: &str) -> Result<Self, PlanError> {
        let (lines, keeps) = lines(text)?;
        let mut reader = Reader { lines: &lines, stages: Vec::new(), resolved: Vec::new() };
        for line in &lines {
            reader.add(line).map_err(|problem| line.error(&problem))?;
        }
        let stages = reader.stages;
        if lines.is_empty() {
            return Err(PlanError(
                "the plan has no stage; the smallest is 'a = source rows=10; b = sink a'".to_owned(),
            ));
        }
        for (index, (line, stage)) in lines.iter().zip(&stages).enumerate() {
            let used = stages.iter().flat_map(|stage| &stage.inputs).any(|input| input.stage == index);
            if !used && !matches!(stage.operation, Operation::Sink(_)) {
                let problem = "no stage uses its rows; end it with a sink, as in 'out = sink ";
                return Err(line.error(&format!("{problem}{}', or leave it out", line.name)));
            }
        }
        Ok(Self { stages, keeps })
    }
}

/// `name = words`.
struct Line<'a> {
    number: usize,
    name: &'a str,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn error(&self, problem: &str) -> PlanError {
        PlanError(format!("line {}, stage '{}': {problem}", self.number, self.name))
    }
}

/// The lines of stages, and what the line says that is none of a stage.
fn lines(text: &str) -> Result<(Vec<Line<'_>>, Keeps), PlanError> {
    let mut lines: Vec<Line> = Vec::new();
    let mut keeps = None;
    for (number, row) in (1..).zip(text.lines()) {
        let row = row.split('#').next().unwrap_or_default();
        for piece in row.split(';').map(str::trim).filter(|piece| !piece.is_empty()) {
            let wrong = |problem: String| PlanError(format!("line {number}: {problem}"));
            let Some((name, words)) = piece.split_once('=').map(|(name, words)| (name.trim(), words.trim()))
            else {
                return Err(wrong(format!(
                    "'{}' is no stage; expected '<name> = <operation> <inputs> …', for example 'b = map a'",
                    shown(piece)
                )));
            };
            if name == LINEAGE {
                let read = read_keeps(words, keeps.is_some()).map_err(wrong)?;
                keeps = Some(read);
                continue;
            }
            if !is_name(name) {
                return Err(wrong(format!(
                    "'{}' is no name of a stage; right are at most {MAX_NAME} letters, digits, '-' and '_', a \
                     letter first, but not 'via' or 'of'",
                    shown(name)
                )));
            }
            if let Some(earlier) = lines.iter().find(|line| line.name == name) {
                return Err(wrong(format!(
                    "there is a stage '{name}' already, in line {}; give each a name of its own",
                    earlier.number
                )));
            }
            if lines.len() == MAX_STAGES {
                return Err(wrong(format!("a plan has at most {MAX_STAGES} stages")));
            }
            lines.push(Line { number, name, words: words.split_whitespace().collect() });
        }
    }
    Ok((lines, keeps.unwrap_or(Keeps::Hash)))
}

fn read_keeps(words: &str, is_second: bool) -> Result<Keeps, String> {
    if is_second {
        return Err(format!("'{LINEAGE}' is said twice; say once how lineages are kept"));
    }
    match words {
        "ids" => Ok(Keeps::Ids),
        "hash" => Ok(Keeps::Hash),
        other => Err(format!(
            "'{LINEAGE} = {}' is not '{LINEAGE} = ids' or '{LINEAGE} = hash'; a stage cannot have this name",
            shown(other)
        )),
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !matches!(text, "via" | "of")
}

/// What is known of the parallelism of a stage before the job runs; forward edges hand it on.
#[derive(Clone, Copy)]
struct Resolved {
    parallelism: Option<u32>,
    max_parallelism: Option<u32>,
}

/// Reads line after line, and knows what came before.
struct Reader<'a> {
    lines: &'a [Line<'a>],
    stages: Vec<Stage>,
    resolved: Vec<Resolved>,
}

impl<'a> Reader<'a> {
    fn add(&mut self, line: &Line<'a>) -> Result<(), String> {
        let Some((&operation, words)) = line.words.split_first() else {
            return Err(format!("it says no operation; there are: {}", OPERATIONS.join(", ")));
        };
        let clauses = Clauses::of(words)?;
        let mut options = Options::of(clauses.options)?;
        let mut inputs = clauses.inputs;
        let parallelism = options.number("parallelism", 1, MAX_PARALLELISM)?;
        // The API has no such bound for sinks.
        let max_parallelism =
            if operation == "sink" { None } else { options.number("max-parallelism", 1, MAX_PARALLELISM)? };
        let operation = match operation {
            "source" => Operation::Source(source::read(&mut options)?),
            "map" => Operation::Map,
            "filter" => Operation::Filter,
            "skew" => Operation::Skew,
            "join" => Operation::Join,
            "group" => Operation::Group,
            "sort" => sort(&mut options)?,
            "count" => Operation::Count,
            "reduce" => Operation::Reduce,
            "first" => Operation::First(first(&mut inputs)?),
            "sink" => Operation::Sink(sink(&mut options)?),
            unknown => {
                let (meant, all) = (meant(unknown, OPERATIONS), OPERATIONS.join(", "));
                return Err(format!("unknown operation '{}'{meant}; there are: {all}", shown(unknown)));
            }
        };
        let per_key = match operation {
            Operation::Sort { .. } | Operation::Count | Operation::Reduce | Operation::First(_) => {
                options.one_of("per", &[("subtask", false), ("key", true)])?.unwrap_or(false)
            }
            _ => false,
        };
        options.refuse_rest()?;
        let inputs = self.inputs(line, &operation, &inputs, clauses.via.as_deref())?;
        if let (Some(parallelism), Some(max)) = (parallelism, max_parallelism)
            && parallelism > max
        {
            return Err(format!(
                "its parallelism {parallelism} is above its maximum {max}; set only one of them"
            ));
        }
        let name = line.name.to_owned();
        let stage = Stage { name, operation, inputs, per_key, parallelism, max_parallelism };
        check_ways(&stage)?;
        self.resolved.push(self.resolve(&stage)?);
        self.stages.push(stage);
        Ok(())
    }

    fn inputs(
        &self,
        line: &Line,
        operation: &Operation,
        names: &[&str],
        via: Option<&str>,
    ) -> Result<Vec<Input>, String> {
        let count = names.len();
        match operation {
            Operation::Source(_) if count > 0 || via.is_some() => {
                return Err("a source has no inputs; right is for example 'a = source rows=10'".to_owned());
            }
            Operation::Join if count != 2 => {
                return Err(format!(
                    "a join has two inputs, not {count}; right is for example 'c = join a b via broadcast,forward'"
                ));
            }
            Operation::Source(_) | Operation::Join => {}
            _ if count == 0 => {
                return Err(
                    "it has no input; right is for example 'b = map a' or 'b = first 3 of a'".to_owned()
                );
            }
            _ if count > MAX_INPUTS => {
                return Err(format!("it has {count} inputs, at most {MAX_INPUTS} are right"));
            }
            _ => {}
        }
        let ways: Vec<Via> = match via {
            None => vec![Via::Forward; count],
            Some(via) => via.split(',').map(|way| parse_via(way.trim())).collect::<Result<_, _>>()?,
        };
        if ways.len() != count {
            return Err(format!(
                "it has {count} inputs, but 'via' says {}; it says one for each, with ',' between them",
                ways.len()
            ));
        }
        names.iter().zip(ways).map(|(name, via)| Ok(Input { stage: self.input(line, name)?, via })).collect()
    }

    /// The index of the stage that is used.
    fn input(&self, line: &Line, name: &str) -> Result<usize, String> {
        let Some(index) = self.lines.iter().position(|line| line.name == name) else {
            let meant = meant(name, self.stages.iter().map(|stage| stage.name.as_str()));
            return Err(format!("there is no stage '{}'{meant}", shown(name)));
        };
        if name == line.name {
            return Err("it uses itself; a stage uses stages above it".to_owned());
        }
        match self.stages.get(index) {
            None => Err(format!(
                "it uses '{name}', which comes later, in line {}; a stage uses stages above it",
                self.lines[index].number
            )),
            Some(Stage { operation: Operation::Sink(_), .. }) => {
                Err(format!("it uses '{name}', which is a sink and has no results; use the sink's input"))
            }
            Some(_) => Ok(index),
        }
    }

    /// The parallelism, by the same rule as the job graph's; an error says where forward cannot be.
    fn resolve(&self, stage: &Stage) -> Result<Resolved, String> {
        let own = Resolved { parallelism: stage.parallelism, max_parallelism: stage.max_parallelism };
        let forwarded: Vec<usize> =
            stage.inputs.iter().filter(|input| input.via == Via::Forward).map(|input| input.stage).collect();
        let Some((&first, others)) = forwarded.split_first() else { return Ok(own) };
        let wanted = stage.parallelism.or(self.resolved[first].parallelism);
        for &producer in &forwarded {
            let found = self.resolved[producer].parallelism;
            let alone = stage.parallelism.is_none() && others.is_empty();
            if !alone && (found.is_none() || found != wanted) {
                return Err(format!(
                    "forward joins subtasks of equal numbers, but '{}' has {} and this stage has {}; give both the \
                     same, or use hash, rebalance or rescale",
                    self.stages[producer].name,
                    people(found),
                    people(wanted)
                ));
            }
        }
        if stage.parallelism.is_some() {
            return Ok(own);
        }
        let inherited = self.resolved[first];
        if let Some(max) = stage.max_parallelism
            && inherited.parallelism.or(inherited.max_parallelism).is_none_or(|bound| bound > max)
        {
            return Err(format!(
                "with forward it has the parallelism of '{}', which may be above its max-parallelism {max}; use \
                 another exchange or leave max-parallelism out",
                self.stages[first].name
            ));
        }
        Ok(inherited)
    }
}

fn people(parallelism: Option<u32>) -> String {
    parallelism.map_or_else(|| "a parallelism to be decided".to_owned(), |p| format!("parallelism {p}"))
}

fn parse_via(word: &str) -> Result<Via, String> {
    VIAS.iter().find(|(name, _)| *name == word).map(|(_, via)| *via).ok_or_else(|| {
        let names = VIAS.map(|(name, _)| name);
        format!("unknown exchange '{}'{}; there are: {}", shown(word), meant(word, names), names.join(", "))
    })
}

/// Exchanges that would make the operation wrong.
fn check_ways(stage: &Stage) -> Result<(), String> {
    match (&stage.operation, stage.inputs.as_slice()) {
        (Operation::Group, inputs) => {
            let right = |input: &Input| matches!(input.via, Via::Hash | Via::Custom | Via::Forward);
            if inputs.iter().all(right) {
                return Ok(());
            }
            Err("a group needs all rows of a key in one subtask, each once: via hash or custom, or via forward \
                 behind one of them"
                .to_owned())
        }
        (Operation::Join, [first, second]) => match (first.via, second.via) {
            (Via::Broadcast, _) | (Via::Hash, Via::Hash) => Ok(()),
            _ => {
                Err("a join needs all rows of the first input that have the key of a row of the second: via \
                      broadcast,<any exchange> or via hash,hash"
                    .to_owned())
            }
        },
        (_, inputs) if stage.per_key && inputs.iter().any(|input| input.via != Via::Hash) => {
            Err("per=key is for rows that come via hash".to_owned())
        }
        _ => Ok(()),
    }
}

/// `3 of` before the inputs.
fn first(words: &mut Vec<&str>) -> Result<u32, String> {
    let count = match words.as_slice() {
        [count, "of", ..] => count.parse().ok().filter(|count| *count <= MAX_ROWS),
        _ => None,
    };
    let count = count.ok_or_else(|| {
        format!(
            "right is 'first <rows> of <inputs> …' with rows from 0 to {MAX_ROWS}, for example 'first 3 of a'"
        )
    })?;
    words.drain(..2);
    Ok(count)
}

fn sort(options: &mut Options) -> Result<Operation, String> {
    let orders = [("ascending", Order::Ascending), ("descending", Order::Descending)];
    Ok(Operation::Sort {
        by_value: options.one_of("by", &[("key", false), ("value", true)])?.unwrap_or(false),
        order: options.one_of("order", &orders)?.unwrap_or(Order::Ascending),
    })
}

fn sink(options: &mut Options) -> Result<SinkKind, String> {
    let kinds = [
        ("csv", SinkKind::Csv),
        ("json-lines", SinkKind::JsonLines),
        ("collect", SinkKind::Collect),
        ("print", SinkKind::Print),
    ];
    Ok(options.one_of("kind", &kinds)?.unwrap_or(SinkKind::Csv))
}

#[cfg(test)]
mod tests;
