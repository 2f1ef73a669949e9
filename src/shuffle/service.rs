//! The actor that serves the finished partitions of its TaskManager or shuffle service, and in a
//! shuffle service takes those that tasks push.

use std::collections::BTreeMap;

use crate::actor::{Actor, Boot, DiskOpId, Event, Outbox, Pending, Purpose, Time};
use crate::disk::{DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::{Address, FencingToken, ProcessId, ResultPartitionId};
use crate::message::{
    AddCredit, Buffers, DataPushed, DropPartitions, FetchRange, FetchedBuffer, FinishedPartition, Message,
    OpenFetch, PartitionNotFound, PartitionsRefused, PartitionsRegistered, PushData, PushRefused,
    RegisterPartitions,
};
use crate::note::Note;
use crate::task::partition_path;

use super::partition::StoredPartition;
use super::pushed::{Answer, Pushed, Unknown};
use super::stream::{Piece, Stream};

/// Segments that fit into one message.
const MESSAGE_SEGMENTS: u64 = 8;

/// A reader and its number for the stream.
type StreamKey = (Address, u64);

/// Owner of the finished result partitions of a TaskManager or of a shuffle service.
#[derive(Debug)]
pub struct ShuffleService {
    process: ProcessId,
    /// In bytes.
    segment_size: u64,
    partitions: BTreeMap<ResultPartitionId, StoredPartition>,
    /// A task that is stopped closes nothing, but its streams go with the first partition that they
    /// still need: there are never more than tasks were deployed to read the partitions that are here.
    streams: BTreeMap<StreamKey, Stream>,
    next_stream: u64,
    /// Only in a shuffle service.
    pushed: Option<Pushed>,
    pending: Pending<Operation>,
}

#[derive(Debug)]
enum Operation {
    Read {
        key: StreamKey,
        stream: u64,
        read: usize,
        partition: ResultPartitionId,
    },
    Delete,
    Close,
    /// A write of a partition that is being pushed.
    Push {
        partition: ResultPartitionId,
    },
}

impl ShuffleService {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            segment_size: boot.config.segment_size.0,
            partitions: BTreeMap::new(),
            streams: BTreeMap::new(),
            next_stream: 0,
            pushed: matches!(boot.process, ProcessId::ShuffleService(_)).then(Pushed::default),
            pending: Pending::default(),
        }
    }

    fn register(&mut self, from: Address, message: RegisterPartitions, out: &mut Outbox) {
        let attempt = message.attempt;
        let is_new = |p: &FinishedPartition| !self.partitions.contains_key(&p.partition);
        let partitions: Vec<_> = message.partitions.into_iter().filter(is_new).collect();
        if let Some(pushed) = &mut self.pushed {
            match pushed.complete(&partitions) {
                Ok(paths) => {
                    for path in paths {
                        self.disk(Operation::Close, DiskOp::Close { path }, out);
                    }
                }
                Err(reason) => return out.send(from, PartitionsRefused { attempt, reason }),
            }
        }
        for partition in partitions {
            self.partitions.insert(partition.partition, StoredPartition::new(partition));
        }
        out.send(from, PartitionsRegistered { attempt });
    }

    fn drop_partitions(&mut self, message: DropPartitions, out: &mut Outbox) {
        for id in message.partitions {
            let Some(partition) = self.partitions.remove(&id) else {
                let unfinished = self.pushed.as_mut().and_then(|pushed| pushed.drop_partition(id));
                self.delete(unfinished, out);
                continue;
            };
            let readers: Vec<StreamKey> =
                self.streams.iter().filter(|(_, stream)| stream.needs(id)).map(|(key, _)| *key).collect();
            for key in readers {
                self.refuse(key, id, out);
            }
            out.note(Note::PartitionReleased { partition: id });
            if partition.has_file() {
                self.delete(Some(partition.path), out);
            }
        }
    }

    fn delete(&mut self, path: Option<String>, out: &mut Outbox) {
        if let Some(path) = path {
            self.disk(Operation::Delete, DiskOp::Delete { path }, out);
        }
    }

    fn disk(&mut self, operation: Operation, action: DiskOp, out: &mut Outbox) {
        out.disk(self.pending.begin(operation), Volume::Local, Purpose::Partition, action);
    }

    // ---- what tasks push ----

    fn push(&mut self, from: Address, message: PushData, out: &mut Outbox) {
        let partition = message.partition;
        if self.partitions.contains_key(&partition) {
            return; // a late repetition
        }
        let answer = match &mut self.pushed {
            Some(pushed) => pushed.push(from, message),
            None => Answer::Refuse(message.offset, "it is not a shuffle service".to_owned()),
        };
        self.answer(from, partition, answer, out);
    }

    fn answer(&mut self, to: Address, partition: ResultPartitionId, answer: Answer, out: &mut Outbox) {
        match answer {
            Answer::Nothing => {}
            Answer::Write(action) => self.disk(Operation::Push { partition }, action, out),
            Answer::Pushed(length) => out.send(to, DataPushed { partition, length }),
            Answer::Refuse(offset, reason) => {
                let reason = format!("{} does not take it: {reason}", self.process);
                out.send(to, PushRefused { partition, offset, reason });
            }
        }
    }

    fn accept_pushes(&mut self, token: Option<FencingToken>, out: &mut Outbox) {
        let dropped = self.pushed.as_mut().map(|pushed| pushed.accept(token));
        for path in dropped.into_iter().flatten() {
            self.delete(Some(path), out);
        }
    }

    fn written(&mut self, partition: ResultPartitionId, result: &DiskResult, out: &mut Outbox) {
        let Some(pushed) = &mut self.pushed else { return };
        match pushed.written(partition, result) {
            Ok((to, answer)) => {
                let failed = matches!(answer, Answer::Refuse(..));
                self.answer(to, partition, answer, out);
                if failed {
                    self.delete(Some(partition_path(partition)), out);
                }
            }
            // It was dropped meanwhile: what was under way may have made its file.
            Err(Unknown) => self.delete(Some(partition_path(partition)), out),
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
            Some(Operation::Push { partition }) => return self.written(partition, &result, out),
            Some(Operation::Close) | None => return,
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
        let from_worker = from == Address::worker(self.process);
        match message {
            Message::RegisterPartitions(message) if from_worker => self.register(from, message, out),
            Message::DropPartitions(message) if from_worker => self.drop_partitions(message, out),
            Message::AcceptPushes(message) if from_worker => self.accept_pushes(message.token, out),
            Message::PushData(message) => self.push(from, message, out),
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
