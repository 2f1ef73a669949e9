//! What a shuffle service does with pushed bytes, driven by hand.

use crate::actor::{Actor, Boot, DiskOpId, Effect, Event, Outbox, Time};
use crate::config::Configuration;
use crate::disk::{DiskError, DiskErrorKind, DiskOutput, Volume};
use crate::ids::{
    ActorId, ExecutionAttemptId, ExecutionVertexId, IntermediateDataSetId, JobVertexId, ProcessId, SessionId,
};
use crate::message::{
    AcceptPushes, BufferLocation, DropPartitions, FetchRange, IndexRange, Message, OpenFetch,
    RegisterPartitions,
};
use crate::note::Note;
use crate::shuffle::ShuffleService;

use super::*;

const HERE: ProcessId = ProcessId::ShuffleService(1);
const EPOCH: FencingToken = FencingToken(2);

fn attempt(epoch: FencingToken) -> ExecutionAttemptId {
    let subtask = ExecutionVertexId::new(JobVertexId(0), 0);
    ExecutionAttemptId { subtask, epoch, number: 1 }
}

fn id(epoch: FencingToken) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(0), producer: attempt(epoch) }
}

fn task() -> Address {
    Address::new(ProcessId::TaskManager(1), ActorId::Task(attempt(EPOCH)))
}

struct Bench {
    shuffle: ShuffleService,
    waiting: Vec<(DiskOpId, DiskOp)>,
    notes: Vec<Note>,
}

impl Bench {
    /// One that takes pushes of `EPOCH`.
    fn new(process: ProcessId) -> Self {
        let config = Configuration::default();
        let boot = Boot { process, session: SessionId(1), config, volumes: vec![Volume::Local] };
        let mut bench = Self { shuffle: ShuffleService::new(&boot), waiting: vec![], notes: vec![] };
        bench.worker(AcceptPushes { token: Some(EPOCH) });
        bench
    }

    /// What it says; disk operations wait.
    fn handle(&mut self, event: Event) -> String {
        let mut out = Outbox::new();
        self.shuffle.handle(Time(0), event, &mut out);
        let mut said = Vec::new();
        for effect in out.take() {
            match effect {
                Effect::Send { message: Message::DataPushed(m), .. } => {
                    said.push(format!("has {}", m.length));
                }
                Effect::Send { message: Message::PushRefused(m), .. } => {
                    said.push(format!("refuses {}: {}", m.offset, m.reason));
                }
                Effect::Send { message: Message::PartitionsRefused(m), .. } => said.push(m.reason),
                Effect::Send { message, .. } => said.push(message.kind().to_owned()),
                Effect::Disk { op, action, .. } => self.waiting.push((op, action)),
                Effect::Note(note) => self.notes.push(note),
                other => panic!("{other:?}"),
            }
        }
        said.join("; ")
    }

    fn worker(&mut self, message: impl Into<Message>) -> String {
        self.handle(Event::Message { from: Address::worker(HERE), message: message.into() })
    }

    fn push_of(&mut self, epoch: FencingToken, offset: u64, text: &'static str) -> String {
        let bytes = Bytes::from_static(text.as_bytes());
        let message = PushData { partition: id(epoch), offset, bytes };
        self.handle(Event::Message { from: task(), message: message.into() })
    }

    fn push(&mut self, offset: u64, text: &'static str) -> String {
        self.push_of(EPOCH, offset, text)
    }

    /// The names of the operations since the last look; completes them, and what they lead to.
    fn disk(&mut self) -> (Vec<&'static str>, String) {
        let (mut done, mut said) = (vec![], vec![]);
        while !self.waiting.is_empty() {
            let (op, action) = self.waiting.remove(0);
            done.push(action.kind());
            said.push(self.handle(Event::Disk { op, result: Ok(DiskOutput::Done) }));
        }
        said.retain(|text| !text.is_empty());
        (done, said.join("; "))
    }

    fn register(&mut self, length: u32) -> String {
        let buffers = vec![BufferLocation { subpartition: 0, offset: 0, length }];
        let (partition, path) = (id(EPOCH), partition_path(id(EPOCH)));
        let partitions = vec![FinishedPartition { partition, path, subpartitions: 1, buffers }];
        self.worker(RegisterPartitions { attempt: attempt(EPOCH), partitions })
    }

    fn drop_partition(&mut self) -> String {
        self.worker(DropPartitions { partitions: vec![id(EPOCH)] })
    }

    /// Whether a reader finds the partition.
    fn serves(&mut self) -> bool {
        let ranges = vec![FetchRange { partition: id(EPOCH), subpartitions: IndexRange::new(0, 0) }];
        let open = OpenFetch { fetch: 0, ranges, start: 0, credit: 1 };
        let said = self.handle(Event::Message { from: task(), message: open.into() });
        self.waiting.retain(|(_, action)| action.kind() != "read");
        said != "PartitionNotFound"
    }
}

#[test]
fn pushed_bytes_are_written_one_behind_the_other_and_told_when_they_are() {
    let mut bench = Bench::new(HERE);
    assert_eq!(bench.push(0, "abcd"), "");
    assert_eq!(bench.disk(), (vec!["create", "append"], "has 4".to_owned()));
    assert_eq!(bench.push(4, "ef"), "");
    let append = DiskOp::Append { path: partition_path(id(EPOCH)), bytes: Bytes::from_static(b"ef") };
    assert_eq!(bench.waiting[0].1, append);
    assert_eq!(bench.disk().1, "has 6");
    assert!(!bench.serves(), "what is not complete is not served");
    assert_eq!(bench.register(6), "PartitionsRegistered");
    assert!(bench.serves());
    assert_eq!(bench.disk().0, ["close"]);
    assert_eq!(bench.register(6), "PartitionsRegistered", "asked again");
    assert_eq!(bench.push(4, "ef"), "", "a repetition that came late");
}

#[test]
fn a_push_that_comes_twice_is_written_once() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    assert_eq!(bench.push(0, "abcd"), "", "the answer is on its way");
    assert_eq!(bench.disk(), (vec!["create", "append"], "has 4".to_owned()));
    assert_eq!(bench.push(0, "abcd"), "has 4");
    assert_eq!(bench.disk().0.len(), 0);
    assert_eq!(bench.register(4), "PartitionsRegistered");
}

#[test]
fn a_push_behind_a_gap_is_refused() {
    let mut bench = Bench::new(HERE);
    let said = bench.push(4, "ef");
    assert_eq!(said, "refuses 4: shuffle-service-1 does not take it: it has none of the 4 bytes before");
    bench.push(0, "abcd");
    bench.disk();
    assert!(bench.push(6, "gh").starts_with("refuses 6: "));
    assert_eq!(bench.disk().0.len(), 0);
}

#[test]
fn b37_only_attempts_of_the_leader_push_and_what_others_began_is_deleted() {
    let mut bench = Bench::new(HERE);
    assert!(bench.push_of(FencingToken(1), 0, "old").starts_with("refuses 0: "));
    bench.push(0, "abcd");
    bench.disk();
    bench.worker(AcceptPushes { token: Some(EPOCH) });
    assert_eq!(bench.disk().0.len(), 0, "the same leader");
    bench.worker(AcceptPushes { token: Some(FencingToken(3)) });
    assert_eq!(bench.disk().0, ["delete"]);
    assert!(bench.push(4, "ef").contains("no results of this epoch"));
    assert!(bench.register(4).contains("no results of this epoch"));
    bench.worker(AcceptPushes { token: None });
    assert_eq!(bench.push_of(FencingToken(3), 0, "a"), "");
    assert_eq!(bench.disk().0.len(), 0);
}

#[test]
fn a_push_under_a_leader_that_the_service_has_not_heard_of_is_not_answered_until_it_has() {
    let mut bench = Bench::new(HERE);
    let next = FencingToken(EPOCH.0 + 1);
    assert_eq!(bench.push_of(next, 0, "a"), "");
    assert_eq!(bench.disk().0.len(), 0);
    bench.worker(AcceptPushes { token: Some(next) });
    bench.push_of(next, 0, "a");
    assert_eq!(bench.disk().1, "has 1");
}

#[test]
fn b37_complete_partitions_stay_when_the_leader_changes() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    bench.disk();
    bench.register(4);
    bench.disk();
    bench.worker(AcceptPushes { token: Some(FencingToken(3)) });
    assert!(bench.serves() && bench.disk().0.is_empty());
    bench.drop_partition();
    assert_eq!(bench.notes, [Note::PartitionReleased { partition: id(EPOCH) }]);
    assert_eq!(bench.disk().0, ["delete"]);
}

#[test]
fn only_a_partition_with_all_its_bytes_is_registered() {
    let mut bench = Bench::new(HERE);
    assert!(bench.register(4).starts_with("it has 0 of the 4 bytes"));
    bench.push(0, "abcd");
    assert!(bench.register(4).starts_with("it has 0 of the 4 bytes"), "the write is under way");
    bench.disk();
    assert!(bench.register(5).starts_with("it has 4 of the 5 bytes"));
    assert!(!bench.serves());
}

#[test]
fn a_partition_dropped_while_it_is_pushed_leaves_no_file_and_does_not_come_back() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    bench.drop_partition();
    // The creation under way would come after a deletion.
    assert_eq!(bench.disk().0, ["create", "delete"]);
    assert!(bench.push(0, "abcd").contains("was dropped"));
    assert!(bench.register(0).contains("was dropped"), "nor as an empty one");
    assert_eq!(bench.disk().0.len(), 0);
    assert_eq!(bench.notes, [], "it was never complete");
}

#[test]
fn a_partition_dropped_between_two_pushes_goes_at_once() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    bench.disk();
    bench.drop_partition();
    assert_eq!(bench.disk().0, ["delete"]);
}

#[test]
fn a_failed_write_is_told_and_the_file_deleted() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    let (op, action) = bench.waiting.remove(0);
    let error = DiskError {
        kind: DiskErrorKind::Full,
        operation: action.kind().to_owned(),
        volume: Volume::Local,
        path: action.path().to_owned(),
        message: "no space".to_owned(),
    };
    let said = bench.handle(Event::Disk { op, result: Err(error) });
    assert!(said.starts_with("refuses 0: ") && said.ends_with("no space"), "{said}");
    assert_eq!(bench.disk().0, ["delete"]);
}

#[test]
fn a_task_manager_takes_no_pushes() {
    let mut bench = Bench::new(ProcessId::TaskManager(1));
    assert!(bench.push(0, "abcd").contains("it is not a shuffle service"));
}

#[test]
fn only_the_worker_of_the_service_registers_and_drops() {
    let mut bench = Bench::new(HERE);
    bench.push(0, "abcd");
    bench.disk();
    let drop = DropPartitions { partitions: vec![id(EPOCH)] };
    let from = Address::executor(ProcessId::TaskManager(1));
    bench.handle(Event::Message { from, message: drop.into() });
    assert_eq!(bench.disk().0.len(), 0);
    assert_eq!(bench.register(4), "PartitionsRegistered");
}
