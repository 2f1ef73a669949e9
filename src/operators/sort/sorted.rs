//! The records of a sort, in order, pulled one by one.

use std::vec;

use crate::api::Record;
use crate::task::BodyError;

use super::super::input::decode;
use super::merge::Merge;
use super::{Entry, OperatorContext, SortBy};

pub(in super::super) struct Sorted<T, S: SortBy<T>>(Place<T, S>);

enum Place<T, S: SortBy<T>> {
    Memory { context: OperatorContext, arena: Vec<u8>, entries: vec::IntoIter<Entry<S::Key>> },
    Disk(Merge<T, S>),
}

impl<T: Record, S: SortBy<T>> Sorted<T, S> {
    pub(super) fn in_memory(context: OperatorContext, arena: Vec<u8>, entries: Vec<Entry<S::Key>>) -> Self {
        Self(Place::Memory { context, arena, entries: entries.into_iter() })
    }

    pub(super) fn merged(merge: Merge<T, S>) -> Self {
        Self(Place::Disk(merge))
    }

    /// The next record, with its key.
    pub async fn next(&mut self) -> Result<Option<(S::Key, T)>, BodyError> {
        match &mut self.0 {
            Place::Memory { context, arena, entries } => {
                let Some(Entry { key, start, length }) = entries.next() else { return Ok(None) };
                let start = start as usize;
                let (record, _) = decode(context, &arena[start..start + length as usize])?;
                Ok(Some((key, record)))
            }
            Place::Disk(merge) => merge.next().await,
        }
    }
}
