//! Records in memory. Small ones without anything on the heap are kept as they are: what they take is
//! known, and they are neither decoded again nor looked for. Of all others the encodings are kept,
//! because nothing else says what a record takes.

use std::cmp::Ordering;
use std::hint::black_box;
use std::mem::{needs_drop, size_of};
use std::vec;

use crate::api::Record;
use crate::task::BodyError;

use super::super::encoding::encode;
use super::super::input::decode;
use super::OperatorContext;
use super::run::RunWriter;

/// Bytes of a record up to which it is moved by the sort itself.
const PLAIN_MAX: usize = 32;

/// Records whose encodings are looked for at once.
const AHEAD: usize = 32;

/// What a sort has in memory; the keys may have something on the heap besides.
pub(super) enum Held<T, K> {
    Plain(Vec<Plain<T, K>>),
    Encoded {
        /// The encodings of all records, one behind the other.
        arena: Vec<u8>,
        entries: Vec<Entry<K>>,
    },
}

pub(super) struct Plain<T, K> {
    key: K,
    /// How many came before.
    place: u32,
    record: T,
}

pub(super) struct Entry<K> {
    key: K,
    /// Of the encoding in the arena.
    start: u32,
    length: u32,
}

impl<K> Entry<K> {
    fn encoding<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        &arena[start..start + self.length as usize]
    }
}

/// Sorted entries lead all over the arena, and waiting for memory would be most of the work: looks at
/// the encodings of the next entries together, so that the processor waits for all of them at once.
fn look_ahead<K>(entries: &[Entry<K>], arena: &[u8]) {
    let next = entries.iter().take(AHEAD);
    black_box(next.fold(0, |sum, entry| sum ^ arena[entry.start as usize]));
}

impl<T: Record, K> Held<T, K> {
    pub fn new() -> Self {
        if !needs_drop::<T>() && size_of::<T>() <= PLAIN_MAX {
            Self::Plain(Vec::new())
        } else {
            Self::Encoded { arena: Vec::new(), entries: Vec::new() }
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Plain(records) => records.is_empty(),
            Self::Encoded { entries, .. } => entries.is_empty(),
        }
    }

    /// In bytes.
    pub fn used(&self) -> usize {
        match self {
            Self::Plain(records) => size_of_val(records.as_slice()),
            Self::Encoded { arena, entries } => arena.len() + size_of_val(entries.as_slice()),
        }
    }

    /// What a record with an encoding of so many bytes takes.
    pub fn size_of(&self, length: usize) -> usize {
        match self {
            Self::Plain(_) => size_of::<Plain<T, K>>(),
            Self::Encoded { .. } => length + size_of::<Entry<K>>(),
        }
    }

    /// Of less than 4 GiB in all.
    pub fn add(&mut self, key: K, record: T, encoding: &[u8]) {
        match self {
            Self::Plain(records) => records.push(Plain { key, place: records.len() as u32, record }),
            Self::Encoded { arena, entries } => {
                let (start, length) = (arena.len() as u32, encoding.len() as u32);
                arena.extend_from_slice(encoding);
                entries.push(Entry { key, start, length });
            }
        }
    }

    /// By place where keys are equal, so no two are, and no second array is needed.
    pub fn sort(&mut self, compare: impl Fn(&K, &K) -> Ordering) {
        match self {
            Self::Plain(records) => {
                records.sort_unstable_by(|a, b| compare(&a.key, &b.key).then(a.place.cmp(&b.place)));
            }
            Self::Encoded { entries, .. } => {
                entries.sort_unstable_by(|a, b| compare(&a.key, &b.key).then(a.start.cmp(&b.start)));
            }
        }
    }

    /// All of them, in their order; none is left.
    pub async fn write(&mut self, context: &OperatorContext, run: &mut RunWriter) -> Result<(), BodyError> {
        match self {
            Self::Plain(records) => {
                let mut encoding = Vec::new();
                for Plain { record, .. } in &*records {
                    encode(record, &mut encoding).map_err(|error| {
                        context.error(format_args!("a record cannot be encoded: {error}"))
                    })?;
                    run.write(&encoding).await?;
                }
                records.clear();
            }
            Self::Encoded { arena, entries } => {
                for some in entries.chunks(AHEAD) {
                    look_ahead(some, arena);
                    for entry in some {
                        run.write(entry.encoding(arena)).await?;
                    }
                }
                entries.clear();
                arena.clear();
            }
        }
        Ok(())
    }

    pub fn into_records(self) -> HeldRecords<T, K> {
        match self {
            Self::Plain(records) => HeldRecords::Plain(records.into_iter()),
            Self::Encoded { arena, entries } => HeldRecords::Encoded { arena, entries: entries.into_iter() },
        }
    }
}

/// The records one by one.
pub(super) enum HeldRecords<T, K> {
    Plain(vec::IntoIter<Plain<T, K>>),
    Encoded { arena: Vec<u8>, entries: vec::IntoIter<Entry<K>> },
}

impl<T: Record, K> HeldRecords<T, K> {
    /// The key of the next record.
    #[inline]
    pub fn next_key(&self) -> Option<&K> {
        match self {
            Self::Plain(records) => records.as_slice().first().map(|plain| &plain.key),
            Self::Encoded { entries, .. } => entries.as_slice().first().map(|entry| &entry.key),
        }
    }

    /// The next record if it is kept as it is.
    #[inline]
    pub fn next_plain(&mut self) -> Option<T> {
        match self {
            Self::Plain(records) => records.next().map(|plain| plain.record),
            Self::Encoded { .. } => None,
        }
    }

    /// The next record, with its key.
    #[inline]
    pub fn next(&mut self, context: &OperatorContext) -> Result<Option<(K, T)>, BodyError> {
        match self {
            Self::Plain(records) => Ok(records.next().map(|Plain { key, record, .. }| (key, record))),
            Self::Encoded { arena, entries } => {
                if entries.len() % AHEAD == 0 {
                    look_ahead(entries.as_slice(), arena);
                }
                let Some(entry) = entries.as_slice().first() else { return Ok(None) };
                // What cannot be decoded stays, and is an error whenever it is asked for.
                let (record, _) = decode(context, entry.encoding(arena))?;
                Ok(entries.next().map(|entry| (entry.key, record)))
            }
        }
    }
}
