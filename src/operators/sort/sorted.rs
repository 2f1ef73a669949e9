//! The records of a sort, in order, pulled one by one.

use crate::api::Record;
use crate::task::BodyError;

use super::held::HeldRecords;
use super::merge::Merge;
use super::{OperatorContext, SortBy};

pub(in super::super) struct Sorted<T, S: SortBy<T>>(Place<T, S>);

enum Place<T, S: SortBy<T>> {
    Memory { context: OperatorContext, records: HeldRecords<T, S::Key> },
    Disk(Merge<T, S>),
}

impl<T: Record, S: SortBy<T>> Sorted<T, S> {
    pub(super) fn in_memory(context: OperatorContext, records: HeldRecords<T, S::Key>) -> Self {
        Self(Place::Memory { context, records })
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
        let Place::Memory { context, records } = &mut self.0 else { return None };
        if records.next_key()? != key {
            return None;
        }
        let (_, record) = records.next(context).ok()??;
        Some(record)
    }

    /// The next record if nothing is to be done for it.
    #[inline]
    pub fn at_hand(&mut self) -> Option<T> {
        match &mut self.0 {
            Place::Memory { records, .. } => records.next_plain(),
            Place::Disk(_) => None,
        }
    }

    /// The next record, with its key.
    pub async fn next(&mut self) -> Result<Option<(S::Key, T)>, BodyError> {
        match &mut self.0 {
            Place::Memory { context, records } => records.next(context),
            Place::Disk(merge) => merge.next().await,
        }
    }
}
