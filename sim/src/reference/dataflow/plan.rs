//! Reads a plan and says which vertex each stage runs in. The engine has refused wrong plans before;
//! here an error only says that this reader does not understand.

use std::collections::BTreeMap;
use std::str::FromStr;

use revenant::graph::{JobGraph, Partitioner};

use super::sink::SinkKind;
use crate::reference::lineage::Lineage;

/// The stages, and the lineage of no record, kept as the plan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub stages: Vec<Stage>,
    pub none: Lineage,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: String,
    pub operation: Operation,
    pub inputs: Vec<Input>,
    /// Each key for itself.
    pub per_key: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Index of an earlier stage.
    pub stage: usize,
    pub way: Partitioner,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    Source {
        /// Among the sources, from 0.
        number: u32,
        origin: Origin,
    },
    Map,
    Filter,
    Skew,
    Join,
    Group,
    Sort {
        by_value: bool,
        descending: bool,
    },
    Count,
    Reduce,
    First(usize),
    Sink(SinkKind),
}

/// Where a source has its rows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made from their places.
    Made {
        /// How many each split has.
        splits: Vec<u32>,
        keys: u32,
        /// All are of split 0, one behind the other.
        in_sequence: bool,
        /// Whether it is counted how many were read.
        counted: bool,
    },
    Files {
        format: Format,
        path: String,
        split_bytes: usize,
        keys: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
    Text,
}

pub fn read(text: &str) -> Result<Plan, String> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut none = Lineage::Hash { count: 0, sum: 0 };
    let without_comments = text.split('\n').map(|line| line.find('#').map_or(line, |at| &line[..at]));
    for piece in without_comments.flat_map(|line| line.split(';')) {
        let words = piece.replace('=', " = ");
        let words: Vec<&str> = words.split_whitespace().collect();
        if let ["lineage", "=", kept @ ..] = words.as_slice() {
            match kept {
                ["ids"] => none = Lineage::Ids(Vec::new()),
                ["hash"] => {}
                _ => return Err(format!("'{}' is not understood", piece.trim())),
            }
        } else if !words.is_empty() {
            let stage = stage(piece, &stages).map_err(|error| format!("'{}': {error}", piece.trim()))?;
            stages.push(stage);
        }
    }
    Ok(Plan { stages, none })
}

fn stage(piece: &str, before: &[Stage]) -> Result<Stage, String> {
    let (name, rest) = piece.split_once('=').ok_or("there is no '='")?;
    let mut words = rest.split_whitespace();
    let operation = words.next().ok_or("there is no operation")?;
    let mut options: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut names, mut ways, mut behind_via) = (Vec::new(), String::new(), false);
    for word in words {
        match word.split_once('=') {
            Some((option, value)) => drop(options.insert(option, value)),
            None if word == "via" => behind_via = true,
            None if behind_via => ways.push_str(word),
            None => names.push(word),
        }
    }
    let operation = match operation {
        "source" => Operation::Source {
            number: before.iter().filter(|stage| matches!(stage.operation, Operation::Source { .. })).count()
                as u32,
            origin: origin(&options)?,
        },
        "map" => Operation::Map,
        "filter" => Operation::Filter,
        "skew" => Operation::Skew,
        "join" => Operation::Join,
        "group" => Operation::Group,
        "sort" => Operation::Sort {
            by_value: options.get("by") == Some(&"value"),
            descending: options.get("order") == Some(&"descending"),
        },
        "count" => Operation::Count,
        "reduce" => Operation::Reduce,
        "first" => {
            let count = names.first().and_then(|count| count.parse().ok()).ok_or("first of how many?")?;
            names.drain(..names.len().min(2));
            Operation::First(count)
        }
        "sink" => Operation::Sink(SinkKind::of(options.get("kind").copied())?),
        _ => return Err("the operation is not known".to_owned()),
    };
    let mut ways = ways.split(',').filter(|way| !way.is_empty());
    let inputs = names.iter().map(|name| {
        let stage = before.iter().position(|stage| stage.name == *name);
        let way = match ways.next() {
            None | Some("forward") => Partitioner::Forward,
            Some("hash") => Partitioner::Hash,
            Some("rebalance") => Partitioner::Rebalance,
            Some("rescale") => Partitioner::Rescale,
            Some("shuffle") => Partitioner::Shuffle,
            Some("custom") => Partitioner::Custom,
            Some("broadcast") => Partitioner::Broadcast,
            Some(way) => return Err(format!("'{way}' is not known")),
        };
        Ok(Input { stage: stage.ok_or_else(|| format!("'{name}' is not known"))?, way })
    });
    let (name, inputs) = (name.trim().to_owned(), inputs.collect::<Result<_, _>>()?);
    Ok(Stage { name, inputs, operation, per_key: options.get("per") == Some(&"key") })
}

fn origin(options: &BTreeMap<&str, &str>) -> Result<Origin, String> {
    let kind = options.get("kind").copied().unwrap_or("rows");
    let keys = option(options, "keys", 16)?;
    let format = match kind {
        "rows" | "collection" | "sequence" => {
            return Ok(Origin::Made {
                splits: splits(option(options, "rows", 0)?, option(options, "splits", 4)?),
                keys,
                in_sequence: kind == "sequence",
                counted: kind == "rows",
            });
        }
        "csv" => Format::Csv,
        "json-lines" => Format::JsonLines,
        "text" => Format::Text,
        _ => return Err(format!("'{kind}' is not known")),
    };
    let path = option(options, "path", String::new())?;
    Ok(Origin::Files { format, path, split_bytes: option(options, "split-bytes", 64 << 20)?, keys })
}

fn option<T: FromStr>(options: &BTreeMap<&str, &str>, name: &str, default: T) -> Result<T, String> {
    let Some(text) = options.get(name) else { return Ok(default) };
    text.parse().map_err(|_| format!("{name} is not understood"))
}

/// Every split has the same number of rows, but the first ones have the remainder, one each.
fn splits(rows: u32, splits: u32) -> Vec<u32> {
    let mut left = rows;
    (0..splits)
        .map(|split| {
            let share = left.div_ceil(splits - split);
            left -= share;
            share
        })
        .collect()
}

/// Where the stages run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub vertices: usize,
    /// By stage.
    pub places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub vertex: usize,
    /// The data set of the stage's first input; those of the others follow. `None` if the stage is
    /// chained behind its input.
    pub data_sets: Option<usize>,
}

impl Layout {
    /// What takes records one by one runs in the task of its only input if that is forwarded; every
    /// other stage begins a vertex, and its inputs are the next data sets.
    pub fn of(stages: &[Stage]) -> Self {
        let (mut vertices, mut data_sets) = (0, 0);
        let mut places: Vec<Place> = Vec::new();
        for stage in stages {
            let one_by_one = matches!(
                stage.operation,
                Operation::Map | Operation::Filter | Operation::Skew | Operation::Sink(_)
            );
            let place = match stage.inputs.as_slice() {
                [Input { stage: producer, way: Partitioner::Forward }] if one_by_one => {
                    Place { vertex: places[*producer].vertex, data_sets: None }
                }
                inputs => {
                    let place = Place { vertex: vertices, data_sets: Some(data_sets) };
                    vertices += 1;
                    data_sets += inputs.len();
                    place
                }
            };
            places.push(place);
        }
        Self { vertices, places }
    }

    /// Whether the job graph has these vertices and these exchanges; or what it has instead.
    pub fn check(&self, stages: &[Stage], graph: &JobGraph) -> Result<(), String> {
        if graph.vertices.len() != self.vertices {
            return Err(format!("the plan has {} vertices, the job {}", self.vertices, graph.vertices.len()));
        }
        let edges = stages.iter().zip(&self.places).flat_map(|(stage, place)| {
            let inputs = if place.data_sets.is_some() { stage.inputs.as_slice() } else { &[] };
            inputs.iter().map(|input| (self.places[input.stage].vertex, place.vertex, input.way))
        });
        let found = graph
            .edges
            .iter()
            .map(|edge| (edge.producer.0 as usize, edge.consumer.0 as usize, edge.partitioner));
        if edges.eq(found) { Ok(()) } else { Err("the job has other exchanges than the plan".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let stages = read(
            "a = source rows=11 keys=3 splits=4 # eleven; a = b
             b = source rows=0 ; c = join a b via broadcast, hash parallelism=3

             d = sort c order=descending
             e = first 3 of d a via rebalance,rescale; f = sort e via hash by=value per=key
             g = skew f via shuffle; o = sink g via custom",
        )
        .unwrap()
        .stages;
        let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "o"]);
        let made = |number, splits, keys| Operation::Source {
            number,
            origin: Origin::Made { splits, keys, in_sequence: false, counted: true },
        };
        assert_eq!(stages[0].operation, made(0, vec![3, 3, 3, 2], 3));
        assert_eq!(stages[1].operation, made(1, vec![0; 4], 16));
        let input = |stage, way| Input { stage, way };
        assert_eq!(stages[2].inputs, [input(0, Partitioner::Broadcast), input(1, Partitioner::Hash)]);
        assert_eq!(stages[3].operation, Operation::Sort { by_value: false, descending: true });
        assert_eq!(stages[5].operation, Operation::Sort { by_value: true, descending: false });
        assert!(stages.iter().all(|stage| stage.per_key == (stage.name == "f")));
        assert_eq!(stages[6].inputs, [input(5, Partitioner::Shuffle)]);
        assert_eq!(stages[7].inputs, [input(6, Partitioner::Custom)]);
        assert_eq!(stages[3].inputs, [input(2, Partitioner::Forward)]);
        assert_eq!(stages[4].operation, Operation::First(3));
        assert_eq!(stages[4].inputs, [input(3, Partitioner::Rebalance), input(0, Partitioner::Rescale)]);
        for wrong in ["a", "a =", "a = b", "a = map b", "a = source rows=x", "a = first of b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lineages_are_kept_as_the_plan_says() {
        let none = |line: &str| read(&format!("a = source rows=1; {line}\no = sink a")).map(|plan| plan.none);
        let hash = Lineage::Hash { count: 0, sum: 0 };
        assert_eq!([none("").unwrap(), none("lineage=hash").unwrap()], [hash.clone(), hash]);
        assert_eq!(none("lineage = ids").unwrap(), Lineage::Ids(Vec::new()));
        none("lineage = map a").unwrap_err();
    }

    #[test]
    fn only_what_takes_records_one_by_one_is_chained_and_only_behind_a_single_forwarded_input() {
        let stages = read(
            "a = source rows=1; b = source rows=1; c = map a; d = map c via hash; e = map d a via forward,forward
             f = sort e; o = sink f; g = sink f via rebalance",
        )
        .unwrap()
        .stages;
        let layout = Layout::of(&stages);
        let places: Vec<_> = layout.places.iter().map(|place| (place.vertex, place.data_sets)).collect();
        let (chained, begins) = (None, Some);
        assert_eq!(
            places,
            [
                (0, begins(0)),
                (1, begins(0)),
                (0, chained),
                (2, begins(0)),
                (3, begins(1)),
                (4, begins(3)),
                (4, chained),
                (5, begins(4)),
            ]
        );
        assert_eq!(layout.vertices, 6);
    }
}
