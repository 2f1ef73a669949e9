//! Explains a difference of an output: which records of sources were lost, doubled or are stale, that is
//! there by attempts that do not count, and through which attempts they went. Where rows say no ids but
//! sums of hashes, the ids are looked for: one record, two, or those of a split. Never judges: a difference was found before.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use revenant::ids::{ExecutionAttemptId, ExecutionVertexId, JobVertexId};

use super::History;
use super::s1_output::is_pending;
use crate::reference::{Files, Lineage, Lineages, Made, Place, ReadAt, RecordId, Step, Witness};

/// So many records are told with their ways; of the others only how many they are.
const TOLD: usize = 3;

/// Of a file that differs from that of the witness.
pub fn of_file(
    history: &History,
    lineages: &dyn Lineages,
    witness: &Witness,
    (expected, found): (&Files, &BTreeMap<String, Bytes>),
    path: &str,
) -> Option<String> {
    let output = lineages.place(path)?.output;
    let is_of_output =
        |path: &str| !is_pending(path) && lineages.place(path).is_some_and(|place| place.output == output);
    let paths: BTreeSet<&str> = expected.keys().chain(found.keys()).map(String::as_str).collect();
    let known = Known::new(lineages);
    let mut differences: BTreeMap<RecordId, Vec<(String, i64)>> = BTreeMap::new();
    let mut told = Vec::new();
    for path in paths.into_iter().filter(|path| is_of_output(path)) {
        let due = expected.get(path).map_or_else(Default::default, |file| Bytes::from(file.clone()));
        let is = found.get(path).cloned().unwrap_or_default();
        if due == is {
            continue;
        }
        let ids = lineages.ids(witness, path).unwrap_or_default();
        let made = |file: &Bytes| if file.is_empty() { Ok(Vec::new()) } else { lineages.made(path, file) };
        match (made(&due), made(&is)) {
            (Ok(due), Ok(is)) => match known.difference(&due, &is, &ids) {
                Ok(of_file) => {
                    for (id, change) in of_file {
                        differences.entry(id).or_default().push((path.to_owned(), change));
                    }
                }
                Err(unsolved) => told.push(format!("{path}: {unsolved}")),
            },
            (_, Err(error)) | (Err(error), _) => told.push(format!("{path} has no rows to explain: {error}")),
        }
    }
    let teller = Teller { history, lineages, known, witness };
    let more = differences.len().saturating_sub(TOLD);
    told.extend(differences.iter().take(TOLD).map(|(&id, files)| teller.record(id, files)));
    if more > 0 {
        told.push(format!("{more} more records"));
    }
    if told.is_empty() {
        told.push("every record of the sources is where it should be; order or values differ".to_owned());
    }
    Some(format!("lineage: {}", told.join("; ")))
}

/// Of outputs that are those of the witness, but not those of the sources: the witness is wrong.
pub fn of_whole(
    history: &History,
    lineages: &dyn Lineages,
    witness: &Witness,
    found: &BTreeMap<String, Bytes>,
) -> Option<String> {
    let known = Known::new(lineages);
    let mut outputs: BTreeMap<String, Vec<Made>> = BTreeMap::new();
    for (path, file) in found.iter().filter(|(path, _)| !is_pending(path)) {
        if let Some(place) = lineages.place(path) {
            outputs.entry(place.output).or_default().extend(lineages.made(path, file).ok()?);
        }
    }
    let teller = Teller { history, lineages, known, witness };
    for (output, rows) in outputs {
        let Some(whole) = lineages.made_of(&output) else { continue };
        let told: Vec<String> = match teller.known.difference(&whole, &rows, &[]) {
            Ok(of_output) if of_output.is_empty() => continue,
            Ok(of_output) => {
                let tell = |(id, change): (&RecordId, &i64)| teller.read(*id, *change);
                of_output.iter().take(TOLD).map(tell).collect()
            }
            Err(unsolved) => vec![unsolved],
        };
        return Some(format!("lineage: {}", told.join("; ")));
    }
    None
}

/// All records of sources.
struct Known {
    places: BTreeMap<RecordId, ReadAt>,
    by_hash: BTreeMap<u64, RecordId>,
    splits: Vec<Vec<RecordId>>,
}

impl Known {
    fn new(lineages: &dyn Lineages) -> Self {
        let places: BTreeMap<RecordId, ReadAt> = lineages.records().collect();
        let by_hash = places.keys().map(|id| (id.hash(), *id)).collect();
        let mut splits: BTreeMap<(JobVertexId, u32), Vec<RecordId>> = BTreeMap::new();
        for (&id, read) in &places {
            splits.entry((read.vertex, read.split)).or_default().push(id);
        }
        Self { places, by_hash, splits: splits.into_values().collect() }
    }

    /// How much more often each record is in what is there than in what is due; or how far one got. `ids` are
    /// those of the rows that are due, if they are known.
    fn difference(
        &self,
        due: &[Made],
        is: &[Made],
        ids: &[Lineage],
    ) -> Result<BTreeMap<RecordId, i64>, String> {
        let mut rows: BTreeMap<(&str, &Lineage), i64> = BTreeMap::new();
        for (all, change) in [(due, -1), (is, 1)] {
            for made in all {
                *rows.entry((&made.row, &made.of)).or_default() += change;
            }
        }
        let mut changes: BTreeMap<RecordId, i64> = BTreeMap::new();
        let (mut count, mut sum) = (0_i64, 0_u64);
        let ids: BTreeMap<&Lineage, &Lineage> = due.iter().map(|made| &made.of).zip(ids).collect();
        for ((_, lineage), times) in rows.into_iter().filter(|(_, times)| *times != 0) {
            match ids.get(lineage).copied().unwrap_or(lineage) {
                Lineage::Ids(ids) => {
                    for (id, often) in ids {
                        *changes.entry(*id).or_default() += times * often.cast_signed();
                    }
                }
                Lineage::Only(id, often) => {
                    *changes.entry(*id).or_default() += times * often.cast_signed();
                }
                Lineage::Hash { count: 1, sum: hash } if self.by_hash.contains_key(hash) => {
                    *changes.entry(self.by_hash[hash]).or_default() += times;
                }
                Lineage::Hash { count: more, sum: hashes } => {
                    count = count.wrapping_add(times.wrapping_mul(more.cast_signed()));
                    sum = sum.wrapping_add(hashes.wrapping_mul(times.cast_unsigned()));
                }
            }
        }
        if (count, sum) != (0, 0) {
            // What one row has of a record another may have lacked before.
            let all = changes.iter().fold((count, sum), |(count, sum), (id, change)| {
                let hashes = id.hash().wrapping_mul(change.cast_unsigned());
                (count.wrapping_add(*change), sum.wrapping_add(hashes))
            });
            let found = match self.search(all.0, all.1) {
                Ok(found) => {
                    changes.clear();
                    found
                }
                Err(_) => self.search(count, sum)?,
            };
            for (id, change) in found {
                *changes.entry(id).or_default() += change;
            }
        }
        changes.retain(|_, change| *change != 0);
        Ok(changes)
    }

    /// Which records come to this sum, so many more than should be: none, one, those of a split, or two.
    fn search(&self, count: i64, sum: u64) -> Result<Vec<(RecordId, i64)>, String> {
        if (count, sum) == (0, 0) {
            return Ok(Vec::new());
        }
        let (times, sign) = (count.unsigned_abs(), count.signum());
        let target = if sign < 0 { sum.wrapping_neg() } else { sum };
        let find = |hash: u64| self.by_hash.get(&hash).copied();
        if times > 0
            && let Some((_, id)) = self.by_hash.iter().find(|(hash, _)| hash.wrapping_mul(times) == target)
        {
            return Ok(vec![(*id, count)]);
        }
        if let Some(ids) = self.splits.iter().find(|ids| ids.len() as u64 == times && hash(ids) == target) {
            return Ok(ids.iter().map(|id| (*id, sign)).collect());
        }
        let mut ids = self.by_hash.iter();
        let pair = match times {
            // One is there in place of another.
            0 => ids.find_map(|(hash, id)| Some([(*id, -1), (find(sum.wrapping_add(*hash))?, 1)])),
            2 => ids.find_map(|(hash, id)| Some([(*id, sign), (find(target.wrapping_sub(*hash))?, sign)])),
            _ => None,
        };
        pair.map(Vec::from).ok_or_else(|| {
            let what = match sign {
                0 => return "several records are there in place of others; which ones, the sum of their hashes does not tell".to_owned(),
                -1 => "missing",
                _ => "too many",
            };
            format!("{times} records are {what}; which ones, the sum of their hashes does not tell")
        })
    }
}

/// The sum of their hashes.
fn hash(ids: &[RecordId]) -> u64 {
    ids.iter().fold(0, |sum, id| sum.wrapping_add(id.hash()))
}

/// Tells the story of a record.
struct Teller<'a> {
    history: &'a History<'a>,
    lineages: &'a dyn Lineages,
    known: Known,
    witness: &'a Witness,
}

impl Teller<'_> {
    /// `files` say how much more often it is in each than it should be.
    fn record(&self, id: RecordId, files: &[(String, i64)]) -> String {
        let Some(&read) = self.known.places.get(&id) else {
            let files: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
            return format!("record {id} in {} is of no source", files.join(", "));
        };
        let mut told: Vec<String> = Vec::new();
        for (path, change) in files {
            told.push(match self.lineages.ways(self.witness, id, path) {
                Ok((due, ways)) => {
                    let is = due.wrapping_add_signed(*change);
                    let came = self.way_to(path, read, &ways);
                    let (what, should) = match (due, is) {
                        (0, _) => ("stale", "not".to_owned()),
                        (due, is) if is > due => ("doubled", times(due)),
                        _ => ("lost", times(due)),
                    };
                    format!("{what}: {path} has it {} and should {should}; {came}", times(is))
                }
                Err(error) => format!("different in {path}, and cannot be followed: {error}"),
            });
        }
        let (_, others) = self.readers(read);
        let is_more = files.iter().any(|(_, change)| *change > 0);
        let others = if is_more && !others.is_empty() {
            format!("; split {} was also read by {}", read.split, uncounted(&others))
        } else {
            String::new()
        };
        format!("record {id} is {}{others}", told.join(" and "))
    }

    /// By which attempts a record came to the file, or should have.
    fn way_to(&self, path: &str, read: ReadAt, ways: &[Vec<Step>]) -> String {
        let Some(place) = self.lineages.place(path) else { return "nothing is known of the file".to_owned() };
        match ways {
            [] => match self.actual_way(&place, read) {
                Some(way) => format!("it may have come by {way}"),
                None => format!("no attempt that {} is of had it", self.writer(&place)),
            },
            [way] => format!("its way is {}", self.attempts(way)),
            [way, others @ ..] => {
                format!("its way is {}, or one of {} others", self.attempts(way), others.len())
            }
        }
    }

    fn writer(&self, place: &Place) -> String {
        let subtask = ExecutionVertexId::new(place.vertex, place.subtask);
        self.counted(subtask).map_or_else(|| subtask.to_string(), |attempt| attempt.to_string())
    }

    fn counted(&self, subtask: ExecutionVertexId) -> Option<ExecutionAttemptId> {
        Some(self.history.counted(subtask, self.history.complete?)?.attempt)
    }

    /// The way with the attempts whose partitions were read by those behind them.
    fn attempts(&self, way: &[Step]) -> String {
        let mut told: Vec<String> = Vec::new();
        // The attempt behind the step, and through which gate it read.
        let mut reader: Option<(ExecutionAttemptId, usize)> = None;
        for step in way.iter().rev() {
            let subtask = ExecutionVertexId::new(step.vertex, step.subtask);
            let read = reader.and_then(|(reader, gate)| {
                let partitions = self.history.accepted(reader)?.inputs.get(gate)?;
                partitions
                    .iter()
                    .map(|partition| partition.producer)
                    .find(|attempt| attempt.subtask == subtask)
            });
            let Some(attempt) = read.or_else(|| self.counted(subtask)) else {
                told.push(format!("{} {subtask}", step.stages));
                continue;
            };
            told.push(format!("{} {}", step.stages, self.named(attempt)));
            reader = step.gate.map(|gate| (attempt, gate));
        }
        told.reverse();
        told.join(" -> ")
    }

    /// The attempt, and whether it counts.
    fn named(&self, attempt: ExecutionAttemptId) -> String {
        match self.counted(attempt.subtask) {
            Some(counted) if counted != attempt => format!("{attempt} (does not count, {counted} does)"),
            _ => attempt.to_string(),
        }
    }

    /// From an attempt that read the split to the one that wrote the file, by the partitions that each was given;
    /// one with an attempt that does not count before others.
    fn actual_way(&self, place: &Place, read: ReadAt) -> Option<String> {
        let writer = self.counted(ExecutionVertexId::new(place.vertex, place.subtask))?;
        let mut ways: Vec<Vec<ExecutionAttemptId>> = vec![vec![writer]];
        let mut seen: BTreeSet<ExecutionAttemptId> = BTreeSet::new();
        let mut complete: Vec<Vec<ExecutionAttemptId>> = Vec::new();
        while let Some(way) = ways.pop() {
            let Some(finish) = way.last().and_then(|attempt| self.history.accepted(*attempt)) else {
                continue;
            };
            if finish.attempt.subtask.vertex == read.vertex && finish.splits.contains(&read.split) {
                complete.push(way);
                continue;
            }
            for partition in
                finish.inputs.iter().flatten().filter(|partition| seen.insert(partition.producer))
            {
                ways.push([way.as_slice(), &[partition.producer]].concat());
            }
        }
        let is_stale = |way: &Vec<ExecutionAttemptId>| {
            way.iter().any(|attempt| self.counted(attempt.subtask) != Some(*attempt))
        };
        let way = complete.iter().find(|way| is_stale(way)).or_else(|| complete.first())?;
        let way: Vec<String> = way.iter().rev().map(|attempt| self.named(*attempt)).collect();
        Some(way.join(" -> "))
    }

    /// Attempts that finished and had the split: those that count, and others.
    fn readers(&self, read: ReadAt) -> (Vec<ExecutionAttemptId>, Vec<ExecutionAttemptId>) {
        let all = self.history.finishes.values().flatten();
        let all = all.filter(|finish| {
            finish.attempt.subtask.vertex == read.vertex && finish.splits.contains(&read.split)
        });
        let attempts: BTreeSet<ExecutionAttemptId> = all.map(|finish| finish.attempt).collect();
        attempts.into_iter().partition(|attempt| self.counted(attempt.subtask) == Some(*attempt))
    }

    /// Of a record that all outputs have as often as the witness says, which is wrong.
    fn read(&self, id: RecordId, change: i64) -> String {
        let Some(&read) = self.known.places.get(&id) else {
            return format!("record {id} is of no source");
        };
        let (counted, others) = self.readers(read);
        let what = if change < 0 { "lost" } else { "doubled" };
        let split = format!("split {} of source {}", read.split, id.source);
        let by = match counted.as_slice() {
            [] => format!("no attempt that counts has read {split}"),
            counted => {
                let counted: Vec<String> = counted.iter().map(ToString::to_string).collect();
                format!("{split} was read by {}", counted.join(" and "))
            }
        };
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!(", and by {}", uncounted(others)),
        };
        format!("record {id} is {what}: {by}{others}")
    }
}

fn uncounted(attempts: &[ExecutionAttemptId]) -> String {
    let attempts: Vec<String> =
        attempts.iter().map(|attempt| format!("{attempt} (does not count)")).collect();
    attempts.join(" and ")
}

fn times(times: u64) -> String {
    match times {
        0 => "not at all".to_owned(),
        1 => "once".to_owned(),
        times => format!("{times} times"),
    }
}

#[cfg(test)]
mod tests;
