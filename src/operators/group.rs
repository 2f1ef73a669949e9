//! The records of one key, one key after the other.

use crate::api::Record;
use crate::task::BodyError;

use super::sort::{ByEncoding, KeyBytes, Sorted};

/// The records of a key, in the order of their arrival.
pub(super) struct Group<T> {
    key: KeyBytes,
    first: Option<T>,
    /// This key's and all later ones.
    rest: Box<Sorted<T, ByEncoding<T>>>,
    /// The first record of the next key.
    next: Option<(KeyBytes, T)>,
    ended: bool,
}

impl<T: Record> Group<T> {
    /// The first key of records that come in the order of their keys.
    pub async fn first(mut records: Sorted<T, ByEncoding<T>>) -> Result<Option<Self>, BodyError> {
        let first = records.next().await?;
        Ok(Self::begin(first, Box::new(records)))
    }

    fn begin(first: Option<(KeyBytes, T)>, rest: Box<Sorted<T, ByEncoding<T>>>) -> Option<Self> {
        let (key, record) = first?;
        Some(Self { key, first: Some(record), rest, next: None, ended: false })
    }

    /// The next record if it is at hand.
    #[inline]
    pub fn buffered(&mut self) -> Option<T> {
        self.first.take().or_else(|| self.rest.buffered_of(&self.key))
    }

    pub async fn next(&mut self) -> Result<Option<T>, BodyError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.ended {
            return Ok(None);
        }
        match self.rest.next().await? {
            Some((key, record)) if key == self.key => return Ok(Some(record)),
            next => self.next = next,
        }
        self.ended = true;
        Ok(None)
    }

    /// The next key; what is left of this one is passed over.
    pub async fn into_next(mut self) -> Result<Option<Self>, BodyError> {
        while self.next().await?.is_some() {}
        Ok(Self::begin(self.next, self.rest))
    }
}
