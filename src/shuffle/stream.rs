//! One reader's stream: what is still to be sent, what it has credit for, and the batch that is
//! being read from disk for its next message. At most one batch is under way, so what a stream holds
//! in memory is bounded by its credit and by the size of a message.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::ids::ResultPartitionId;
use crate::message::{FetchRange, FetchedBuffer};

use super::partition::Chunk;

#[derive(Debug)]
pub(super) struct Stream {
    /// Tells this stream from an earlier one of the same name.
    pub id: u64,
    pub ranges: Vec<FetchRange>,
    pieces: VecDeque<Piece>,
    /// Buffers sent, those included that the reader had before.
    pub sent: u64,
    credit: u32,
    batch: Option<Batch>,
}

/// A buffer to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index into the ranges.
    pub range: u32,
    pub partition: ResultPartitionId,
    pub chunk: Chunk,
}

#[derive(Debug)]
struct Batch {
    pieces: Vec<Piece>,
    reads: Vec<Read>,
}

/// A read of adjacent pieces, of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub partition: ResultPartitionId,
    pub chunk: Chunk,
    data: Option<Bytes>,
}

impl Stream {
    pub fn new(id: u64, ranges: Vec<FetchRange>, pieces: Vec<Piece>, start: u64, credit: u32) -> Self {
        let skipped = usize::try_from(start).unwrap_or(usize::MAX).min(pieces.len());
        Self {
            id,
            ranges,
            pieces: pieces.into_iter().skip(skipped).collect(),
            sent: start,
            credit,
            batch: None,
        }
    }

    pub fn add_credit(&mut self, credit: u32) {
        self.credit = self.credit.saturating_add(credit);
    }

    /// The reader says how much it has room for, beyond what was sent.
    pub fn set_credit(&mut self, credit: u32) {
        let under_way = self.batch.as_ref().map_or(0, |batch| batch.pieces.len() as u32);
        self.credit = credit.saturating_sub(under_way);
    }

    /// Whether all was sent.
    pub fn is_finished(&self) -> bool {
        self.pieces.is_empty() && self.batch.is_none()
    }

    /// Whether anything of the partition is still to be sent.
    pub fn needs(&self, partition: ResultPartitionId) -> bool {
        let under_way = self.batch.iter().flat_map(|batch| &batch.pieces);
        self.pieces.iter().chain(under_way).any(|piece| piece.partition == partition)
    }

    /// Begins the next batch: as many buffers as there is credit for, up to `limit` bytes. The
    /// reads that it takes; none if one is under way or nothing can be sent.
    pub fn next_batch(&mut self, limit: u64) -> Vec<Read> {
        if self.batch.is_some() {
            return Vec::new();
        }
        let mut pieces: Vec<Piece> = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.pieces.front().filter(|_| self.credit > 0) {
            bytes += piece.chunk.length;
            if bytes > limit && !pieces.is_empty() {
                break;
            }
            pieces.extend(self.pieces.pop_front());
            self.credit -= 1;
        }
        let reads = coalesce(&pieces);
        if !pieces.is_empty() {
            self.batch = Some(Batch { pieces, reads: reads.clone() });
        }
        reads
    }

    /// Takes in what one read of the batch gave. The batch's buffers if it was the last read; an
    /// error names the partition that has too few bytes.
    pub fn complete(
        &mut self,
        read: usize,
        data: Bytes,
    ) -> Result<Option<Vec<FetchedBuffer>>, ResultPartitionId> {
        let Some(batch) = &mut self.batch else { return Ok(None) };
        let Some(slot) = batch.reads.get_mut(read) else { return Ok(None) };
        if data.len() as u64 != slot.chunk.length {
            return Err(slot.partition);
        }
        slot.data = Some(data);
        if batch.reads.iter().any(|read| read.data.is_none()) {
            return Ok(None);
        }
        let buffers: Vec<FetchedBuffer> =
            batch.pieces.iter().filter_map(|piece| batch.buffer(piece)).collect();
        self.sent += buffers.len() as u64;
        self.batch = None;
        Ok(Some(buffers))
    }
}

impl Batch {
    fn buffer(&self, piece: &Piece) -> Option<FetchedBuffer> {
        let key = (piece.partition, piece.chunk.offset);
        let after = self.reads.partition_point(|read| (read.partition, read.chunk.offset) <= key);
        let read = self.reads.get(after.checked_sub(1)?)?;
        let start = usize::try_from(piece.chunk.offset - read.chunk.offset).ok()?;
        let end = start + usize::try_from(piece.chunk.length).ok()?;
        let data = read.data.as_ref().filter(|data| end <= data.len())?;
        Some(FetchedBuffer { range: piece.range, bytes: data.slice(start..end) })
    }
}

/// The fewest reads that cover the pieces and nothing else, by partition and offset. The chunks of
/// several subpartitions interleave in a file, so that pieces that are far apart in the stream can
/// be neighbours on disk.
fn coalesce(pieces: &[Piece]) -> Vec<Read> {
    let mut sorted: Vec<&Piece> = pieces.iter().collect();
    sorted.sort_by_key(|piece| (piece.partition, piece.chunk.offset));
    let mut reads: Vec<Read> = Vec::new();
    for Piece { partition, chunk, .. } in sorted {
        match reads.last_mut() {
            Some(last)
                if last.partition == *partition && last.chunk.offset + last.chunk.length == chunk.offset =>
            {
                last.chunk.length += chunk.length;
            }
            _ => reads.push(Read { partition: *partition, chunk: *chunk, data: None }),
        }
    }
    reads
}
