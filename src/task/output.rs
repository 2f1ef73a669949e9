//! A task's output: for each output edge one partition in one file, a concatenation of buffers that
//! each hold whole records of one subpartition. The file is on the `local` volume, or with a shuffle
//! service to which the bytes are pushed. Where they lie is kept in memory. It decides when buffers
//! are written; it never reads them, and it never has two writes to one file under way, because
//! effects complete in any order.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::actor::{DiskOpId, Outbox, Purpose};
use crate::config::MAX_PARALLELISM;
use crate::disk::{DiskError, DiskOp, DiskResult, Volume};
use crate::ids::{Address, ProcessId, ResultPartitionId};
use crate::message::{
    BufferLocation, DataPushed, FinishedPartition, PushData, PushRefused, ResultPartitionDescriptor,
};

use super::partition_path;
use super::shared::OpIds;

/// Buffers' worth of unwritten output above which a body has to wait.
const ROOM_BUFFERS: u64 = 4;
/// Buffers' worth of output that is pushed in one message at most.
const PUSH_BUFFERS: usize = 8;

/// All result partitions of a task.
#[derive(Debug)]
pub(super) struct Outputs {
    partitions: Vec<OutputPartition>,
    /// In bytes.
    segment_size: usize,
    /// Something was sealed since there was room for the last time.
    sealed: bool,
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
    target: Target,
    /// Of the file when all that is ready is written.
    length: u64,
    buffers: Vec<BufferLocation>,
}

#[derive(Debug)]
enum Target {
    File(File),
    Service(Push),
}

/// Of a buffer when its first record comes. It need not grow from nothing, and most of a wide exchange stay small.
const FIRST_BYTES: usize = 512;

/// What a shuffle service was sent.
#[derive(Debug)]
struct Push {
    service: ProcessId,
    /// Bytes that it has written.
    offset: u64,
    /// Those that come next: under way, and not told to be written.
    under_way: Bytes,
    /// Behind them.
    queued: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Absent,
    Idle,
    /// A creation or an append is under way.
    Busy,
}

impl Outputs {
    /// Of a task that runs in the process `here`.
    pub fn new(here: ProcessId, descriptors: &[ResultPartitionDescriptor], segment_size: u64) -> Self {
        let partitions =
            descriptors.iter().map(|descriptor| OutputPartition::new(here, descriptor)).collect();
        Self {
            partitions,
            segment_size: usize::try_from(segment_size).unwrap_or(usize::MAX).max(1),
            sealed: false,
            writes: BTreeMap::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    pub fn subpartitions(&self, output: usize) -> u32 {
        self.partitions[output].current.len() as u32
    }

    pub fn emit<R>(&mut self, output: usize, subpartition: u32, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let partition = &mut self.partitions[output];
        let buffer = &mut partition.current[subpartition as usize];
        if buffer.capacity() == 0 {
            buffer.reserve(FIRST_BYTES.min(self.segment_size));
        }
        let result = write(buffer);
        if buffer.len() >= self.segment_size {
            partition.seal(subpartition);
            self.sealed = true;
        }
        result
    }

    /// Asked for every record, so it only counts when there may be less room than before: unwritten
    /// output grows by what is sealed and by nothing else.
    pub fn has_room(&mut self) -> bool {
        if self.sealed {
            let unwritten: u64 = self.partitions.iter().map(OutputPartition::unwritten).sum();
            self.sealed = unwritten > ROOM_BUFFERS * self.segment_size as u64;
        }
        !self.sealed
    }

    /// No record will follow: what is left in the buffers is to be written, too.
    pub fn seal_all(&mut self) {
        self.sealed = true;
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
            if let Target::Service(push) = &mut partition.target {
                (push.under_way, push.queued) = (Bytes::new(), Bytes::new());
            }
        }
    }

    /// Writes what is ready to the files that are not busy: one append or push for each.
    pub fn start_writes(&mut self, ids: &mut OpIds, out: &mut Outbox) {
        let limit = self.segment_size.saturating_mul(PUSH_BUFFERS);
        for (index, partition) in self.partitions.iter_mut().enumerate() {
            let file = match &mut partition.target {
                Target::Service(push) => {
                    push.start(partition.partition, &mut partition.ready, limit, out);
                    continue;
                }
                Target::File(file) => file,
            };
            if partition.ready.is_empty() || *file == File::Busy {
                continue;
            }
            let path = partition.path.clone();
            let action = if *file == File::Absent {
                DiskOp::CreateNew { path }
            } else {
                let bytes = Bytes::from(std::mem::take(&mut partition.ready));
                partition.writing = bytes.len() as u64;
                DiskOp::Append { path, bytes }
            };
            *file = File::Busy;
            let op = ids.next();
            self.writes.insert(op, index);
            out.disk(op, Volume::Local, Purpose::Partition, action);
        }
    }

    /// `None` if the operation is not one of these partitions'.
    pub fn complete(&mut self, op: DiskOpId, result: &DiskResult) -> Option<Result<(), DiskError>> {
        let partition = &mut self.partitions[self.writes.remove(&op)?];
        partition.writing = 0;
        partition.target = Target::File(File::Idle);
        Some(result.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    /// A shuffle service has so much of a partition. Whether the body may have waited for it.
    pub fn pushed(&mut self, from: Address, message: DataPushed) -> bool {
        let Some(push) = self.push(from, message.partition) else { return false };
        let end = push.offset + push.under_way.len() as u64;
        let is_next = !push.under_way.is_empty() && message.length == end;
        if is_next {
            push.offset = end;
            push.under_way = Bytes::new();
        }
        is_next
    }

    /// Whether this is about the push that is under way: then its task cannot go on.
    pub fn is_refused(&mut self, from: Address, message: &PushRefused) -> bool {
        let push = self.push(from, message.partition);
        push.is_some_and(|push| !push.under_way.is_empty() && push.offset == message.offset)
    }

    fn push(&mut self, from: Address, partition: ResultPartitionId) -> Option<&mut Push> {
        let partition = self.partitions.iter_mut().find(|output| output.partition == partition)?;
        match &mut partition.target {
            Target::Service(push) if from == Address::shuffle(push.service) => Some(push),
            _ => None,
        }
    }

    /// The first push under way: its output and its offset.
    pub fn waiting(&self) -> Option<(usize, u64)> {
        let under_way = |output: &OutputPartition| match &output.target {
            Target::Service(push) if !push.under_way.is_empty() => Some(push.offset),
            _ => None,
        };
        self.partitions.iter().enumerate().find_map(|(index, output)| Some((index, under_way(output)?)))
    }

    /// Sends again what a silent shuffle service has not told to be written.
    pub fn repeat(&self, output: usize, out: &mut Outbox) {
        let Some(OutputPartition { partition, target: Target::Service(push), .. }) =
            self.partitions.get(output)
        else {
            return;
        };
        push.send(*partition, out);
    }

    /// The partition of an output, with the process that keeps it if it is a shuffle service.
    pub fn keeper(&self, output: usize) -> Option<(ResultPartitionId, ProcessId)> {
        match self.partitions.get(output)? {
            OutputPartition { partition, target: Target::Service(push), .. } => {
                Some((*partition, push.service))
            }
            _ => None,
        }
    }

    /// Whether no write to a local file is under way.
    pub fn is_idle(&self) -> bool {
        self.writes.is_empty()
    }

    /// Whether all that was sealed is written.
    pub fn is_written(&self) -> bool {
        self.is_idle() && self.partitions.iter().all(|partition| partition.unwritten() == 0)
    }

    /// Lets go of the files.
    pub fn close(&self, ids: &mut OpIds, out: &mut Outbox) {
        let files = self
            .partitions
            .iter()
            .filter(|partition| matches!(partition.target, Target::File(File::Idle | File::Busy)));
        for partition in files {
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
    fn new(here: ProcessId, descriptor: &ResultPartitionDescriptor) -> Self {
        let target = if descriptor.location == here {
            Target::File(File::Absent)
        } else {
            Target::Service(Push {
                service: descriptor.location,
                offset: 0,
                under_way: Bytes::new(),
                queued: Bytes::new(),
            })
        };
        Self {
            partition: descriptor.partition,
            path: partition_path(descriptor.partition),
            current: vec![Vec::new(); descriptor.subpartitions.min(MAX_PARALLELISM) as usize],
            ready: Vec::new(),
            writing: 0,
            target,
            length: 0,
            buffers: Vec::new(),
        }
    }

    /// In bytes.
    fn unwritten(&self) -> u64 {
        let pushed = match &self.target {
            Target::File(_) => 0,
            Target::Service(push) => push.under_way.len() + push.queued.len(),
        };
        (self.ready.len() + pushed) as u64 + self.writing
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

impl Push {
    /// Sends the next bytes, at most `limit` of them, if those before are written.
    fn start(&mut self, partition: ResultPartitionId, ready: &mut Vec<u8>, limit: usize, out: &mut Outbox) {
        if !self.under_way.is_empty() {
            return;
        }
        if self.queued.is_empty() {
            self.queued = Bytes::from(std::mem::take(ready));
        }
        self.under_way = self.queued.split_to(self.queued.len().min(limit));
        if !self.under_way.is_empty() {
            self.send(partition, out);
        }
    }

    fn send(&self, partition: ResultPartitionId, out: &mut Outbox) {
        let message = PushData { partition, offset: self.offset, bytes: self.under_way.clone() };
        out.send(Address::shuffle(self.service), message);
    }
}
