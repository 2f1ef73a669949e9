//! `dataflow`: a sequential interpreter of plans. It works a plan off stage by stage: each subtask's
//! rows follow from those of the stages before, from the ranges that the run chose, and for sources
//! from the splits that were consumed.

use std::collections::BTreeMap;

use bytes::Bytes;
use revenant::config::JobArguments;
use revenant::graph::{JobGraph, Partitioner};
use revenant::ids::{IntermediateDataSetId, JobVertexId};

mod plan;
mod row;
mod sink;
mod source;
mod ways;
mod whole;

use plan::{Input, Layout, Operation, Origin, Place, Plan, Stage};
use row::{Row, by_key, counted, grouped, joined, kept, mapped, reduced, skewed, sorted};
use sink::SinkKind;
use whole::Known;

use super::exchange::DataSet;
use crate::scenario::Input as InputFile;

use super::{Counting, Files, Lineage, Lineages, ReferenceJob, Shape, VertexWitness, Witness};

#[derive(Debug)]
pub struct Dataflow {
    plan: Plan,
    layout: Layout,
    shape: Shape,
    sources: Sources,
    /// Of each stage, whatever the witness.
    known: Vec<Known>,
}

/// Rows by subtask.
type Subtasks = Vec<Vec<Row>>;

/// Of each source, its rows by split.
type Sources = Vec<Vec<Vec<Row>>>;

/// The plan of a job that is given none.
const IF_NONE_IS_GIVEN: &str =
    "rows = source rows=100; sums = group rows via hash; sorted = sort sums; out = sink sorted";

impl Dataflow {
    /// Also says how many splits each source has that reads files.
    pub fn new(
        job: &JobArguments,
        graph: &JobGraph,
        inputs: &[InputFile],
        shape: &mut Shape,
    ) -> Result<Self, String> {
        let plan = job.arguments.iter().find(|(name, _)| name == "plan");
        let plan = plan::read(plan.map_or(IF_NONE_IS_GIVEN, |(_, plan)| plan))?;
        let layout = Layout::of(&plan.stages);
        layout.check(&plan.stages, graph)?;
        let parallelism: Vec<Option<u32>> =
            layout.places.iter().map(|place| graph.vertices[place.vertex].parallelism).collect();
        let sources = sources(&plan, inputs)?;
        for (stage, place) in plan.stages.iter().zip(&layout.places) {
            if let Operation::Source { number, origin: Origin::Files { .. } } = &stage.operation {
                shape.splits[place.vertex] = Some(sources[*number as usize].len() as u32);
            }
        }
        let known = whole::known(&plan, &sources, &parallelism);
        Ok(Self { plan, layout, shape: shape.clone(), sources, known })
    }

    /// What the subtasks of every stage have behind it. Lineages are kept as `none` is.
    fn run_all(&self, witness: &Witness, sources: &Sources, none: &Lineage) -> Result<Vec<Subtasks>, String> {
        if witness.vertices.len() != self.layout.vertices {
            return Err(format!("the job does not have {} vertices", self.layout.vertices));
        }
        let mut results: Vec<Subtasks> = Vec::new();
        for (stage, place) in self.plan.stages.iter().zip(&self.layout.places) {
            let vertex = &witness.vertices[place.vertex];
            let rows = match &stage.operation {
                Operation::Source { number, .. } => {
                    let splits = &sources[*number as usize];
                    vertex.splits.iter().map(|consumed| read(splits, consumed)).collect()
                }
                _ => self.run(stage, *place, &results, vertex, none),
            };
            results.push(rows?);
        }
        Ok(results)
    }

    /// What a stage's subtasks have after it, given what all stages before have.
    fn run(
        &self,
        stage: &Stage,
        place: Place,
        before: &[Subtasks],
        vertex: &VertexWitness,
        none: &Lineage,
    ) -> Result<Subtasks, String> {
        let gates: Vec<Subtasks> = match place.data_sets {
            None => stage.inputs.iter().map(|input| before[input.stage].clone()).collect(),
            Some(first) => (0..)
                .zip(&stage.inputs)
                .map(|(gate, input)| {
                    self.exchange(input, first + gate, before)?.read_all(&vertex.inputs, gate)
                })
                .collect::<Result<_, String>>()?,
        };
        let subtask = |subtask: usize| {
            let gates: Vec<&[Row]> = gates.iter().map(|gate| gate[subtask].as_slice()).collect();
            apply(stage, &gates, none)
        };
        if gates.iter().any(|gate| gate.len() != vertex.splits.len()) {
            return Err(format!("stage '{}' has another number of subtasks than its ranges say", stage.name));
        }
        (0..vertex.splits.len()).map(subtask).collect()
    }

    fn exchange(&self, input: &Input, data_set: usize, before: &[Subtasks]) -> Result<DataSet<Row>, String> {
        let producers = &before[input.stage];
        let data_set = IntermediateDataSetId(data_set as u32);
        let subpartitions = self.shape.subpartitions(data_set, producers.len() as u32);
        match input.way {
            Partitioner::Forward | Partitioner::Broadcast => Ok(DataSet::single(producers)),
            Partitioner::Hash => DataSet::by_hash(producers, subpartitions, |row: &Row| row.key),
            Partitioner::Rebalance | Partitioner::Rescale => DataSet::round_robin(producers, subpartitions),
            Partitioner::Shuffle => DataSet::shuffled(producers, subpartitions),
            Partitioner::Custom => DataSet::by(producers, subpartitions, |row: &Row| row.key.cast_unsigned()),
        }
    }
}

/// Each source's rows by split.
fn sources(plan: &Plan, inputs: &[InputFile]) -> Result<Sources, String> {
    let sources = plan.stages.iter().filter_map(|stage| match &stage.operation {
        Operation::Source { number, origin } => Some((*number, origin)),
        _ => None,
    });
    sources.map(|(number, origin)| source::splits(number, origin, inputs, &plan.none)).collect()
}

fn read(splits: &[Vec<Row>], consumed: &[u32]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for &split in consumed {
        let split = splits.get(split as usize).ok_or_else(|| format!("there is no split {split}"))?;
        rows.extend_from_slice(split);
    }
    Ok(rows)
}

/// What one subtask makes of what its gates deliver, one after the other.
fn apply(stage: &Stage, gates: &[&[Row]], none: &Lineage) -> Result<Vec<Row>, String> {
    if let (Operation::Join, [first, second]) = (&stage.operation, gates) {
        return Ok(joined(first, second));
    }
    let rows = gates.concat();
    if !stage.per_key {
        return Ok(window(&stage.operation, rows, none));
    }
    let of_key = |rows: Vec<Row>| {
        let key = rows[0].key;
        let mut results = window(&stage.operation, rows, none);
        if stage.operation == Operation::Count {
            for row in &mut results {
                row.key = key;
            }
        }
        results
    };
    Ok(by_key(&rows)?.into_iter().flat_map(of_key).collect())
}

fn window(operation: &Operation, rows: Vec<Row>, none: &Lineage) -> Vec<Row> {
    match operation {
        Operation::Map => rows.into_iter().map(mapped).collect(),
        Operation::Filter => rows.into_iter().filter(kept).collect(),
        Operation::Skew => rows.into_iter().map(skewed).collect(),
        Operation::Group => grouped(&rows),
        Operation::Sort { by_value, descending } => sorted(&rows, *by_value, *descending),
        Operation::Count => vec![counted(&rows, none)],
        Operation::Reduce => reduced(&rows, none).into_iter().collect(),
        Operation::First(count) => rows.into_iter().take(*count).collect(),
        Operation::Source { .. } | Operation::Join | Operation::Sink(_) => rows,
    }
}

/// The files of a sink, with their rows.
fn sink_rows<'a>(
    kind: SinkKind,
    name: &str,
    files: &'a BTreeMap<String, Bytes>,
) -> impl Iterator<Item = Result<(&'a str, Vec<Row>), String>> {
    let directory = kind.directory(name);
    let is_mine = move |path: &str| path.strip_prefix(&directory).is_some_and(|name| !name.contains('/'));
    let mine = files.iter().filter(move |(path, _)| is_mine(path));
    mine.map(move |(path, file)| {
        let rows = kind.rows(file).map_err(|error| format!("{path}: {error}"))?;
        Ok((path.as_str(), rows))
    })
}

impl ReferenceJob for Dataflow {
    fn outputs(&self, witness: &Witness) -> Result<Files, String> {
        let mut files = Files::new();
        let results = self.run_all(witness, &self.sources, &self.plan.none)?;
        for (stage, subtasks) in self.plan.stages.iter().zip(results) {
            if let Operation::Sink(kind) = stage.operation {
                for (subtask, rows) in subtasks.iter().enumerate() {
                    files.insert(kind.path(&stage.name, subtask), kind.file(rows)?);
                }
            }
        }
        Ok(files)
    }

    fn accumulators(&self) -> BTreeMap<String, i64> {
        let counted = self.plan.stages.iter().filter_map(|stage| match &stage.operation {
            Operation::Source { origin: Origin::Made { splits, counted: true, .. }, .. } => {
                Some(splits.iter().map(|&rows| i64::from(rows)).sum::<i64>())
            }
            _ => None,
        });
        let rows = counted.reduce(|sum, rows| sum + rows);
        rows.map(|rows| ("rows-read".to_owned(), rows)).into_iter().collect()
    }

    fn whole(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        for (stage, known) in self.plan.stages.iter().zip(&self.known) {
            if let Operation::Sink(kind) = stage.operation {
                let mut rows = Vec::new();
                for of_file in sink_rows(kind, &stage.name, files) {
                    rows.extend(of_file?.1);
                }
                known
                    .check(&rows, &self.plan.none)
                    .map_err(|error| format!("output '{}': {error}", stage.name))?;
            }
        }
        Ok(())
    }

    fn in_order(&self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        for (stage, place) in self.plan.stages.iter().zip(&self.layout.places) {
            let (&Operation::Sink(kind), [input], None) =
                (&stage.operation, stage.inputs.as_slice(), place.data_sets)
            else {
                continue;
            };
            let sort = &self.plan.stages[input.stage];
            let Operation::Sort { by_value, descending } = sort.operation else { continue };
            if sort.per_key {
                continue;
            }
            for of_file in sink_rows(kind, &stage.name, files) {
                let (path, rows) = of_file?;
                let key = |row: &Row| {
                    let key = i128::from(if by_value { row.value } else { row.key });
                    if descending { -key } else { key }
                };
                if let Some([before, after]) = rows.array_windows().find(|[a, b]| key(a) > key(b)) {
                    let (before, after) = (before.line(), after.line());
                    return Err(format!("{path} is out of order: '{after}' comes after '{before}'"));
                }
            }
        }
        Ok(())
    }

    fn counting(&self, vertex: JobVertexId) -> Counting {
        let stages = self.plan.stages.iter().zip(&self.layout.places);
        let mut of_vertex = stages.filter(|(_, place)| place.vertex == vertex.0 as usize);
        Counting {
            of_nothing: of_vertex
                .clone()
                .any(|(stage, _)| stage.operation == Operation::Count && !stage.per_key),
            ends_early: of_vertex.clone().any(|(stage, _)| matches!(stage.operation, Operation::First(_))),
            writes: of_vertex.any(|(stage, _)| matches!(stage.operation, Operation::Sink(_))),
        }
    }

    fn lineages(&self) -> Option<&dyn Lineages> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
