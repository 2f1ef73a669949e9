//! Runs: sorted records on the scratch volume, each record's encoding behind its length. A run is one
//! file, written once and read once, in large pieces.

use std::ops::Range;

use bytes::Bytes;

use crate::actor::Purpose;
use crate::disk::Volume;
use crate::task::{BodyError, spill_path};

use super::OperatorContext;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 256 << 10;

/// A run that is complete.
#[derive(Debug)]
pub(super) struct Run {
    path: String,
    /// In bytes.
    length: u64,
}

pub(super) struct RunWriter {
    context: OperatorContext,
    path: String,
    length: u64,
    waiting: Vec<u8>,
}

impl RunWriter {
    /// Begins run number `number` of a task.
    pub async fn create(context: &OperatorContext, number: usize) -> Result<Self, BodyError> {
        let path = spill_path(context.task().attempt(), number);
        let created = context.task().create(Volume::Scratch, Purpose::Spill, &path).await;
        created.map_err(|error| context.error(error))?;
        Ok(Self { context: context.clone(), path, length: 0, waiting: Vec::new() })
    }

    #[inline]
    pub async fn write(&mut self, encoding: &[u8]) -> Result<(), BodyError> {
        self.waiting.extend_from_slice(&(encoding.len() as u32).to_le_bytes());
        self.waiting.extend_from_slice(encoding);
        if self.waiting.len() >= WRITE_BYTES {
            // The first piece grew as it came, for most runs of a small memory are smaller.
            return self.append(WRITE_BYTES + encoding.len()).await;
        }
        Ok(())
    }

    /// Writes what waits, and makes room for so many bytes.
    async fn append(&mut self, room: usize) -> Result<(), BodyError> {
        let bytes = Bytes::from(std::mem::replace(&mut self.waiting, Vec::with_capacity(room)));
        self.length += bytes.len() as u64;
        let task = self.context.task();
        let appended = task.append(Volume::Scratch, Purpose::Spill, &self.path, bytes).await;
        appended.map_err(|error| self.context.error(error))
    }

    pub async fn finish(mut self) -> Result<Run, BodyError> {
        if !self.waiting.is_empty() {
            self.append(0).await?;
        }
        Ok(Run { path: self.path, length: self.length })
    }
}

pub(super) struct RunReader {
    context: OperatorContext,
    run: Run,
    /// How much of the file was read.
    offset: u64,
    buffer: Vec<u8>,
    /// Where in the buffer the next record begins.
    at: usize,
    /// Bytes that are read at once.
    piece: usize,
}

/// Bytes of the length before a record.
const HEADER: usize = 4;

impl RunReader {
    pub fn new(context: &OperatorContext, run: Run, piece: usize) -> Self {
        Self { context: context.clone(), run, offset: 0, buffer: Vec::new(), at: 0, piece }
    }

    /// The encoding of the next record. The file is deleted when there is none left.
    #[inline]
    pub async fn next(&mut self) -> Result<Option<&[u8]>, BodyError> {
        let place = match self.buffered() {
            Some(place) => Some(place),
            None => self.next_of_another_piece().await?,
        };
        Ok(place.map(|place| &self.buffer[place]))
    }

    /// The place of the next record, if all of it is at hand.
    #[inline]
    fn buffered(&mut self) -> Option<Range<usize>> {
        let (header, rest) = self.buffer[self.at..].split_first_chunk::<HEADER>()?;
        let length = u32::from_le_bytes(*header) as usize;
        if rest.len() < length {
            return None;
        }
        let start = self.at + HEADER;
        self.at = start + length;
        Some(start..self.at)
    }

    async fn next_of_another_piece(&mut self) -> Result<Option<Range<usize>>, BodyError> {
        if self.at == self.buffer.len() && self.offset == self.run.length {
            let deleted = self.context.task().delete(Volume::Scratch, Purpose::Spill, &self.run.path).await;
            deleted.map_err(|error| self.context.error(error))?;
            return Ok(None);
        }
        self.fill(HEADER).await?;
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.buffer[self.at..self.at + HEADER]);
        self.fill(HEADER + u32::from_le_bytes(header) as usize).await?;
        Ok(self.buffered())
    }

    /// Reads until so many bytes of the next record are in the buffer.
    async fn fill(&mut self, bytes: usize) -> Result<(), BodyError> {
        while self.buffer.len() - self.at < bytes {
            self.buffer.drain(..self.at);
            self.at = 0;
            let missing = (bytes - self.buffer.len()).max(self.piece) as u64;
            let length = missing.min(self.run.length - self.offset);
            let task = self.context.task();
            let read = task.read(Volume::Scratch, Purpose::Spill, &self.run.path, self.offset, length).await;
            let read = read.map_err(|error| self.context.error(error))?;
            if read.is_empty() {
                let (path, length, found) = (&self.run.path, self.run.length, self.offset);
                return Err(self.context.error(format_args!(
                    "spill file {path} ends after {found} bytes, {length} were written"
                )));
            }
            self.offset += read.len() as u64;
            self.buffer.extend_from_slice(&read);
        }
        Ok(())
    }
}
