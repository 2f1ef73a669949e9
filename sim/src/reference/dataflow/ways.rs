//! Follows records through the job: which subtasks each passes on its way to an output file. The job is
//! run once more with lineages that know only the one record.

use bytes::Bytes;
use revenant::ids::JobVertexId;
use revenant::message::IndexRange;

use super::plan::Operation;
use super::row::Row;
use super::sink::SinkKind;
use super::whole::Known;
use super::{Dataflow, Subtasks};
use crate::reference::{Lineage, Lineages, Made, Place, ReadAt, RecordId, Step, Witness};

/// So many ways of a record are looked for.
const WAYS: usize = 3;

/// With more records, rows are not told by their ids: a join could have all of them in every row.
const MANY: usize = 5000;

impl Dataflow {
    /// The sink whose file this is, its kind, and the file's subtask.
    fn sink_of(&self, path: &str) -> Option<(usize, SinkKind, usize)> {
        self.plan.stages.iter().enumerate().find_map(|(index, stage)| {
            let Operation::Sink(kind) = stage.operation else { return None };
            let part = path.strip_prefix(&kind.directory(&stage.name))?.strip_prefix("part-")?;
            let subtask = part.split('.').next()?.parse().ok()?;
            (kind.path(&stage.name, subtask) == path).then_some((index, kind, subtask))
        })
    }

    /// Lineages are kept as `none` is.
    fn run_with(&self, witness: &Witness, none: &Lineage) -> Result<Vec<Subtasks>, String> {
        let mut sources = self.sources.clone();
        for row in sources.iter_mut().flatten().flatten() {
            row.lineage = Lineage::of(row.id(), none);
        }
        self.run_all(witness, &sources, none)
    }
}

impl Lineages for Dataflow {
    fn place(&self, path: &str) -> Option<Place> {
        let (stage, _, subtask) = self.sink_of(path)?;
        Some(Place {
            output: self.plan.stages[stage].name.clone(),
            vertex: JobVertexId(self.layout.places[stage].vertex as u32),
            subtask: subtask as u32,
        })
    }

    fn made(&self, path: &str, file: &Bytes) -> Result<Vec<Made>, String> {
        let (_, kind, _) = self.sink_of(path).ok_or("it is no output of the job")?;
        Ok(kind.rows(file)?.into_iter().map(made).collect())
    }

    fn records(&self) -> Box<dyn Iterator<Item = (RecordId, ReadAt)> + '_> {
        let stages = self.plan.stages.iter().zip(&self.layout.places);
        Box::new(stages.flat_map(|(stage, place)| {
            let source = match &stage.operation {
                Operation::Source { number, .. } => self.sources[*number as usize].as_slice(),
                _ => &[],
            };
            let vertex = JobVertexId(place.vertex as u32);
            (0..).zip(source).flat_map(move |(split, rows)| {
                rows.iter().map(move |row| (row.id(), ReadAt { vertex, split }))
            })
        }))
    }

    fn ids(&self, witness: &Witness, path: &str) -> Result<Vec<Lineage>, String> {
        let (stage, _, subtask) = self.sink_of(path).ok_or("it is no output of the job")?;
        if self.records().nth(MANY).is_some() {
            return Ok(Vec::new());
        }
        let results = self.run_with(witness, &Lineage::Ids(Vec::new()))?;
        let rows = results[stage].get(subtask).map_or(&[][..], Vec::as_slice);
        Ok(rows.iter().map(|row| row.lineage.clone()).collect())
    }

    fn made_of(&self, output: &str) -> Option<Vec<Made>> {
        let stage = self.plan.stages.iter().position(|stage| stage.name == output)?;
        match &self.known[stage] {
            Known::Rows(rows) => Some(rows.iter().cloned().map(made).collect()),
            Known::Sums { lineage, .. } => Some(vec![Made { row: String::new(), of: lineage.clone()? }]),
            Known::Nothing => None,
        }
    }

    fn ways(&self, witness: &Witness, id: RecordId, path: &str) -> Result<(u64, Vec<Vec<Step>>), String> {
        let (stage, _, subtask) = self.sink_of(path).ok_or("it is no output of the job")?;
        let results = self.run_with(witness, &Lineage::Only(id, 0))?;
        let Some(rows) = results[stage].get(subtask) else { return Ok((0, Vec::new())) };
        let due = rows.iter().map(often).fold(0, u64::wrapping_add);
        let mut follower = Follower { job: self, witness, results: &results, ways: Vec::new() };
        follower.back(stage, subtask, &mut Vec::new())?;
        Ok((due, follower.ways))
    }
}

fn made(row: Row) -> Made {
    Made { row: row.line(), of: row.lineage }
}

fn often(row: &Row) -> u64 {
    match row.lineage {
        Lineage::Only(_, often) => often,
        _ => 0,
    }
}

/// Goes back from a sink to where the record was read.
struct Follower<'a> {
    job: &'a Dataflow,
    witness: &'a Witness,
    results: &'a [Subtasks],
    ways: Vec<Vec<Step>>,
}

impl Follower<'_> {
    /// `behind` are the steps behind the stage, the last one first.
    fn back(&mut self, stage: usize, subtask: usize, behind: &mut Vec<Step>) -> Result<(), String> {
        let rows = self.results[stage].get(subtask).ok_or("a subtask is missing")?;
        if self.ways.len() == WAYS || rows.iter().all(|row| often(row) == 0) {
            return Ok(());
        }
        let (of_stage, place) = (&self.job.plan.stages[stage], self.job.layout.places[stage]);
        let name = of_stage.name.as_str();
        let vertex = JobVertexId(place.vertex as u32);
        let before = behind.clone();
        match behind.last_mut() {
            Some(step) if step.vertex == vertex => step.stages = format!("{name}+{}", step.stages),
            _ => behind.push(Step { stages: name.to_owned(), vertex, subtask: subtask as u32, gate: None }),
        }
        if let Operation::Source { .. } = of_stage.operation {
            self.ways.push(behind.iter().rev().cloned().collect());
        }
        for (gate, input) in of_stage.inputs.iter().enumerate() {
            let Some(first) = place.data_sets else {
                self.back(input.stage, subtask, behind)?;
                continue;
            };
            let data = self.job.exchange(input, first + gate, self.results)?;
            let inputs = &self.witness.vertices[place.vertex].inputs;
            let ranges = inputs.get(subtask).and_then(|gates| gates.get(gate));
            let (partitions, subpartitions) = *ranges.ok_or("a subtask has no input ranges")?;
            for partition in partitions.indices() {
                let rows = data.read((IndexRange::new(partition, partition), subpartitions))?;
                if rows.iter().any(|row| often(row) > 0) {
                    let mut way = behind.clone();
                    if let Some(step) = way.last_mut() {
                        step.gate = Some(gate);
                    }
                    self.back(input.stage, partition as usize, &mut way)?;
                }
            }
        }
        *behind = before;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
