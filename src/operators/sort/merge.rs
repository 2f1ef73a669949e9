//! Merging runs. As many at once as memory has room for; if there are more, neighbouring runs become
//! one first, again and again.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use crate::api::Record;
use crate::task::BodyError;

use super::super::encoding::encode;
use super::super::input::decode;
use super::run::{Run, RunReader, RunWriter};
use super::{OperatorContext, SortBy};

/// A run is read in pieces of at least so many bytes, as long as there are few enough.
const PIECE_MIN: usize = 64 << 10;
const PIECE_MAX: usize = 1 << 20;
/// Files that are open at once.
const RUNS_MAX: usize = 128;

/// The next record of a run.
struct Head<T, S: SortBy<T>> {
    by: Arc<S>,
    key: S::Key,
    record: T,
    run: usize,
}

/// The greatest is the one that comes first: a heap has the greatest on top.
impl<T, S: SortBy<T>> Ord for Head<T, S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.by.compare(&other.key, &self.key).then_with(|| other.run.cmp(&self.run))
    }
}

impl<T, S: SortBy<T>> PartialOrd for Head<T, S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T, S: SortBy<T>> PartialEq for Head<T, S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T, S: SortBy<T>> Eq for Head<T, S> {}

/// Several runs as one.
pub(super) struct Merge<T, S: SortBy<T>> {
    context: OperatorContext,
    by: Arc<S>,
    readers: Vec<RunReader>,
    heads: BinaryHeap<Head<T, S>>,
}

impl<T: Record, S: SortBy<T>> Merge<T, S> {
    /// `memory` in bytes is for all runs together.
    async fn begin(
        context: &OperatorContext,
        by: Arc<S>,
        runs: Vec<Run>,
        memory: usize,
    ) -> Result<Self, BodyError> {
        let piece = (memory / runs.len().max(1)).clamp(1, PIECE_MAX);
        let mut merge = Self { context: context.clone(), by, readers: Vec::new(), heads: BinaryHeap::new() };
        for (number, run) in runs.into_iter().enumerate() {
            merge.readers.push(RunReader::new(context, run, piece));
            if let Some((key, record)) = merge.read(number).await? {
                merge.heads.push(Head { by: Arc::clone(&merge.by), key, record, run: number });
            }
        }
        Ok(merge)
    }

    async fn read(&mut self, run: usize) -> Result<Option<(S::Key, T)>, BodyError> {
        read::<T, S>(&self.context, &self.by, &mut self.readers[run]).await
    }

    pub async fn next(&mut self) -> Result<Option<(S::Key, T)>, BodyError> {
        let Some(mut top) = self.heads.peek_mut() else { return Ok(None) };
        let next = read::<T, S>(&self.context, &self.by, &mut self.readers[top.run]).await?;
        Ok(Some(if let Some((key, record)) = next {
            (std::mem::replace(&mut top.key, key), std::mem::replace(&mut top.record, record))
        } else {
            let Head { key, record, .. } = PeekMut::pop(top);
            (key, record)
        }))
    }
}

async fn read<T: Record, S: SortBy<T>>(
    context: &OperatorContext,
    by: &S,
    reader: &mut RunReader,
) -> Result<Option<(S::Key, T)>, BodyError> {
    let Some(encoding) = reader.next().await? else { return Ok(None) };
    let (record, _) = decode(context, encoding)?;
    context.enter();
    let key = by.key(&record).map_err(|error| context.error(error))?;
    Ok(Some((key, record)))
}

/// All of the runs as one, when there are few enough. `begun` runs have numbers already.
pub(super) async fn merge_to_few<T: Record, S: SortBy<T>>(
    context: &OperatorContext,
    by: Arc<S>,
    mut runs: Vec<Run>,
    mut begun: usize,
    memory: usize,
) -> Result<Merge<T, S>, BodyError> {
    let at_once = (memory / PIECE_MIN).clamp(2, RUNS_MAX);
    while runs.len() > at_once {
        let mut fewer = Vec::new();
        let mut left = runs.into_iter().peekable();
        while left.peek().is_some() {
            let some: Vec<Run> = left.by_ref().take(at_once).collect();
            let mut merge = Merge::<T, S>::begin(context, Arc::clone(&by), some, memory).await?;
            let mut run = RunWriter::create(context, begun).await?;
            begun += 1;
            let mut encoding = Vec::new();
            while let Some((_, record)) = merge.next().await? {
                encode(&record, &mut encoding)
                    .map_err(|error| context.error(format_args!("a record cannot be encoded: {error}")))?;
                run.write(&encoding).await?;
            }
            fewer.push(run.finish().await?);
        }
        runs = fewer;
    }
    Merge::begin(context, by, runs, memory).await
}
