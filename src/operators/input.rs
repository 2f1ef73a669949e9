//! Decoding of input: buffers are whole postcard records, one behind the other. Bytes that are no
//! record fail the task with the operator's name.

use std::any::type_name;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use bytes::Bytes;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;
use super::chain::Push;
use super::encoding::ENCODABLE;

/// Takes the next record from a buffer, with the length of its encoding.
#[inline]
pub(super) fn decode<T: Record>(context: &OperatorContext, buffer: &[u8]) -> Result<(T, usize), BodyError> {
    take(buffer).ok_or_else(|| error_of::<T>(context, buffer))
}

#[inline]
fn take<T: Record>(buffer: &[u8]) -> Option<(T, usize)> {
    let (record, rest) = postcard::take_from_bytes::<T>(buffer).ok()?;
    let length = buffer.len() - rest.len();
    (length > 0).then_some((record, length))
}

/// Why no record can be taken.
#[cold]
fn error_of<T: Record>(context: &OperatorContext, buffer: &[u8]) -> BodyError {
    match postcard::take_from_bytes::<T>(buffer) {
        Err(error) => {
            let record = type_name::<T>();
            context.error(format_args!(
                "an input record cannot be decoded: {error}; it is a {record}, {ENCODABLE}"
            ))
        }
        Ok(_) => context.error("an input buffer holds bytes, but its records have none"),
    }
}

/// The head of a chain of push operators.
pub(super) async fn read_input<T: Record>(
    context: OperatorContext,
    mut push: Box<dyn Push<T>>,
) -> Result<(), BodyError> {
    push.open()?;
    while let Some(buffer) = context.task().next_buffer().await {
        let (mut at, mut records) = (0, 0);
        while at < buffer.bytes.len() {
            let (record, length) = decode(&context, &buffer.bytes[at..])?;
            at += length;
            records += 1;
            push.push(record)?;
        }
        context.task().count_records_in(records);
        if context.settling_is_due() {
            push.settle().await?;
        }
        context.task().room().await;
    }
    push.finish().await
}

/// A subtask's input, pulled record by record. They are decoded when they are asked for, so it may
/// be larger than memory.
pub(super) struct Input<T> {
    context: OperatorContext,
    buffer: Bytes,
    /// Of the record that [`Self::next`] gave last.
    start: usize,
    /// Of the record that was pulled last; where the next one begins.
    end: usize,
    /// Pulled and not yet counted.
    uncounted: u64,
    ended: bool,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> Input<T> {
    pub fn new(context: &OperatorContext) -> Self {
        let context = context.clone();
        let (buffer, record) = (Bytes::new(), PhantomData);
        Self { context, buffer, start: 0, end: 0, uncounted: 0, ended: false, record }
    }

    /// The next record; `None` after the last one, however often it is asked.
    pub async fn next(&mut self) -> Result<Option<T>, BodyError> {
        self.start = self.end;
        match self.buffered() {
            Some(record) => Ok(Some(record)),
            None => self.next_of_another_buffer().await,
        }
    }

    /// The next record if it is at hand.
    #[allow(clippy::inline_always, reason = "measured: a record that a call returns goes through memory")]
    #[inline(always)]
    pub fn buffered(&mut self) -> Option<T> {
        let (record, length) = take(&self.buffer[self.end..])?;
        self.end += length;
        self.uncounted += 1;
        Some(record)
    }

    /// As [`Self::buffered`], with its encoding.
    #[inline]
    pub fn buffered_encoded(&mut self) -> Option<(T, &[u8])> {
        let start = self.end;
        let record = self.buffered()?;
        Some((record, &self.buffer[start..self.end]))
    }

    /// Bytes that are at hand and not decoded yet.
    pub fn at_hand(&self) -> usize {
        self.buffer.len() - self.end
    }

    /// Folds the records at hand. What changes from record to record stays in registers.
    #[inline]
    pub fn fold_buffered<A>(&mut self, mut folded: A, function: &mut impl FnMut(A, T) -> A) -> A {
        let (buffer, mut end, mut pulled) = (&self.buffer[..], self.end, 0);
        while let Some((record, length)) = take(&buffer[end..]) {
            end += length;
            pulled += 1;
            folded = function(folded, record);
        }
        self.end = end;
        self.uncounted += pulled;
        folded
    }

    /// In a box, so that what is done for every record stays small enough to be inlined.
    #[cold]
    fn next_of_another_buffer(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<T>, BodyError>> + '_>> {
        self.count();
        Box::pin(async {
            while self.end == self.buffer.len() {
                if self.ended {
                    return Ok(None);
                }
                match self.context.task().next_buffer().await {
                    Some(next) => (self.buffer, self.start, self.end) = (next.bytes, 0, 0),
                    None => self.ended = true,
                }
            }
            let Some(record) = self.buffered() else {
                return Err(error_of::<T>(&self.context, &self.buffer[self.end..]));
            };
            Ok(Some(record))
        })
    }

    fn count(&mut self) {
        self.context.task().count_records_in(std::mem::take(&mut self.uncounted));
    }

    /// The encoding of the record that [`Self::next`] gave last.
    pub fn encoding(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Says that no more records are wanted.
    pub fn close(&mut self) {
        self.count();
        if !self.ended {
            self.context.task().close_inputs();
        }
    }
}
