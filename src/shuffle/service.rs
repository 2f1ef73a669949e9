//! The actor that serves the finished partitions of its TaskManager.

use std::collections::BTreeMap;

use crate::actor::{Actor, Boot, DiskOpId, Event, Outbox, Pending, Purpose, Time};
use crate::disk::{DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::{ActorId, Address, ProcessId, ResultPartitionId};
use crate::message::{
    AddCredit, Buffers, DropPartitions, FetchRange, FetchedBuffer, Message, OpenFetch, PartitionNotFound,
    PartitionsRegistered, RegisterPartitions,
};
use crate::note::Note;

use super::partition::StoredPartition;
use super::stream::{Piece, Stream};

/// Segments that fit into one message.
const MESSAGE_SEGMENTS: u64 = 8;

/// A reader and its number for the stream.
type StreamKey = (Address, u64);

/// Owner of the finished result partitions of a TaskManager.
pub struct ShuffleService {
    process: ProcessId,
    /// In bytes.
    segment_size: u64,
    partitions: BTreeMap<ResultPartitionId, StoredPartition>,
    /// A task that is stopped closes nothing, but its streams go with the first partition that they
    /// still need: there are never more than tasks were deployed to read the partitions that are here.
    streams: BTreeMap<StreamKey, Stream>,
    next_stream: u64,
    pending: Pending<Operation>,
}

#[derive(Debug)]
enum Operation {
    Read { key: StreamKey, stream: u64, read: usize, partition: ResultPartitionId },
    Delete,
}

impl ShuffleService {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            segment_size: boot.config.segment_size.0,
            partitions: BTreeMap::new(),
            streams: BTreeMap::new(),
            next_stream: 0,
            pending: Pending::default(),
        }
    }

    fn register(&mut self, from: Address, message: RegisterPartitions, out: &mut Outbox) {
        for partition in message.partitions {
            self.partitions.insert(partition.partition, StoredPartition::new(partition));
        }
        out.send(from, PartitionsRegistered { attempt: message.attempt });
    }

    fn drop_partitions(&mut self, message: DropPartitions, out: &mut Outbox) {
        for id in message.partitions {
            let Some(partition) = self.partitions.remove(&id) else { continue };
            let readers: Vec<StreamKey> =
                self.streams.iter().filter(|(_, stream)| stream.needs(id)).map(|(key, _)| *key).collect();
            for key in readers {
                self.refuse(key, id, out);
            }
            out.note(Note::PartitionReleased { partition: id });
            if partition.has_file() {
                let action = DiskOp::Delete { path: partition.path };
                out.disk(self.pending.begin(Operation::Delete), Volume::Local, Purpose::Partition, action);
            }
        }
    }

    fn open(&mut self, from: Address, message: OpenFetch, out: &mut Outbox) {
        let key = (from, message.fetch);
        if let Some(stream) = self.streams.get_mut(&key)
            && stream.ranges == message.ranges
            && stream.sent == message.start
        {
            // Nothing was lost: the reader is only impatient.
            stream.set_credit(message.credit);
            return self.serve(key, out);
        }
        match self.pieces(&message.ranges) {
            Ok(pieces) => {
                self.next_stream += 1;
                let stream =
                    Stream::new(self.next_stream, message.ranges, pieces, message.start, message.credit);
                self.streams.insert(key, stream);
                self.serve(key, out);
            }
            Err(partition) => self.refuse(key, partition, out),
        }
    }

    /// All buffers of the ranges, in order; an error names a partition that is not here.
    fn pieces(&self, ranges: &[FetchRange]) -> Result<Vec<Piece>, ResultPartitionId> {
        let mut pieces = Vec::new();
        for (index, range) in ranges.iter().enumerate() {
            let stored = self.partitions.get(&range.partition).filter(|p| p.covers(range.subpartitions));
            let stored = stored.ok_or(range.partition)?;
            pieces.extend(
                stored.chunks(range.subpartitions, self.segment_size).into_iter().map(|chunk| Piece {
                    range: index as u32,
                    partition: range.partition,
                    chunk,
                }),
            );
        }
        Ok(pieces)
    }

    /// Reads the stream's next batch, if there is credit for one; ends a stream that is served.
    fn serve(&mut self, key: StreamKey, out: &mut Outbox) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if stream.is_finished() {
            return self.send(key, Vec::new(), out);
        }
        let reads = stream.next_batch(MESSAGE_SEGMENTS * self.segment_size);
        let id = stream.id;
        for (index, read) in reads.iter().enumerate() {
            let Some(stored) = self.partitions.get(&read.partition) else {
                return self.refuse(key, read.partition, out);
            };
            let operation = Operation::Read { key, stream: id, read: index, partition: read.partition };
            let action = DiskOp::ReadRange {
                path: stored.path.clone(),
                offset: read.chunk.offset,
                length: read.chunk.length,
            };
            out.disk(self.pending.begin(operation), Volume::Local, Purpose::Partition, action);
        }
    }

    fn send(&mut self, key: StreamKey, buffers: Vec<FetchedBuffer>, out: &mut Outbox) {
        let Some(stream) = self.streams.get(&key) else { return };
        let finished = stream.is_finished();
        let sequence = stream.sent - buffers.len() as u64;
        out.send(key.0, Buffers { fetch: key.1, sequence, buffers, finished });
        if finished {
            self.streams.remove(&key);
        } else {
            self.serve(key, out);
        }
    }

    fn refuse(&mut self, key: StreamKey, partition: ResultPartitionId, out: &mut Outbox) {
        self.streams.remove(&key);
        out.send(key.0, PartitionNotFound { fetch: key.1, partition });
    }

    fn complete(&mut self, op: DiskOpId, result: DiskResult, out: &mut Outbox) {
        let (key, id, read, partition) = match self.pending.complete(op) {
            Some(Operation::Read { key, stream, read, partition }) => (key, stream, read, partition),
            Some(Operation::Delete) => {
                if let Err(error) = result {
                    out.note(Note::Warning { text: format!("a released partition is left over: {error}") });
                }
                return;
            }
            None => return,
        };
        let Some(stream) = self.streams.get_mut(&key).filter(|stream| stream.id == id) else { return };
        let outcome = match result {
            Ok(DiskOutput::Data(data)) => stream
                .complete(read, data)
                .map_err(|partition| format!("the file of partition {partition} is too short")),
            Ok(other) => Err(format!("a read of partition {partition} gave {other:?}")),
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(Some(buffers)) => self.send(key, buffers, out),
            Ok(None) => {}
            Err(text) => {
                out.note(Note::Warning { text });
                self.refuse(key, partition, out);
            }
        }
    }

    fn receive(&mut self, from: Address, message: Message, out: &mut Outbox) {
        let from_executor = from == Address::new(self.process, ActorId::Executor);
        match message {
            Message::RegisterPartitions(message) if from_executor => self.register(from, message, out),
            Message::DropPartitions(message) if from_executor => self.drop_partitions(message, out),
            Message::OpenFetch(message) => self.open(from, message, out),
            Message::AddCredit(AddCredit { fetch, credit }) => {
                if let Some(stream) = self.streams.get_mut(&(from, fetch)) {
                    stream.add_credit(credit);
                    self.serve((from, fetch), out);
                }
            }
            Message::CloseFetch(message) => {
                self.streams.remove(&(from, message.fetch));
            }
            _ => {}
        }
    }
}

impl Actor for ShuffleService {
    fn handle(&mut self, _now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start | Event::Timer(_) => {}
            Event::Message { from, message } => self.receive(from, message, out),
            Event::Disk { op, result } => self.complete(op, result, out),
        }
    }
}
