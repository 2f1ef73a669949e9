//! Decoding of input: buffers are whole postcard records, one behind the other. Bytes that are no
//! record fail the task with the operator's name.

use std::marker::PhantomData;

use bytes::Bytes;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;
use super::chain::Push;
use super::output::Failure;

/// Takes the next record from a buffer.
fn decode<T: Record>(context: &OperatorContext, buffer: &[u8]) -> Result<(T, usize), BodyError> {
    let (record, rest) = postcard::take_from_bytes::<T>(buffer)
        .map_err(|error| context.error(format_args!("an input record cannot be decoded: {error}")))?;
    let length = buffer.len() - rest.len();
    if length == 0 {
        return Err(context.error("an input buffer holds bytes, but its records have none"));
    }
    Ok((record, length))
}

/// The head of a chain of push operators.
pub(super) async fn read_input<T: Record>(
    context: OperatorContext,
    mut push: Box<dyn Push<T>>,
) -> Result<(), BodyError> {
    while let Some(buffer) = context.task().next_buffer().await {
        let mut at = 0;
        while at < buffer.bytes.len() {
            let (record, length) = decode(&context, &buffer.bytes[at..])?;
            at += length;
            context.task().count_records_in(1);
            push.push(record)?;
        }
        if context.settling_is_due() {
            push.settle().await?;
        }
        context.task().room().await;
    }
    push.finish().await
}

/// A partition's records, pulled one by one by a window function. They are decoded when they are
/// asked for, so a partition may be larger than memory.
pub struct Records<T> {
    context: OperatorContext,
    failure: Failure,
    buffer: Bytes,
    at: usize,
    ended: bool,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> Records<T> {
    pub(super) fn new(context: OperatorContext, failure: Failure) -> Self {
        Self { context, failure, buffer: Bytes::new(), at: 0, ended: false, record: PhantomData }
    }

    /// The next record; `None` after the last one, however often it is asked. When the input is
    /// broken the task fails, and this never returns.
    pub async fn next(&mut self) -> Option<T> {
        while self.at == self.buffer.len() {
            if self.ended {
                return None;
            }
            match self.context.task().next_buffer().await {
                Some(next) => (self.buffer, self.at) = (next.bytes, 0),
                None => self.ended = true,
            }
        }
        match decode(&self.context, &self.buffer[self.at..]) {
            Ok((record, length)) => {
                self.at += length;
                self.context.task().count_records_in(1);
                Some(record)
            }
            Err(error) => self.failure.fail(error).await,
        }
    }

    /// Says that the function wants no more records.
    pub(super) fn close(&self) {
        if !self.ended {
            self.context.task().close_inputs();
        }
    }
}
