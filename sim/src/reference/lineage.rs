//! Which records of sources a row is made of, in the words of a reference of its own: ids with how often
//! each, or their number and the sum of their hashes; and what a job whose rows say so can be asked.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use revenant::ids::JobVertexId;
use serde::{Deserialize, Serialize};

use super::Witness;

/// Of a record of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordId {
    pub source: u32,
    pub split: u32,
    pub offset: u32,
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, split, offset } = self;
        write!(f, "{source}.{split}.{offset}")
    }
}

impl FromStr for RecordId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<Option<u32>> = text.split('.').map(|number| number.parse().ok()).collect();
        match numbers.as_slice() {
            [Some(source), Some(split), Some(offset)] => {
                Ok(Self { source: *source, split: *split, offset: *offset })
            }
            _ => Err(format!("'{text}' is no id of a record")),
        }
    }
}

/// The generator of Steele, Lea and Flood.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
            bits ^= bits >> shift;
            bits = bits.wrapping_mul(factor);
        }
        bits ^ (bits >> 31)
    }
}

/// The first number of the generator with this seed.
pub fn first(seed: u64) -> u64 {
    SplitMix64(seed).next()
}

impl RecordId {
    pub fn hash(self) -> u64 {
        let place = (u64::from(self.split) << 32) + u64::from(self.offset);
        first(first(self.source.into()) ^ place)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Lineage {
    /// In the order of the ids, each once, with how often it is in it.
    Ids(Vec<(RecordId, u64)>),
    Hash {
        count: u64,
        sum: u64,
    },
    /// How often this one record is in it. No output has such a lineage: it follows the record.
    Only(RecordId, u64),
}

impl Lineage {
    /// Of this one record, kept as `like` is.
    pub fn of(id: RecordId, like: &Self) -> Self {
        match like {
            Self::Ids(_) => Self::Ids(vec![(id, 1)]),
            Self::Hash { .. } => Self::Hash { count: 1, sum: id.hash() },
            Self::Only(followed, _) => Self::Only(*followed, u64::from(*followed == id)),
        }
    }

    /// Both together.
    pub fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Ids(ids), Self::Ids(more)) => {
                for (id, times) in more {
                    match ids.binary_search_by_key(id, |(id, _)| *id) {
                        Ok(at) => ids[at].1 = ids[at].1.wrapping_add(*times),
                        Err(at) => ids.insert(at, (*id, *times)),
                    }
                }
            }
            (Self::Hash { count, sum }, Self::Hash { count: more, sum: others }) => {
                *count = count.wrapping_add(*more);
                *sum = sum.wrapping_add(*others);
            }
            (Self::Only(_, times), Self::Only(_, more)) => *times = times.wrapping_add(*more),
            _ => unreachable!("a job keeps all lineages in one way"),
        }
    }

    /// Of all of them together; `none` is that of no record.
    pub fn sum<'a>(none: &Self, all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = none.clone();
        all.into_iter().for_each(|lineage| sum.add(lineage));
        sum
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |id: &RecordId, times: u64| match times {
            1 => id.to_string(),
            times => format!("{id}*{times}"),
        };
        match self {
            Self::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(|(id, often)| times(id, *often)).collect();
                f.write_str(&ids.join("+"))
            }
            Self::Hash { count, sum } => write!(f, "{count}#{sum:016x}"),
            Self::Only(id, often) => f.write_str(&times(id, *often)),
        }
    }
}

impl From<Lineage> for String {
    fn from(lineage: Lineage) -> Self {
        lineage.to_string()
    }
}

impl TryFrom<String> for Lineage {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no lineage");
        if let Some((count, sum)) = text.split_once('#') {
            let count = count.parse().map_err(|_| wrong())?;
            let sum = u64::from_str_radix(sum, 16).map_err(|_| wrong())?;
            return Ok(Self::Hash { count, sum });
        }
        let mut lineage = Self::Ids(Vec::new());
        for part in text.split('+').filter(|part| !part.is_empty()) {
            let (id, times) = part.split_once('*').unwrap_or((part, "1"));
            let times = times.parse().map_err(|_| wrong())?;
            lineage.add(&Self::Ids(vec![(id.parse().map_err(|_| wrong())?, times)]));
        }
        Ok(lineage)
    }
}

/// Where a record is read: the split that it is in, of the source in this vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAt {
    pub vertex: JobVertexId,
    pub split: u32,
}

/// A subtask that a record passes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The stages of it that the record passes, as `b+o`.
    pub stages: String,
    pub vertex: JobVertexId,
    pub subtask: u32,
    /// Through which gate it got here; a source has none.
    pub gate: Option<usize>,
}

/// A row of an output file, and what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub row: String,
    pub of: Lineage,
}

/// What a job that keeps lineages can be asked.
pub trait Lineages: Send + Sync {
    /// Which of several outputs a file is of, and which subtask writes it; `None` if it is none of the job.
    fn place(&self, path: &str) -> Option<Place>;

    /// The rows of an output file.
    fn made(&self, path: &str, file: &Bytes) -> Result<Vec<Made>, String>;

    /// All records of sources.
    fn records(&self) -> Box<dyn Iterator<Item = (RecordId, ReadAt)> + '_>;

    /// The ids in each row of the file of a run with this witness, also if rows do not say them. Empty if there
    /// are too many.
    fn ids(&self, witness: &Witness, path: &str) -> Result<Vec<Lineage>, String>;

    /// The rows of all files of an output, whatever the witness, if that can be said; or one in place of all,
    /// if only that.
    fn made_of(&self, output: &str) -> Option<Vec<Made>>;

    /// The ways of a record to a file in a run with this witness, from the source on: some of them, if there
    /// are many. How often the record should be in the file.
    fn ways(&self, witness: &Witness, id: RecordId, path: &str) -> Result<(u64, Vec<Vec<Step>>), String>;
}

/// Where a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub output: String,
    pub vertex: JobVertexId,
    pub subtask: u32,
}
