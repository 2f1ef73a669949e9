//! A task's output: for each output edge one partition in one file on the `local` volume, a
//! concatenation of buffers that each hold whole records of one subpartition. Where they lie is
//! kept in memory. It decides when buffers are written; it never reads them, and it never has two
//! writes to one file under way, because effects complete in any order.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::actor::{DiskOpId, Outbox, Purpose};
use crate::config::MAX_PARALLELISM;
use crate::disk::{DiskError, DiskOp, DiskResult, Volume};
use crate::ids::ResultPartitionId;
use crate::message::{BufferLocation, FinishedPartition, ResultPartitionDescriptor};

use super::partition_path;
use super::shared::OpIds;

/// Buffers' worth of unwritten output above which a body has to wait.
const ROOM_BUFFERS: u64 = 4;

/// All result partitions of a task.
#[derive(Debug)]
pub(super) struct Outputs {
    partitions: Vec<OutputPartition>,
    /// In bytes.
    segment_size: usize,
    writes: BTreeMap<DiskOpId, usize>,
}

#[derive(Debug)]
struct OutputPartition {
    partition: ResultPartitionId,
    path: String,
    /// The buffer of each subpartition that records are added to.
    current: Vec<Vec<u8>>,
    /// Full buffers, one behind the other, that wait for the write under way.
    ready: Vec<u8>,
    /// Bytes in the append under way.
    writing: u64,
    file: File,
    /// Of the file when all that is ready is written.
    length: u64,
    buffers: Vec<BufferLocation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Absent,
    Idle,
    /// A creation or an append is under way.
    Busy,
}

impl Outputs {
    pub fn new(descriptors: &[ResultPartitionDescriptor], segment_size: u64) -> Self {
        let partitions = descriptors.iter().map(OutputPartition::new).collect();
        Self {
            partitions,
            segment_size: usize::try_from(segment_size).unwrap_or(usize::MAX).max(1),
            writes: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    pub fn subpartitions(&self, output: usize) -> u32 {
        self.partitions[output].current.len() as u32
    }

    pub fn emit(&mut self, output: usize, subpartition: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let partition = &mut self.partitions[output];
        let buffer = &mut partition.current[subpartition as usize];
        write(buffer);
        if buffer.len() >= self.segment_size {
            partition.seal(subpartition);
        }
    }

    pub fn has_room(&self) -> bool {
        let unwritten: u64 = self.partitions.iter().map(|p| p.ready.len() as u64 + p.writing).sum();
        unwritten <= ROOM_BUFFERS * self.segment_size as u64
    }

    /// No record will follow: what is left in the buffers is to be written, too.
    pub fn seal_all(&mut self) {
        for partition in &mut self.partitions {
            for subpartition in 0..partition.current.len() as u32 {
                partition.seal(subpartition);
            }
        }
    }

    /// Nothing more is to be written.
    pub fn abandon(&mut self) {
        for partition in &mut self.partitions {
            partition.ready = Vec::new();
            partition.current = Vec::new();
        }
    }

    /// Writes what is ready to the files that are not busy: one append for each.
    pub fn start_writes(&mut self, ids: &mut OpIds, out: &mut Outbox) {
        for (index, partition) in self.partitions.iter_mut().enumerate() {
            if partition.ready.is_empty() || partition.file == File::Busy {
                continue;
            }
            let path = partition.path.clone();
            let action = if partition.file == File::Absent {
                DiskOp::CreateNew { path }
            } else {
                let bytes = Bytes::from(std::mem::take(&mut partition.ready));
                partition.writing = bytes.len() as u64;
                DiskOp::Append { path, bytes }
            };
            partition.file = File::Busy;
            let op = ids.next();
            self.writes.insert(op, index);
            out.disk(op, Volume::Local, Purpose::Partition, action);
        }
    }

    /// `None` if the operation is not one of these partitions'.
    pub fn complete(&mut self, op: DiskOpId, result: &DiskResult) -> Option<Result<(), DiskError>> {
        let partition = &mut self.partitions[self.writes.remove(&op)?];
        partition.writing = 0;
        partition.file = File::Idle;
        Some(result.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    /// Whether no write is under way.
    pub fn is_idle(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether all that was sealed is written.
    pub fn is_written(&self) -> bool {
        self.is_idle() && self.partitions.iter().all(|partition| partition.ready.is_empty())
    }

    /// Lets go of the files.
    pub fn close(&self, ids: &mut OpIds, out: &mut Outbox) {
        for partition in self.partitions.iter().filter(|partition| partition.file != File::Absent) {
            let action = DiskOp::Close { path: partition.path.clone() };
            out.disk(ids.next(), Volume::Local, Purpose::Partition, action);
        }
    }

    /// In bytes, written or ready.
    pub fn bytes(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.length).sum()
    }

    pub fn take_partitions(&mut self) -> Vec<FinishedPartition> {
        std::mem::take(&mut self.partitions)
            .into_iter()
            .map(|partition| FinishedPartition {
                partition: partition.partition,
                path: partition.path,
                subpartitions: partition.current.len() as u32,
                buffers: partition.buffers,
            })
            .collect()
    }
}

impl OutputPartition {
    fn new(descriptor: &ResultPartitionDescriptor) -> Self {
        Self {
            partition: descriptor.partition,
            path: partition_path(descriptor.partition),
            current: vec![Vec::new(); descriptor.subpartitions.min(MAX_PARALLELISM) as usize],
            ready: Vec::new(),
            writing: 0,
            file: File::Absent,
            length: 0,
            buffers: Vec::new(),
        }
    }

    fn seal(&mut self, subpartition: u32) {
        let buffer = &mut self.current[subpartition as usize];
        if buffer.is_empty() {
            return;
        }
        let location = BufferLocation { subpartition, offset: self.length, length: buffer.len() as u32 };
        self.length += buffer.len() as u64;
        self.buffers.push(location);
        self.ready.extend_from_slice(buffer);
        buffer.clear();
    }
}
