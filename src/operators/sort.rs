//! Sorting a partition that may be larger than memory. Records are kept in their encoding, with
//! their keys beside them. When memory is used up they are sorted and written to a run on the scratch
//! volume; at the end all runs are merged. Equal keys keep the order in which they came. It never
//! leaves a run behind that was read to its end; what a task that fails leaves is its TaskManager's
//! to delete.

use std::cmp::Ordering;
use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::{needs_drop, size_of, take};
use std::sync::Arc;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;

mod by;
mod key_bytes;
mod merge;
mod run;
mod sorted;

pub(super) use by::{ByEncoding, ByEncodingAndKey, ByKey, KeyEncoder, key_encoder};
pub(super) use key_bytes::KeyBytes;
pub(super) use sorted::Sorted;

use merge::merge_to_few;
use run::{Run, RunWriter};

/// A total order of records by something that is computed once for each.
pub(super) trait SortBy<T> {
    type Key;

    fn key(&self, record: &T) -> Result<Self::Key, String>;

    fn compare(&self, one: &Self::Key, other: &Self::Key) -> Ordering;
}

/// A record in memory.
struct Entry<K> {
    key: K,
    /// Of its encoding in the arena.
    start: u32,
    length: u32,
}

impl<K> Entry<K> {
    fn encoding<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        let start = self.start as usize;
        &arena[start..start + self.length as usize]
    }
}

/// Records whose encodings are looked for at once.
const AHEAD: usize = 32;

/// Sorted entries lead all over the arena, and waiting for memory would be most of the work: looks at
/// the encodings of the next entries together, so that the processor waits for all of them at once.
fn look_ahead<K>(entries: &[Entry<K>], arena: &[u8]) {
    let next = entries.iter().take(AHEAD);
    black_box(next.fold(0, |sum, entry| sum ^ arena[entry.start as usize]));
}

/// Takes the records of a partition.
pub(super) struct Sorter<T, S: SortBy<T>> {
    context: OperatorContext,
    by: Arc<S>,
    /// In bytes.
    memory: usize,
    /// The encodings of all records in memory, one behind the other.
    arena: Vec<u8>,
    entries: Vec<Entry<S::Key>>,
    /// What the keys may have outside of their entries.
    key_bytes: usize,
    runs: Vec<Run>,
    /// Runs that were begun.
    begun: usize,
    record: PhantomData<fn(T)>,
}

impl<T: Record, S: SortBy<T>> Sorter<T, S> {
    pub fn new(context: &OperatorContext, by: Arc<S>, memory: u64) -> Self {
        Self {
            context: context.clone(),
            by,
            memory: usize::try_from(memory).unwrap_or(usize::MAX),
            arena: Vec::new(),
            entries: Vec::new(),
            key_bytes: 0,
            runs: Vec::new(),
            begun: 0,
            record: PhantomData,
        }
    }

    /// Takes a record with its encoding.
    pub async fn add(&mut self, record: &T, encoding: &[u8]) -> Result<(), BodyError> {
        let key = self.by.key(record).map_err(|error| self.context.error(error))?;
        // Neither is known exactly: a key is about as large as the record it is made from, or smaller.
        let key_bytes = if needs_drop::<S::Key>() { 2 * encoding.len() + 32 } else { 0 };
        let used = self.arena.len() + self.entries.len() * size_of::<Entry<S::Key>>() + self.key_bytes;
        let more = encoding.len() + size_of::<Entry<S::Key>>() + key_bytes;
        if used + more > self.memory.min(u32::MAX as usize) && !self.entries.is_empty() {
            self.spill().await?;
        }
        let (start, length) = (self.arena.len() as u32, encoding.len() as u32);
        self.arena.extend_from_slice(encoding);
        self.entries.push(Entry { key, start, length });
        self.key_bytes += key_bytes;
        Ok(())
    }

    fn sort(&mut self) {
        let by = &self.by;
        // By place where keys are equal, so no two are, and no second array is needed.
        self.entries.sort_unstable_by(|a, b| by.compare(&a.key, &b.key).then_with(|| a.start.cmp(&b.start)));
    }

    /// Writes what is in memory to a run of its own.
    async fn spill(&mut self) -> Result<(), BodyError> {
        self.sort();
        let mut run = RunWriter::create(&self.context, self.begun).await?;
        self.begun += 1;
        for entries in self.entries.chunks(AHEAD) {
            look_ahead(entries, &self.arena);
            for entry in entries {
                run.write(entry.encoding(&self.arena)).await?;
            }
        }
        self.runs.push(run.finish().await?);
        self.entries.clear();
        self.arena.clear();
        self.key_bytes = 0;
        Ok(())
    }

    /// All records, in order.
    pub async fn finish(mut self) -> Result<Sorted<T, S>, BodyError> {
        if self.runs.is_empty() {
            self.sort();
            return Ok(Sorted::in_memory(self.context, self.arena, self.entries));
        }
        if !self.entries.is_empty() {
            self.spill().await?;
        }
        // The merge needs the memory.
        (self.arena, self.entries) = (Vec::new(), Vec::new());
        let runs = take(&mut self.runs);
        let Self { context, by, memory, begun, .. } = self;
        merge_to_few(&context, by, runs, begun, memory).await.map(Sorted::merged)
    }
}
