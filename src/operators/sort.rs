//! Sorting a partition that may be larger than memory. Records are kept with their keys beside them.
//! When memory is used up they are sorted, and their encodings written to a run on the scratch volume;
//! at the end all runs are merged. Equal keys keep the order in which they came. It never
//! leaves a run behind that was read to its end; what a task that fails leaves is its TaskManager's
//! to delete.

use std::cmp::Ordering;
use std::mem::{needs_drop, take};
use std::sync::Arc;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;

mod by;
mod held;
mod key_bytes;
mod merge;
mod run;
mod sorted;

pub(super) use by::{ByEncoding, ByEncodingAndKey, ByKey, KeyEncoder, key_encoder};
pub(super) use key_bytes::KeyBytes;
pub(super) use sorted::Sorted;

use held::Held;
use merge::merge_to_few;
use run::{Run, RunWriter};

/// A total order of records by something that is computed once for each.
pub(super) trait SortBy<T> {
    type Key;

    fn key(&self, record: &T) -> Result<Self::Key, String>;

    fn compare(&self, one: &Self::Key, other: &Self::Key) -> Ordering;
}

/// What the key of a record with an encoding of so many bytes has on the heap. Not known exactly: a key is about as
/// large as the record it is made from, or smaller.
const fn key_bytes<K>(length: usize) -> usize {
    if needs_drop::<K>() { 2 * length + 32 } else { 0 }
}

/// Takes the records of a partition.
pub(super) struct Sorter<T, S: SortBy<T>> {
    context: OperatorContext,
    by: Arc<S>,
    /// In bytes.
    memory: usize,
    held: Held<T, S::Key>,
    /// What the keys may have on the heap.
    key_bytes: usize,
    runs: Vec<Run>,
    /// Runs that were begun.
    begun: usize,
}

impl<T: Record, S: SortBy<T>> Sorter<T, S> {
    pub fn new(context: &OperatorContext, by: Arc<S>, memory: u64) -> Self {
        Self {
            context: context.clone(),
            by,
            memory: usize::try_from(memory).unwrap_or(usize::MAX),
            held: Held::new(),
            key_bytes: 0,
            runs: Vec::new(),
            begun: 0,
        }
    }

    /// Takes a record with its encoding.
    pub async fn add(&mut self, record: T, encoding: &[u8]) -> Result<(), BodyError> {
        if !self.has_room(encoding.len()) && !self.held.is_empty() {
            self.spill().await?;
        }
        self.hold(record, encoding)
    }

    /// Whether a record with an encoding of so many bytes fits into memory beside what is there.
    #[inline]
    pub fn has_room(&self, length: usize) -> bool {
        let used = self.held.used() + self.key_bytes;
        let more = self.held.size_of(length) + key_bytes::<S::Key>(length);
        used + more <= self.memory.min(u32::MAX as usize)
    }

    /// Takes a record for which there is room.
    #[inline]
    pub fn hold(&mut self, record: T, encoding: &[u8]) -> Result<(), BodyError> {
        let key = self.by.key(&record).map_err(|error| self.context.error(error))?;
        self.key_bytes += key_bytes::<S::Key>(encoding.len());
        self.held.add(key, record, encoding);
        Ok(())
    }

    fn sort(&mut self) {
        self.held.sort(|one, other| self.by.compare(one, other));
    }

    /// Writes what is in memory to a run of its own.
    async fn spill(&mut self) -> Result<(), BodyError> {
        self.sort();
        let mut run = RunWriter::create(&self.context, self.begun).await?;
        self.begun += 1;
        self.held.write(&self.context, &mut run).await?;
        self.runs.push(run.finish().await?);
        self.key_bytes = 0;
        Ok(())
    }

    /// All records, in order.
    pub async fn finish(mut self) -> Result<Sorted<T, S>, BodyError> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::in_memory(self.context, self.held.into_records()));
        }
        if !self.held.is_empty() {
            self.spill().await?;
        }
        // The merge needs the memory.
        self.held = Held::new();
        let runs = take(&mut self.runs);
        let Self { context, by, memory, begun, .. } = self;
        merge_to_few(&context, by, runs, begun, memory).await.map(Sorted::merged)
    }
}
