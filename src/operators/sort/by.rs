//! What records are sorted by.

use std::cmp::Ordering;
use std::sync::Arc;

use serde::Serialize;

use crate::api::{Record, SortKey};

use super::super::encoding::encode;
use super::{KeyBytes, SortBy};

/// Encodes the key of a record.
pub(in super::super) type KeyEncoder<T> = Arc<dyn Fn(&T) -> Result<KeyBytes, String> + Send + Sync>;

pub(in super::super) fn key_encoder<T: Record, K: Serialize + 'static>(
    key_of: Arc<dyn Fn(&T) -> K + Send + Sync>,
) -> KeyEncoder<T> {
    Arc::new(move |record| {
        let mut bytes = Vec::new();
        encode(&key_of(record), &mut bytes).map_err(|error| format!("a key cannot be encoded: {error}"))?;
        Ok(KeyBytes::from(bytes.as_slice()))
    })
}

/// By a key of the author's.
pub(in super::super) struct ByKey<F>(pub F);

impl<T, K: SortKey, F: Fn(&T) -> Result<K, String>> SortBy<T> for ByKey<F> {
    type Key = K;

    fn key(&self, record: &T) -> Result<K, String> {
        self.0(record)
    }

    fn compare(&self, one: &K, other: &K) -> Ordering {
        one.compare(other)
    }
}

/// By the encoding of a key, byte by byte: brings equal keys together.
pub(in super::super) struct ByEncoding<T>(pub KeyEncoder<T>);

impl<T> SortBy<T> for ByEncoding<T> {
    type Key = KeyBytes;

    fn key(&self, record: &T) -> Result<KeyBytes, String> {
        (self.0)(record)
    }

    fn compare(&self, one: &KeyBytes, other: &KeyBytes) -> Ordering {
        one.cmp(other)
    }
}

/// By the encoding of one key, and where that is equal by another key.
pub(in super::super) struct ByEncodingAndKey<T, F> {
    pub encode: KeyEncoder<T>,
    pub within: ByKey<F>,
}

impl<T, K: SortKey, F: Fn(&T) -> Result<K, String>> SortBy<T> for ByEncodingAndKey<T, F> {
    type Key = (KeyBytes, K);

    fn key(&self, record: &T) -> Result<(KeyBytes, K), String> {
        Ok(((self.encode)(record)?, self.within.key(record)?))
    }

    fn compare(&self, one: &(KeyBytes, K), other: &(KeyBytes, K)) -> Ordering {
        let within = || SortBy::<T>::compare(&self.within, &one.1, &other.1);
        one.0.cmp(&other.0).then_with(within)
    }
}
