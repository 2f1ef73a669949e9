//! The records of a sort, in order, pulled one by one.

use std::vec;

use crate::api::Record;
use crate::task::BodyError;

use super::super::input::decode;
use super::merge::Merge;
use super::{AHEAD, Entry, OperatorContext, SortBy, look_ahead};

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

    /// The next record if it is in memory and has this key.
    #[inline]
    pub fn buffered_of(&mut self, key: &S::Key) -> Option<T>
    where
        S::Key: PartialEq,
    {
        let Place::Memory { context, arena, entries } = &mut self.0 else { return None };
        let entry = entries.as_slice().first()?;
        if entry.key != *key {
            return None;
        }
        // What cannot be decoded stays, and is an error for who asks without haste.
        let (record, _) = decode(context, entry.encoding(arena)).ok()?;
        entries.next();
        Some(record)
    }

    /// The next record, with its key.
    pub async fn next(&mut self) -> Result<Option<(S::Key, T)>, BodyError> {
        match &mut self.0 {
            Place::Memory { context, arena, entries } => {
                if entries.len() % AHEAD == 0 {
                    look_ahead(entries.as_slice(), arena);
                }
                let Some(entry) = entries.next() else { return Ok(None) };
                let (record, _) = decode(context, entry.encoding(arena))?;
                Ok(Some((entry.key, record)))
            }
            Place::Disk(merge) => merge.next().await,
        }
    }
}
