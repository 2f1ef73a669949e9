//! Decoding of input: buffers are whole postcard records, one behind the other. Bytes that are no
//! record fail the task with the operator's name.

use std::marker::PhantomData;

use bytes::Bytes;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;
use super::chain::Push;

/// Takes the next record from a buffer.
pub(super) fn decode<T: Record>(context: &OperatorContext, buffer: &[u8]) -> Result<(T, usize), BodyError> {
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
    push.open()?;
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

/// A subtask's input, pulled record by record. They are decoded when they are asked for, so it may
/// be larger than memory.
pub(super) struct Input<T> {
    context: OperatorContext,
    buffer: Bytes,
    /// Of the record that was pulled last; its end is where the next one begins.
    start: usize,
    end: usize,
    ended: bool,
    record: PhantomData<fn() -> T>,
}

impl<T: Record> Input<T> {
    pub fn new(context: &OperatorContext) -> Self {
        let context = context.clone();
        Self { context, buffer: Bytes::new(), start: 0, end: 0, ended: false, record: PhantomData }
    }

    /// The next record; `None` after the last one, however often it is asked.
    pub async fn next(&mut self) -> Result<Option<T>, BodyError> {
        while self.end == self.buffer.len() {
            if self.ended {
                return Ok(None);
            }
            match self.context.task().next_buffer().await {
                Some(next) => (self.buffer, self.start, self.end) = (next.bytes, 0, 0),
                None => self.ended = true,
            }
        }
        let (record, length) = decode(&self.context, &self.buffer[self.end..])?;
        self.start = self.end;
        self.end += length;
        self.context.task().count_records_in(1);
        Ok(Some(record))
    }

    /// The encoding of the record that came last.
    pub fn encoding(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Says that no more records are wanted.
    pub fn close(&self) {
        if !self.ended {
            self.context.task().close_inputs();
        }
    }
}
