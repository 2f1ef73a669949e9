//! The shuffle driven by hand, over files that are slices of one text.

use bytes::Bytes;

use crate::actor::{Actor, Boot, DiskOpId, Effect, Event, Outbox, Time};
use crate::config::{Configuration, MemorySize};
use crate::disk::{DiskError, DiskErrorKind, DiskOp, DiskOutput, Volume};
use crate::ids::{
    ActorId, Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId,
    JobVertexId, ProcessId, ResultPartitionId, SessionId,
};
use crate::message::{
    AddCredit, BufferLocation, CloseFetch, DropPartitions, FetchRange, FinishedPartition, IndexRange,
    Message, OpenFetch, PartitionNotFound, PartitionsRegistered, RegisterPartitions,
};
use crate::note::Note;

use super::ShuffleService;

const HERE: ProcessId = ProcessId::TaskManager(1);
const FILE: &str = "aaaabbbbccccddddeeeeffffgggghhhh";

fn attempt(vertex: u32, subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId {
        subtask: ExecutionVertexId::new(JobVertexId(vertex), subtask),
        epoch: FencingToken(1),
        number: 1,
    }
}

fn id(index: u32) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(0), producer: attempt(0, index) }
}

fn reader() -> Address {
    Address::new(ProcessId::TaskManager(2), ActorId::Task(attempt(1, 0)))
}

fn range(index: u32, start: u32, end: u32) -> FetchRange {
    FetchRange { partition: id(index), subpartitions: IndexRange::new(start, end) }
}

/// A partition of four-byte buffers, of these subpartitions in the order of production.
fn stored(index: u32, subpartitions: u32, buffers: &[u32]) -> FinishedPartition {
    let location =
        |(i, &subpartition): (usize, &u32)| BufferLocation { subpartition, offset: 4 * i as u64, length: 4 };
    FinishedPartition {
        partition: id(index),
        path: format!("partitions/{index}"),
        subpartitions,
        buffers: buffers.iter().enumerate().map(location).collect(),
    }
}

struct Bench {
    shuffle: ShuffleService,
    reads: usize,
    notes: Vec<Note>,
    deleted: Vec<String>,
    waiting: Vec<(DiskOpId, DiskOp)>,
}

impl Bench {
    fn with(segment: u64, partitions: Vec<FinishedPartition>) -> Self {
        let config = Configuration { segment_size: MemorySize(segment), ..Configuration::default() };
        let boot = Boot { process: HERE, session: SessionId(1), config, volumes: vec![Volume::Local] };
        let shuffle = ShuffleService::new(&boot);
        let mut bench = Self { shuffle, reads: 0, notes: vec![], deleted: vec![], waiting: vec![] };
        let attempt = partitions[0].partition.producer;
        let told = bench.say(Address::executor(HERE), RegisterPartitions { attempt, partitions });
        assert_eq!(told, [PartitionsRegistered { attempt }.into()]);
        bench
    }

    /// Lets it handle the event; the messages to the reader. Disk operations wait.
    fn handle(&mut self, event: Event) -> Vec<Message> {
        let mut out = Outbox::new();
        self.shuffle.handle(Time(0), event, &mut out);
        let mut sent = Vec::new();
        for effect in out.take() {
            match effect {
                Effect::Send { to, message } => {
                    assert!(to == reader() || to == Address::executor(HERE), "{to}");
                    sent.push(message);
                }
                Effect::Disk { op, action, volume: Volume::Local, .. } => self.waiting.push((op, action)),
                Effect::Note(note) => self.notes.push(note),
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    /// Completes all disk operations, the last first; the messages to the reader.
    fn disk(&mut self) -> Vec<Message> {
        let mut sent = Vec::new();
        while let Some((op, action)) = self.waiting.pop() {
            let output = match action {
                DiskOp::ReadRange { offset, length, .. } => {
                    self.reads += 1;
                    let end = FILE.len().min((offset + length) as usize);
                    DiskOutput::Data(Bytes::from_static(&FILE.as_bytes()[offset as usize..end]))
                }
                DiskOp::Delete { path } => {
                    self.deleted.push(path);
                    DiskOutput::Done
                }
                other => panic!("{other:?}"),
            };
            sent.extend(self.handle(Event::Disk { op, result: Ok(output) }));
        }
        sent
    }

    fn say(&mut self, from: Address, message: impl Into<Message>) -> Vec<Message> {
        self.handle(Event::Message { from, message: message.into() })
    }

    fn open(&mut self, ranges: Vec<FetchRange>, start: u64, credit: u32) -> String {
        let mut sent = self.say(reader(), OpenFetch { fetch: 3, ranges, start, credit });
        sent.extend(self.disk());
        text(&sent)
    }

    fn credit(&mut self, credit: u32) -> String {
        let mut sent = self.say(reader(), AddCredit { fetch: 3, credit });
        sent.extend(self.disk());
        text(&sent)
    }
}

/// Each message as `sequence[range:bytes ...]`, with a full stop if it is the last.
fn text(messages: &[Message]) -> String {
    let one = |message: &Message| match message {
        Message::Buffers(message) => {
            assert_eq!(message.fetch, 3);
            let buffer = |b: &crate::message::FetchedBuffer| {
                format!("{}:{}", b.range, String::from_utf8(b.bytes.to_vec()).unwrap())
            };
            let buffers: Vec<String> = message.buffers.iter().map(buffer).collect();
            let end = if message.finished { "." } else { "" };
            format!("{}[{}]{end}", message.sequence, buffers.join(" "))
        }
        Message::PartitionNotFound(PartitionNotFound { fetch: 3, partition }) => format!("no {partition}"),
        other => panic!("{other:?}"),
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_small_fetch_is_one_read_for_each_partition_and_one_message() {
    let mut bench = Bench::with(64, vec![stored(0, 3, &[0, 1, 2]), stored(1, 3, &[0, 1, 2])]);
    assert_eq!(bench.open(vec![range(0, 0, 1), range(1, 1, 2)], 0, 8), "0[0:aaaabbbb 1:bbbbcccc].");
    assert_eq!(bench.reads, 2);
}

#[test]
fn subpartitions_come_in_order_though_they_interleave_in_the_file() {
    let mut bench = Bench::with(4, vec![stored(0, 2, &[1, 0, 1, 0])]);
    assert_eq!(bench.open(vec![range(0, 0, 1)], 0, 8), "0[0:bbbb 0:dddd 0:aaaa 0:cccc].");
    assert_eq!(bench.reads, 1, "neighbours on disk are read at once");
    let mut bench = Bench::with(4, vec![stored(0, 2, &[1, 0, 1, 0])]);
    assert_eq!(bench.open(vec![range(0, 0, 0)], 0, 8), "0[0:bbbb 0:dddd].");
    assert_eq!(bench.reads, 2, "what nobody wants is not read");
}

#[test]
fn no_more_buffers_leave_than_there_is_credit_for() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0; 5])]);
    assert_eq!(bench.open(vec![range(0, 0, 0)], 0, 2), "0[0:aaaa 0:bbbb]");
    assert_eq!(bench.credit(1), "2[0:cccc]");
    assert_eq!(bench.credit(5), "3[0:dddd 0:eeee].");
    assert_eq!(bench.credit(5), "", "a finished stream is forgotten");
}

#[test]
fn a_message_is_bounded_in_bytes() {
    let mut bench = Bench::with(3, vec![stored(0, 1, &[0; 8])]);
    let sent = bench.open(vec![range(0, 0, 0)], 0, 100);
    assert_eq!(sent, "0[0:aaaa 0:bbbb 0:cccc 0:dddd 0:eeee 0:ffff] 6[0:gggg 0:hhhh].");
}

#[test]
fn an_empty_range_is_finished_at_once_without_a_read() {
    let mut bench = Bench::with(4, vec![stored(0, 2, &[]), stored(1, 2, &[0])]);
    assert_eq!(bench.open(vec![range(0, 0, 1), range(1, 1, 1)], 0, 2), "0[].");
    assert_eq!(bench.reads, 0);
}

#[test]
fn a_reader_that_asks_again_gets_what_it_has_not_got() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0; 5])]);
    assert_eq!(bench.open(vec![range(0, 0, 0)], 0, 2), "0[0:aaaa 0:bbbb]");
    assert_eq!(bench.open(vec![range(0, 0, 0)], 1, 2), "1[0:bbbb 0:cccc]");
    assert_eq!(bench.open(vec![range(0, 0, 0)], 3, 8), "3[0:dddd 0:eeee].");
    assert_eq!(bench.open(vec![range(0, 0, 0)], 5, 8), "5[].");
}

#[test]
fn an_impatient_reader_does_not_start_the_read_again() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0; 3])]);
    let open = OpenFetch { fetch: 3, ranges: vec![range(0, 0, 0)], start: 0, credit: 2 };
    bench.say(reader(), open.clone());
    bench.say(reader(), open);
    assert_eq!(bench.waiting.len(), 1);
    assert_eq!(text(&bench.disk()), "0[0:aaaa 0:bbbb]");
}

#[test]
fn unknown_partitions_and_subpartitions_are_refused() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0])]);
    assert_eq!(bench.open(vec![range(0, 0, 0), range(1, 0, 0)], 0, 2), format!("no {}", id(1)));
    assert_eq!(bench.open(vec![range(0, 0, 1)], 0, 2), format!("no {}", id(0)));
}

#[test]
fn a_partition_dropped_in_mid_fetch_is_refused_and_its_file_deleted() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0; 3]), stored(1, 1, &[])]);
    assert_eq!(bench.open(vec![range(0, 0, 0)], 0, 1), "0[0:aaaa]");
    let drop = DropPartitions { partitions: vec![id(0), id(1)] };
    assert_eq!(bench.say(reader(), drop.clone()), [], "only the executor decides that");
    assert_eq!(text(&bench.say(Address::executor(HERE), drop)), format!("no {}", id(0)));
    let released = |index| Note::PartitionReleased { partition: id(index) };
    assert_eq!(bench.notes, [released(0), released(1)]);
    bench.disk();
    assert_eq!(bench.deleted, ["partitions/0"], "an empty partition has no file");
    assert_eq!(bench.credit(1), "");
}

#[test]
fn a_read_that_fails_or_is_short_is_refused_with_a_warning() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0])]);
    bench.say(reader(), OpenFetch { fetch: 3, ranges: vec![range(0, 0, 0)], start: 0, credit: 2 });
    let (op, action) = bench.waiting.pop().unwrap();
    let error = DiskError {
        kind: DiskErrorKind::Other,
        operation: action.kind().to_owned(),
        volume: Volume::Local,
        path: action.path().to_owned(),
        message: "bad sector".to_owned(),
    };
    let sent = bench.handle(Event::Disk { op, result: Err(error) });
    assert_eq!(text(&sent), format!("no {}", id(0)));
    bench.say(reader(), OpenFetch { fetch: 3, ranges: vec![range(0, 0, 0)], start: 0, credit: 2 });
    let (op, _) = bench.waiting.pop().unwrap();
    let short = DiskOutput::Data(Bytes::from_static(b"a"));
    let sent = bench.handle(Event::Disk { op, result: Ok(short) });
    assert_eq!(text(&sent), format!("no {}", id(0)));
    assert_eq!(bench.notes.len(), 2);
}

#[test]
fn a_closed_stream_sends_nothing_more() {
    let mut bench = Bench::with(4, vec![stored(0, 1, &[0; 3])]);
    bench.say(reader(), OpenFetch { fetch: 3, ranges: vec![range(0, 0, 0)], start: 0, credit: 2 });
    bench.say(reader(), CloseFetch { fetch: 3 });
    assert_eq!(bench.disk(), []);
    assert_eq!(bench.credit(2), "");
}
