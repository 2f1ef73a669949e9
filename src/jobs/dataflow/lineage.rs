//! What a row is made of: which records of sources, and how often each. Kept as the records' ids, or in a
//! job with many as a count and a sum of hashes, whichever the plan says. Decides how lineages are
//! written and added up.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How lineages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    Ids,
    Hash,
}

/// Of a record of a source, as its first columns say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordId {
    pub source: u32,
    pub split: u32,
    pub offset: u32,
}

/// The finalizer of SplitMix64 over `z` after one step: every bit of the result depends on every bit
/// of `z`.
pub(super) const fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl RecordId {
    pub(super) const fn hash(self) -> u64 {
        mix(mix(self.source as u64) ^ ((self.split as u64) << 32 | self.offset as u64))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.source, self.split, self.offset)
    }
}

/// Written `0.0.7+0.1.2*3`: each id, and how often if that is not once; or `4#000c5a5f00c0ffee`: how many
/// and the sum of their hashes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) enum Lineage {
    Ids(BTreeMap<RecordId, u64>),
    Hash { count: u64, sum: u64 },
}

impl Lineage {
    /// Of no record.
    pub(super) const fn none(keeps: Keeps) -> Self {
        match keeps {
            Keeps::Ids => Self::Ids(BTreeMap::new()),
            Keeps::Hash => Self::Hash { count: 0, sum: 0 },
        }
    }

    pub(super) fn of(id: RecordId, keeps: Keeps) -> Self {
        match keeps {
            Keeps::Ids => Self::Ids(BTreeMap::from([(id, 1)])),
            Keeps::Hash => Self::Hash { count: 1, sum: id.hash() },
        }
    }

    /// Both together. All lineages of a job are kept in the same way.
    pub(super) fn add(&mut self, other: &Self) {
        match (self, other) {
            (Self::Ids(ids), Self::Ids(more)) => {
                for (&id, times) in more {
                    let sum = ids.entry(id).or_default();
                    *sum = sum.wrapping_add(*times);
                }
            }
            (Self::Hash { count, sum }, Self::Hash { count: more, sum: other }) => {
                *count = count.wrapping_add(*more);
                *sum = sum.wrapping_add(*other);
            }
            (Self::Ids(_), Self::Hash { .. }) | (Self::Hash { .. }, Self::Ids(_)) => {}
        }
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash { count, sum } => write!(f, "{count}#{sum:016x}"),
            Self::Ids(ids) => {
                for (n, (id, times)) in ids.iter().enumerate() {
                    let plus = if n > 0 { "+" } else { "" };
                    write!(f, "{plus}{id}")?;
                    if *times != 1 {
                        write!(f, "*{times}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// As it is written, also where a row is printed.
impl fmt::Debug for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Lineage> for String {
    fn from(lineage: Lineage) -> Self {
        lineage.to_string()
    }
}

/// A text is no lineage.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is no lineage; right is for example '0.0.7+0.1.2*3' or '4#000c5a5f00c0ffee'")]
pub(super) struct NoLineage(String);

impl TryFrom<String> for Lineage {
    type Error = NoLineage;

    fn try_from(text: String) -> Result<Self, NoLineage> {
        let read = match text.split_once('#') {
            Some((count, sum)) => {
                let (count, sum) = (count.parse().ok(), u64::from_str_radix(sum, 16).ok());
                count.zip(sum).map(|(count, sum)| Self::Hash { count, sum })
            }
            None => text
                .split('+')
                .filter(|part| !part.is_empty())
                .map(counted)
                .collect::<Option<_>>()
                .map(Self::Ids),
        };
        read.ok_or(NoLineage(text))
    }
}

/// An id, and how often.
fn counted(part: &str) -> Option<(RecordId, u64)> {
    let (id, times) = part.split_once('*').map_or((part, Some(1)), |(id, times)| (id, times.parse().ok()));
    Some((id.parse().ok()?, times?))
}

impl FromStr for RecordId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.').map(|number| number.parse().map_err(drop));
        let mut next = || numbers.next().ok_or(())?;
        let id = Self { source: next()?, split: next()?, offset: next()? };
        if numbers.next().is_some() { Err(()) } else { Ok(id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(split: u32, offset: u32) -> RecordId {
        RecordId { source: 1, split, offset }
    }

    /// The first output of SplitMix64 from state 0, as published.
    #[test]
    fn the_arithmetic_is_that_of_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn ids_are_kept_with_how_often_they_came() {
        let mut lineage = Lineage::none(Keeps::Ids);
        assert_eq!(lineage.to_string(), "");
        for id in [id(1, 2), id(0, 7), id(1, 2), id(1, 10)] {
            lineage.add(&Lineage::of(id, Keeps::Ids));
        }
        assert_eq!(lineage.to_string(), "1.0.7+1.1.2*2+1.1.10");
        lineage.add(&lineage.clone());
        assert_eq!(format!("{lineage:?}"), "1.0.7*2+1.1.2*4+1.1.10*2");
    }

    #[test]
    fn hashes_add_up_in_any_order() {
        let [mut one, mut other] = [Lineage::none(Keeps::Hash), Lineage::none(Keeps::Hash)];
        for (first, second) in [(id(1, 2), id(0, 7)), (id(0, 7), id(1, 2))] {
            one.add(&Lineage::of(first, Keeps::Hash));
            other.add(&Lineage::of(second, Keeps::Hash));
        }
        assert_eq!(one, other);
        let sum = id(1, 2).hash().wrapping_add(id(0, 7).hash());
        assert_eq!(one.to_string(), format!("2#{sum:016x}"));
    }

    #[test]
    fn a_lineage_travels_as_it_is_written() {
        let mut ids = Lineage::of(id(3, 4), Keeps::Ids);
        ids.add(&ids.clone());
        for lineage in
            [Lineage::none(Keeps::Ids), Lineage::none(Keeps::Hash), ids, Lineage::of(id(3, 4), Keeps::Hash)]
        {
            let bytes = postcard::to_stdvec(&lineage).unwrap();
            assert_eq!(postcard::from_bytes::<Lineage>(&bytes).unwrap(), lineage);
            assert_eq!(Lineage::try_from(lineage.to_string()).unwrap(), lineage);
        }
        for wrong in ["1.2", "1.2.3.4", "1.2.x", "1.2.3*", "x#1", "1#y"] {
            assert!(
                Lineage::try_from(wrong.to_owned()).unwrap_err().to_string().contains("is no lineage"),
                "{wrong}"
            );
        }
    }
}
