//! The text of a plan: one stage a line, or several with `;` between them; `#` begins a comment.
//! Decides whether a text is a plan, and says of a wrong one which line is wrong and what would be
//! right. What a plan means is described where the job is built.

use crate::api::Order;
use crate::config::{MAX_PARALLELISM, nearest};
use crate::coordinator::SplitAssignment;

use super::source::SourceOptions;

/// What is wrong, with line and stage, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct PlanError(String);

/// Stages, each after those that it uses. There is a sink, and every other stage is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub stages: Vec<Stage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub name: String,
    pub operation: Operation,
    /// Two for a join, none for a source, at least one for all others.
    pub inputs: Vec<Input>,
    pub parallelism: Option<u32>,
    pub max_parallelism: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Source(SourceOptions),
    Map,
    Filter,
    Join,
    Group,
    Sort(Order),
    Count,
    Reduce,
    /// How many rows.
    First(u32),
    Sink,
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
    Broadcast,
}

/// Chains are built by recursion.
const MAX_STAGES: usize = 256;
const MAX_INPUTS: usize = 64;
const MAX_NAME: usize = 64;
const MAX_ROWS: u32 = 1_000_000_000;
const MAX_SPLITS: u32 = 10_000;
const MAX_KEYS: u32 = 1_000_000;

const OPERATIONS: [&str; 10] =
    ["source", "map", "filter", "join", "group", "sort", "count", "reduce", "first", "sink"];

const VIAS: [(&str, Via); 5] = [
    ("forward", Via::Forward),
    ("hash", Via::Hash),
    ("rebalance", Via::Rebalance),
    ("rescale", Via::Rescale),
    ("broadcast", Via::Broadcast),
];

impl Plan {
    pub(super) fn parse(text: &str) -> Result<Self, PlanError> {
        let lines = lines(text)?;
        let mut stages = Stages { lines: &lines, stages: Vec::new(), resolved: Vec::new() };
        for line in &lines {
            stages.add(line).map_err(|problem| line.error(&problem))?;
        }
        let stages = stages.stages;
        if lines.is_empty() {
            return Err(PlanError(
                "the plan has no stage; the smallest is 'a = source rows=10; b = sink a'".to_owned(),
            ));
        }
        for (index, (line, stage)) in lines.iter().zip(&stages).enumerate() {
            let used = stages.iter().flat_map(|stage| &stage.inputs).any(|input| input.stage == index);
            if !used && stage.operation != Operation::Sink {
                let problem = "no stage uses its rows; end it with a sink, as in 'out = sink ";
                return Err(line.error(&format!("{problem}{}', or leave it out", line.name)));
            }
        }
        Ok(Self { stages })
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

fn lines(text: &str) -> Result<Vec<Line<'_>>, PlanError> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, row) in (1..).zip(text.lines()) {
        let row = row.split('#').next().unwrap_or_default();
        for piece in row.split(';').map(str::trim).filter(|piece| !piece.is_empty()) {
            let wrong = |problem: String| PlanError(format!("line {number}: {problem}"));
            let Some((name, words)) = piece.split_once('=').map(|(name, words)| (name.trim(), words)) else {
                return Err(wrong(format!(
                    "'{}' is no stage; expected '<name> = <operation> <inputs> …', for example 'b = map a'",
                    shown(piece)
                )));
            };
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
    Ok(lines)
}

fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !matches!(text, "via" | "of")
}

/// The beginning of a text that may be long.
fn shown(text: &str) -> String {
    let end = text.char_indices().nth(40).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}

/// `, did you mean 'map'?`, if that is likely.
fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!(", did you mean '{near}'?"))
}

/// What is known of the parallelism of a stage before the job runs; forward edges hand it on.
#[derive(Clone, Copy)]
struct Resolved {
    parallelism: Option<u32>,
    max_parallelism: Option<u32>,
}

/// The stages so far.
struct Stages<'a> {
    lines: &'a [Line<'a>],
    stages: Vec<Stage>,
    resolved: Vec<Resolved>,
}

impl<'a> Stages<'a> {
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
            "source" => Operation::Source(source(&mut options)?),
            "map" => Operation::Map,
            "filter" => Operation::Filter,
            "join" => Operation::Join,
            "group" => Operation::Group,
            "sort" => Operation::Sort(
                options
                    .one_of("order", &[("ascending", Order::Ascending), ("descending", Order::Descending)])?
                    .unwrap_or(Order::Ascending),
            ),
            "count" => Operation::Count,
            "reduce" => Operation::Reduce,
            "first" => Operation::First(first(&mut inputs)?),
            "sink" => Operation::Sink,
            unknown => {
                let (meant, all) = (meant(unknown, OPERATIONS), OPERATIONS.join(", "));
                return Err(format!("unknown operation '{}'{meant}; there are: {all}", shown(unknown)));
            }
        };
        options.refuse_rest()?;
        let inputs = self.inputs(line, operation, &inputs, clauses.via.as_deref())?;
        if let (Some(parallelism), Some(max)) = (parallelism, max_parallelism)
            && parallelism > max
        {
            return Err(format!(
                "its parallelism {parallelism} is above its maximum {max}; set only one of them"
            ));
        }
        let stage = Stage { name: line.name.to_owned(), operation, inputs, parallelism, max_parallelism };
        check_ways(&stage)?;
        self.resolved.push(self.resolve(&stage)?);
        self.stages.push(stage);
        Ok(())
    }

    fn inputs(
        &self,
        line: &Line,
        operation: Operation,
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
            Some(Stage { operation: Operation::Sink, .. }) => {
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
    match (stage.operation, stage.inputs.as_slice()) {
        (Operation::Group, inputs) => {
            let right = |input: &Input| matches!(input.via, Via::Hash | Via::Forward);
            if inputs.iter().all(right) {
                return Ok(());
            }
            Err("a group needs all rows of a key in one subtask, each once: via hash, or via forward behind a hash"
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
        _ => Ok(()),
    }
}

/// The parts of a stage behind its operation.
struct Clauses<'a> {
    inputs: Vec<&'a str>,
    via: Option<String>,
    options: &'a [&'a str],
}

impl<'a> Clauses<'a> {
    fn of(words: &'a [&'a str]) -> Result<Self, String> {
        let options_at = words.iter().position(|word| word.contains('=')).unwrap_or(words.len());
        let (words, options) = words.split_at(options_at);
        let Some(via_at) = words.iter().position(|word| *word == "via") else {
            return Ok(Self { inputs: words.to_vec(), via: None, options });
        };
        let (inputs, via) = words.split_at(via_at);
        let via = via[1..].join(" ");
        if via.is_empty() {
            return Err("'via' says no exchange; right is for example 'via hash' or 'via broadcast,forward'"
                .to_owned());
        }
        Ok(Self { inputs: inputs.to_vec(), via: Some(via), options })
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

fn source(options: &mut Options) -> Result<SourceOptions, String> {
    let rows = options.number("rows", 0, MAX_ROWS)?;
    Ok(SourceOptions {
        rows: rows.ok_or("a source says how many rows it has, for example 'rows=100'")?,
        splits: options.number("splits", 1, MAX_SPLITS)?.unwrap_or(4),
        keys: options.number("keys", 1, MAX_KEYS)?.unwrap_or(16),
        assignment: options
            .one_of(
                "assignment",
                &[("static", SplitAssignment::Static), ("dynamic", SplitAssignment::Dynamic)],
            )?
            .unwrap_or(SplitAssignment::Dynamic),
        snapshots: options.one_of("snapshots", &[("true", true), ("false", false)])?.unwrap_or(true),
    })
}

/// `name=value` words: taken one by one, and refused when nobody took them.
struct Options<'a> {
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    fn of(words: &[&'a str]) -> Result<Self, String> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for &word in words {
            let option = word.split_once('=').ok_or_else(|| {
                format!("'{}' stands behind an option; options come last, as <name>=<value>", shown(word))
            })?;
            if given.iter().any(|(name, _)| *name == option.0) {
                return Err(format!("option '{}' is given twice", shown(option.0)));
            }
            given.push(option);
        }
        Ok(Self { given, known: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        let index = self.given.iter().position(|(given, _)| *given == name)?;
        Some(self.given.swap_remove(index).1)
    }

    fn number(&mut self, name: &'static str, min: u32, max: u32) -> Result<Option<u32>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(format!("{name}={} is not a whole number from {min} to {max}", shown(text))),
        }
    }

    fn one_of<T: Copy>(&mut self, name: &'static str, values: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let value = values.iter().find(|(value, _)| *value == text).map(|(_, value)| *value);
        value.map(Some).ok_or_else(|| {
            let right: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
            format!("{name}={} is not {}", shown(text), right.join(" or "))
        })
    }

    fn refuse_rest(&self) -> Result<(), String> {
        let Some((name, _)) = self.given.first() else { return Ok(()) };
        let (meant, known) = (meant(name, self.known.iter().copied()), self.known.join(", "));
        Err(format!("unknown option '{}'{meant}; it takes: {known}", shown(name)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Plan::parse(text).unwrap_err().to_string()
    }

    /// Of a stage behind a source `a` with parallelism 4 and a source `b` without.
    fn error_behind_sources(stage: &str) -> String {
        let error = error(&format!("a = source rows=9 parallelism=4; b = source rows=9\n{stage}"));
        error.strip_prefix("line 2, stage 'x': ").unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    #[test]
    fn a_plan_is_read_with_all_that_it_says() {
        let plan = Plan::parse(
            "# Two inputs.
             a = source rows=12 splits=3 keys=5 parallelism=2 assignment=static snapshots=false
             b = source rows=0 max-parallelism=7; c = join a b via broadcast, hash parallelism=3
             d = sort c order=descending   # forward
             e = first 3 of d a via rebalance,rescale
             out = sink e via hash parallelism=1",
        )
        .unwrap();
        let source = SourceOptions {
            rows: 12,
            splits: 3,
            keys: 5,
            assignment: SplitAssignment::Static,
            snapshots: false,
        };
        let defaults = SourceOptions {
            rows: 0,
            splits: 4,
            keys: 16,
            assignment: SplitAssignment::Dynamic,
            snapshots: true,
        };
        let stage = |name: &str, operation, inputs: &[(usize, Via)], parallelism, max_parallelism| Stage {
            name: name.to_owned(),
            operation,
            inputs: inputs.iter().map(|&(stage, via)| Input { stage, via }).collect(),
            parallelism,
            max_parallelism,
        };
        let (join, sort) = ([(0, Via::Broadcast), (1, Via::Hash)], Operation::Sort(Order::Descending));
        let first = [(3, Via::Rebalance), (0, Via::Rescale)];
        assert_eq!(
            plan.stages,
            [
                stage("a", Operation::Source(source), &[], Some(2), None),
                stage("b", Operation::Source(defaults), &[], None, Some(7)),
                stage("c", Operation::Join, &join, Some(3), None),
                stage("d", sort, &[(2, Via::Forward)], None, None),
                stage("e", Operation::First(3), &first, None, None),
                stage("out", Operation::Sink, &[(4, Via::Hash)], Some(1), None),
            ]
        );
    }

    #[test]
    fn a_wrong_line_is_named_with_what_would_be_right() {
        assert_eq!(
            error(" ;\n# nothing"),
            "the plan has no stage; the smallest is 'a = source rows=10; b = sink a'"
        );
        assert_eq!(
            error("a = source rows=1\nsink a"),
            "line 2: 'sink a' is no stage; expected '<name> = <operation> <inputs> …', for example 'b = map a'"
        );
        assert_eq!(
            error("a = source rows=1; a = sink a"),
            "line 1: there is a stage 'a' already, in line 1; give each a name of its own"
        );
        for name in ["", "1a", "a b", "via", "ä", &"a".repeat(65)] {
            let error = error(&format!("{name} = source rows=1"));
            assert!(error.contains("is no name of a stage; right are at most 64 letters"), "{error}");
        }
        let many: String = (0..300).map(|n| format!("a{n} = source rows=1\n")).collect();
        assert_eq!(error(&many), "line 257: a plan has at most 256 stages");
    }

    #[test]
    fn stages_that_lead_nowhere_are_refused() {
        assert_eq!(
            error("a = source rows=1"),
            "line 1, stage 'a': no stage uses its rows; end it with a sink, as in 'out = sink a', or leave it out"
        );
        let unused = error("a = source rows=1; b = map a\nc = sink a");
        assert!(unused.starts_with("line 1, stage 'b': no stage uses its rows"), "{unused}");
    }

    #[test]
    fn a_wrong_operation_or_option_is_named_with_what_would_be_right() {
        let all = "source, map, filter, join, group, sort, count, reduce, first, sink";
        assert_eq!(error_behind_sources("x = "), format!("it says no operation; there are: {all}"));
        assert_eq!(
            error_behind_sources("x = mapp a"),
            format!("unknown operation 'mapp', did you mean 'map'?; there are: {all}")
        );
        assert_eq!(
            error_behind_sources("x = map a paralelism=2"),
            "unknown option 'paralelism', did you mean 'parallelism'?; it takes: parallelism, max-parallelism"
        );
        assert_eq!(
            error_behind_sources("x = sink a max-parallelism=2"),
            "unknown option 'max-parallelism', did you mean 'parallelism'?; it takes: parallelism"
        );
        assert_eq!(error_behind_sources("x = sort a order=up"), "order=up is not ascending or descending");
        assert_eq!(
            error_behind_sources("x = map a parallelism=2 parallelism=2"),
            "option 'parallelism' is given twice"
        );
        for number in ["0", "32769", "-1", "", "2.0", "99999999999"] {
            assert_eq!(
                error_behind_sources(&format!("x = map a parallelism={number}")),
                format!("parallelism={number} is not a whole number from 1 to 32768")
            );
        }
        assert_eq!(
            error_behind_sources("x = map a via hash parallelism=4 max-parallelism=3"),
            "its parallelism 4 is above its maximum 3; set only one of them"
        );
        assert_eq!(
            error_behind_sources("x = map a parallelism=2 b"),
            "'b' stands behind an option; options come last, as <name>=<value>"
        );
        assert_eq!(
            error_behind_sources("x = source"),
            "a source says how many rows it has, for example 'rows=100'"
        );
        assert_eq!(
            error_behind_sources("x = first three of a"),
            "right is 'first <rows> of <inputs> …' with rows from 0 to 1000000000, for example 'first 3 of a'"
        );
    }

    #[test]
    fn a_wrong_input_is_named_with_what_would_be_right() {
        assert_eq!(
            error_behind_sources("x = source a rows=1"),
            "a source has no inputs; right is for example 'a = source rows=10'"
        );
        assert_eq!(
            error_behind_sources("x = join a"),
            "a join has two inputs, not 1; right is for example 'c = join a b via broadcast,forward'"
        );
        assert_eq!(
            error_behind_sources("x = count"),
            "it has no input; right is for example 'b = map a' or 'b = first 3 of a'"
        );
        assert_eq!(error_behind_sources("x = map x"), "it uses itself; a stage uses stages above it");
        assert_eq!(
            error_behind_sources("x = map y\ny = map a"),
            "it uses 'y', which comes later, in line 3; a stage uses stages above it"
        );
        assert_eq!(error_behind_sources("x = map zzz"), "there is no stage 'zzz'");
        let misspelt = error("numbers = source rows=1\nx = sink number");
        assert_eq!(misspelt, "line 2, stage 'x': there is no stage 'number', did you mean 'numbers'?");
        let behind_sink = error("a = source rows=1; b = sink a\nx = map b");
        assert!(
            behind_sink.ends_with("it uses 'b', which is a sink and has no results; use the sink's input")
        );
        assert_eq!(
            error_behind_sources(&format!("x = map {}", "a ".repeat(65))),
            "it has 65 inputs, at most 64 are right"
        );
    }

    #[test]
    fn a_wrong_exchange_is_named_with_what_would_be_right() {
        assert_eq!(
            error_behind_sources("x = map a via shuffle"),
            "unknown exchange 'shuffle'; there are: forward, hash, rebalance, rescale, broadcast"
        );
        assert_eq!(
            error_behind_sources("x = map a via"),
            "'via' says no exchange; right is for example 'via hash' or 'via broadcast,forward'"
        );
        assert_eq!(
            error_behind_sources("x = map a b via hash"),
            "it has 2 inputs, but 'via' says 1; it says one for each, with ',' between them"
        );
        for via in ["broadcast", "rebalance", "rescale"] {
            let error = error_behind_sources(&format!("x = group a via {via}"));
            assert!(error.starts_with("a group needs all rows of a key in one subtask"), "{error}");
        }
        for via in ["forward,forward", "hash,rebalance", "rebalance,hash"] {
            let error = error_behind_sources(&format!("x = join a a via {via}"));
            assert!(error.ends_with("via broadcast,<any exchange> or via hash,hash"), "{error}");
        }
    }

    #[test]
    fn forward_is_refused_where_the_numbers_of_subtasks_may_differ() {
        for (stage, has, own) in [
            ("x = map a parallelism=3", "'a' has parallelism 4", "parallelism 3"),
            ("x = map b parallelism=3", "'b' has a parallelism to be decided", "parallelism 3"),
            ("x = map a b", "'b' has a parallelism to be decided", "parallelism 4"),
            ("x = map b b", "'b' has a parallelism to be decided", "a parallelism to be decided"),
            ("x = sink a parallelism=1", "'a' has parallelism 4", "parallelism 1"),
        ] {
            let error = error_behind_sources(stage);
            let expected =
                format!("forward joins subtasks of equal numbers, but {has} and this stage has {own};");
            assert!(error.starts_with(&expected), "{stage}: {error}");
        }
        for stage in ["x = map a max-parallelism=3", "x = map b max-parallelism=9"] {
            let error = error_behind_sources(stage);
            assert!(error.starts_with("with forward it has the parallelism of '"), "{error}");
        }
        for stage in [
            "x = map a; y = map a x",
            "x = map a max-parallelism=4; y = sort x",
            "x = map b; y = sort x",
            "x = map b a via forward,hash; y = map x",
        ] {
            let text = format!(
                "a = source rows=1 parallelism=4; b = source rows=1; {stage}; o = sink y; p = sink a; q = sink b"
            );
            Plan::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = Plan::parse(&text);
        }

        /// Texts that are nearly plans.
        #[test]
        fn no_heap_of_words_makes_the_parser_panic(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "b", "ä", "=", ";", "\n", "#", ",", "via", "of", "first", "3", "source", "map", "join",
                    "group", "sort", "sink", "rows=3", "rows=", "=3", "parallelism=2", "max-parallelism=1",
                    "splits=0", "forward", "hash", "broadcast", "hash,hash", "order=ascending",
                ]),
                0..40,
            ),
        ) {
            let _ = Plan::parse(&words.join(" "));
        }
    }
}
