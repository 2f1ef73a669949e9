//! A finished partition as the shuffle serves it.

use crate::message::{BufferLocation, FinishedPartition, IndexRange};

#[derive(Debug)]
pub(super) struct StoredPartition {
    pub path: String,
    subpartitions: u32,
    /// By subpartition, within it in the order of production.
    buffers: Vec<BufferLocation>,
}

/// A part of a partition's file that goes out as one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub offset: u64,
    /// In bytes.
    pub length: u64,
}

impl StoredPartition {
    pub fn new(partition: FinishedPartition) -> Self {
        let mut buffers = partition.buffers;
        buffers.sort_by_key(|buffer| buffer.subpartition);
        Self { path: partition.path, subpartitions: partition.subpartitions, buffers }
    }

    pub fn has_file(&self) -> bool {
        !self.buffers.is_empty()
    }

    /// Whether it has all these subpartitions.
    pub fn covers(&self, range: IndexRange) -> bool {
        range.start > range.end || range.end < self.subpartitions
    }

    /// The range's buffers in the order (subpartition, production). Small ones that follow one
    /// another in the file as well become one of up to `limit` bytes: a task writes the rest of all
    /// its subpartitions together, so a small partition is one buffer to each reader.
    pub fn chunks(&self, range: IndexRange, limit: u64) -> Vec<Chunk> {
        let from = self.buffers.partition_point(|buffer| buffer.subpartition < range.start);
        let mut chunks: Vec<Chunk> = Vec::new();
        for buffer in self.buffers[from..].iter().take_while(|buffer| buffer.subpartition <= range.end) {
            let length = u64::from(buffer.length);
            match chunks.last_mut() {
                Some(last) if last.offset + last.length == buffer.offset && last.length + length <= limit => {
                    last.length += length;
                }
                _ => chunks.push(Chunk { offset: buffer.offset, length }),
            }
        }
        chunks
    }
}
