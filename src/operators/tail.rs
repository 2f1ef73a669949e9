//! Tails: where records leave a chain. A tail encodes each record with postcard and decides its
//! subpartition; when a buffer is written is the task's business.
//!
//! With `n` subpartitions (which is not always the consumer's parallelism: a consumer subtask may
//! read several), numbered from 0, the subpartition of a record is
//! - **Forward** and **Broadcast**: 0, the only one; every consumer subtask of a broadcast reads it;
//! - **Hash**: `xxh3_64(bytes) mod n`, where `xxh3_64` is XXH3 with 64 bits, without seed or secret, and
//!   `bytes` is the postcard encoding of the record's key and nothing else;
//! - **Rebalance** and **Rescale**: `(s + i) mod n` for the `i`-th record, from 0, that producer
//!   subtask `s` sends over this edge. The two differ in `n` and in who reads: a rescale has as many
//!   subpartitions as one producer has consumers;
//! - **Shuffle**: `xxh3_64(s, i) mod n` for the same `s` and `i`, each as eight bytes, lowest first;
//! - **Custom**: what the author's function says.
//!
//! So an attempt deals records that it sees in the same order as an earlier one in the same way.

use std::any::type_name;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;
use super::chain::{AnyPush, LocalFuture, Push, Tail};
use super::encoding::{ENCODABLE, append, encode};

/// The subpartition of a record with this key, of `subpartitions` (at least 1).
pub fn subpartition_of_key(encoded_key: &[u8], subpartitions: u32) -> u32 {
    (xxh3_64(encoded_key) % u64::from(subpartitions)) as u32
}

/// The tail of a hash exchange.
pub fn hash_tail<T: Record, K: Serialize + 'static>(key_of: Arc<dyn Fn(&T) -> K + Send + Sync>) -> Tail {
    Arc::new(move |context, output| {
        AnyPush::new(HashTail {
            encoder: Encoder::new(context, output),
            key_of: Arc::clone(&key_of),
            key_bytes: Vec::new(),
            record: PhantomData,
        })
    })
}

/// The author's own choice of a subpartition for a record, of so many.
type Choose<T> = Arc<dyn Fn(&T, u32) -> u32 + Send + Sync>;

/// The tail of an exchange by the author's own function, which gets the number of subpartitions.
pub fn custom_tail<T: Record>(choose: Choose<T>) -> Tail {
    Arc::new(move |context, output| {
        AnyPush::new(CustomTail { encoder: Encoder::new(context, output), choose: Arc::clone(&choose) })
    })
}

/// Encodes records into one output.
struct Encoder {
    context: OperatorContext,
    output: usize,
    subpartitions: u32,
    records: u64,
    /// Of a record that is read back.
    probed: Vec<u8>,
}

/// So many records, and then fewer and fewer, are read back to see that reading takes what writing made.
const PROBED: u64 = 64;

impl Encoder {
    fn new(context: &OperatorContext, output: usize) -> Self {
        let subpartitions = context.task().subpartitions(output).max(1);
        Self { context: context.clone(), output, subpartitions, records: 0, probed: Vec::new() }
    }

    fn emit<T: Record>(&mut self, record: &T, subpartition: u32) -> Result<(), BodyError> {
        self.records += 1;
        if self.records <= PROBED || self.records.is_power_of_two() {
            self.probe(record)?;
        }
        let written = self.context.task().emit(self.output, subpartition, |buffer| append(record, buffer));
        match written {
            Ok(0) => {
                // Buffers are records without separators, so such records could not be counted.
                Err(self.context.error("records of a type without any content cannot leave a task"))
            }
            Ok(bytes) => {
                self.context.wrote(bytes);
                Ok(())
            }
            Err(error) => Err(self.cannot_encode::<T>(&error)),
        }
    }

    fn cannot_encode<T>(&self, error: &postcard::Error) -> BodyError {
        let record = type_name::<T>();
        self.context.error(format_args!("a record cannot be encoded: {error}; it is a {record}, {ENCODABLE}"))
    }

    /// Records lie one behind the other, so what reads one in another length than it was written in
    /// makes something else of all that follow.
    fn probe<T: Record>(&mut self, record: &T) -> Result<(), BodyError> {
        encode(record, &mut self.probed).map_err(|error| self.cannot_encode::<T>(&error))?;
        let written = self.probed.len();
        let read = match postcard::take_from_bytes::<T>(&self.probed) {
            Ok((_, [])) => return Ok(()),
            Ok((_, rest)) => format!("only {} of them are read", written - rest.len()),
            Err(error) => format!("they cannot be read: {error}"),
        };
        let record = type_name::<T>();
        Err(self.context.error(format_args!(
            "a record is written as {written} bytes, and {read}; it is a {record}, {ENCODABLE}"
        )))
    }
}

/// Forward and broadcast.
pub(super) struct SingleTail<T> {
    encoder: Encoder,
    record: PhantomData<fn(T)>,
}

impl<T> SingleTail<T> {
    pub(super) fn new(context: &OperatorContext, output: usize) -> Self {
        Self { encoder: Encoder::new(context, output), record: PhantomData }
    }
}

impl<T: Record> Push<T> for SingleTail<T> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.encoder.emit(&record, 0)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }
}

/// Rebalance and rescale.
pub(super) struct RoundRobinTail<T> {
    encoder: Encoder,
    next: u32,
    record: PhantomData<fn(T)>,
}

impl<T> RoundRobinTail<T> {
    pub(super) fn new(context: &OperatorContext, output: usize) -> Self {
        let encoder = Encoder::new(context, output);
        let next = context.task().subtask() % encoder.subpartitions;
        Self { encoder, next, record: PhantomData }
    }
}

impl<T: Record> Push<T> for RoundRobinTail<T> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.encoder.emit(&record, self.next)?;
        self.next = (self.next + 1) % self.encoder.subpartitions;
        Ok(())
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }
}

struct HashTail<T, K> {
    encoder: Encoder,
    key_of: Arc<dyn Fn(&T) -> K + Send + Sync>,
    key_bytes: Vec<u8>,
    record: PhantomData<fn(T)>,
}

impl<T: Record, K: Serialize> Push<T> for HashTail<T, K> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.encoder.context.enter();
        encode(&(self.key_of)(&record), &mut self.key_bytes)
            .map_err(|error| self.encoder.context.error(format_args!("a key cannot be encoded: {error}")))?;
        let subpartition = subpartition_of_key(&self.key_bytes, self.encoder.subpartitions);
        self.encoder.emit(&record, subpartition)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }
}

/// Shuffle.
pub(super) struct ShuffleTail<T> {
    encoder: Encoder,
    subtask: u64,
    sent: u64,
    record: PhantomData<fn(T)>,
}

impl<T> ShuffleTail<T> {
    pub(super) fn new(context: &OperatorContext, output: usize) -> Self {
        let subtask = u64::from(context.task().subtask());
        Self { encoder: Encoder::new(context, output), subtask, sent: 0, record: PhantomData }
    }
}

impl<T: Record> Push<T> for ShuffleTail<T> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        let subpartition = shuffled(self.subtask, self.sent, self.encoder.subpartitions);
        self.sent += 1;
        self.encoder.emit(&record, subpartition)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }
}

fn shuffled(subtask: u64, nth: u64, subpartitions: u32) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&subtask.to_le_bytes());
    place[8..].copy_from_slice(&nth.to_le_bytes());
    (xxh3_64(&place) % u64::from(subpartitions)) as u32
}

struct CustomTail<T> {
    encoder: Encoder,
    choose: Choose<T>,
}

impl<T: Record> Push<T> for CustomTail<T> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        let Encoder { context, subpartitions, .. } = &self.encoder;
        context.enter();
        let chosen = (self.choose)(&record, *subpartitions);
        if chosen >= *subpartitions {
            return Err(context.error(format_args!(
                "the partitioner said subpartition {chosen}, and there are {subpartitions}, counted from 0"
            )));
        }
        self.encoder.emit(&record, chosen)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        nothing_waits()
    }
}

/// The task writes buffers on its own; a tail has nothing to wait for.
fn nothing_waits<'a>() -> LocalFuture<'a> {
    Box::pin(std::future::ready(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are fixed: whoever reads a partition by key relies on them, also an interpreter
    /// that never runs this code.
    #[test]
    fn a_key_goes_to_the_subpartition_that_its_hash_says() {
        let mut bytes = Vec::new();
        encode(&1_i64, &mut bytes).unwrap();
        assert_eq!(bytes, [2]);
        for (key, expected) in [(0_i64, 3), (1, 2), (2, 2), (3, 2), (7, 1), (-1, 0), (i64::MAX, 1)] {
            encode(&key, &mut bytes).unwrap();
            assert_eq!(subpartition_of_key(&bytes, 5), expected, "key {key}");
        }
    }

    /// Fixed like the hashes of keys.
    #[test]
    fn a_shuffle_is_the_same_in_every_attempt_and_uses_all_subpartitions() {
        let dealt: Vec<u32> = (0..12).map(|nth| shuffled(1, nth, 3)).collect();
        assert_eq!(dealt, [1, 2, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0]);
        assert_ne!(dealt, (0..12).map(|nth| shuffled(2, nth, 3)).collect::<Vec<_>>());
    }

    #[test]
    fn encoding_replaces_what_was_in_the_scratch_buffer() {
        let mut bytes = vec![9, 9, 9];
        encode(&"ab", &mut bytes).unwrap();
        assert_eq!(bytes, [2, b'a', b'b']);
    }
}
