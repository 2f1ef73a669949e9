//! The writer called by hand, over a disk that is a map.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::actor::Effect;
use crate::disk::{DirectoryEntry, DiskError, DiskErrorKind};
use crate::ids::{ExecutionVertexId, JobVertexId, ProcessId, SessionId};
use crate::message::{ClearJobEvents, FlushJobEvents, OpenJobEventStore, WriteJobEvent};

mod fencing;

const NOW: Time = Time(1_000);

/// A writer with its disk. `run` carries effects out until nothing is left but timers.
struct Fixture {
    writer: JobEventWriter,
    files: BTreeMap<String, Vec<u8>>,
    /// Kinds of disk operations, in order.
    operations: Vec<&'static str>,
    told: Vec<Message>,
    timers: BTreeMap<TimerId, Time>,
    /// Kinds of operations that fail; with "" all do.
    broken: Option<&'static str>,
}

impl Fixture {
    fn new(config: Configuration) -> Self {
        let boot = Boot { process: ProcessId::JOB_MANAGER, session: SessionId(1), config, volumes: vec![] };
        Self {
            writer: JobEventWriter::new(&boot),
            files: BTreeMap::new(),
            operations: Vec::new(),
            told: Vec::new(),
            timers: BTreeMap::new(),
            broken: None,
        }
    }

    fn on(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { files, ..Self::new(Configuration::default()) }
    }

    fn tell(&mut self, message: impl Into<Message>) {
        self.run(Event::Message { from: Address::MASTER, message: message.into() });
    }

    fn fire(&mut self, timer: TimerId) {
        assert!(self.timers.remove(&timer).is_some(), "the timer is not set");
        self.run(Event::Timer(timer));
    }

    fn run(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Outbox::new();
            self.writer.handle(NOW, event, &mut out);
            assert_eq!(self.writer.contradiction(), None);
            for effect in out.take() {
                match effect {
                    Effect::Disk { op, action, .. } => {
                        self.operations.push(action.kind());
                        events.insert(0, Event::Disk { op, result: self.perform(action) });
                    }
                    Effect::Send { message, .. } => self.told.push(message),
                    Effect::SetTimer { timer, at } => drop(self.timers.insert(timer, at)),
                    Effect::CancelTimer { timer } => drop(self.timers.remove(&timer)),
                    _ => {}
                }
            }
        }
    }

    fn perform(&mut self, action: DiskOp) -> DiskResult {
        if self.broken.is_some_and(|kind| kind.is_empty() || kind == action.kind()) {
            return Err(DiskError {
                kind: DiskErrorKind::Full,
                operation: action.kind().to_owned(),
                volume: crate::disk::Volume::Ha,
                path: action.path().to_owned(),
                message: "no space left".to_owned(),
            });
        }
        match action {
            DiskOp::List { .. } => {
                let entries = self.files.iter();
                let entry = |(path, bytes): (&String, &Vec<u8>)| DirectoryEntry {
                    path: path.clone(),
                    length: bytes.len() as u64,
                };
                return Ok(DiskOutput::Entries(entries.map(entry).collect()));
            }
            DiskOp::ReadRange { path, .. } => return Ok(DiskOutput::Data(self.files[&path].clone().into())),
            DiskOp::CreateNew { path } => assert!(self.files.insert(path, Vec::new()).is_none()),
            DiskOp::Append { path, bytes } => self.files.get_mut(&path).unwrap().extend_from_slice(&bytes),
            DiskOp::Delete { path } => assert!(self.files.remove(&path).is_some()),
            _ => {}
        }
        Ok(DiskOutput::Done)
    }

    fn open(&mut self, token: u64) -> Arc<super::super::Replay> {
        self.tell(OpenJobEventStore { token: FencingToken(token), fingerprint: 5 });
        match self.told.pop() {
            Some(Message::JobEventStoreOpened(opened)) => opened.replay,
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, sequence: u64) {
        self.tell(WriteJobEvent { sequence, event: Arc::new(event(sequence)), cut: false });
    }

    fn cut(&mut self, sequence: u64) {
        self.tell(WriteJobEvent { sequence, event: Arc::new(event(sequence)), cut: true });
    }

    fn base(&mut self, sequence: u64) {
        self.tell(WriteJobEvent { sequence, event: Arc::new(base()), cut: false });
        self.tell(FlushJobEvents {});
    }

    /// An event whose record has this length in bytes.
    fn write_long(&mut self, sequence: u64, length: usize) {
        let event = |reason: usize| JobEvent::HistoryDiscarded { reason: "x".repeat(reason) };
        let record = |reason| {
            let mut bytes = Vec::new();
            record::write_record(&mut bytes, sequence, FencingToken(1), &event(reason));
            bytes.len()
        };
        let reason = (0..length).rfind(|&reason| record(reason) == length).unwrap();
        self.tell(WriteJobEvent { sequence, event: Arc::new(event(reason)), cut: false });
    }

    fn failures(&mut self) -> Vec<String> {
        let told = self.told.iter();
        told.filter_map(|message| match message {
            Message::JobEventStoreFailed(failed) => Some(failed.failure.message.clone()),
            _ => None,
        })
        .collect()
    }

    fn recovered(&self) -> usize {
        self.told.iter().filter(|message| matches!(message, Message::JobEventStoreRecovered(_))).count()
    }

    /// Handles one event and gives back its disk operations without carrying them out.
    fn held(&mut self, event: Event) -> Vec<(DiskOpId, DiskOp)> {
        let mut out = Outbox::new();
        self.writer.handle(NOW, event, &mut out);
        out.take()
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Disk { op, action, .. } => Some((op, action)),
                Effect::Send { message, .. } => {
                    self.told.push(message);
                    None
                }
                _ => None,
            })
            .collect()
    }

    /// What the next leader reads.
    fn replayed(&self) -> super::super::Replay {
        let next = self.writer.token.0 + 1;
        super::super::Replay::clone(&Self::on(self.files.clone()).open(next))
    }

    fn names(&self) -> Vec<&str> {
        self.files.keys().map(|path| path.rsplit('/').next().unwrap()).collect()
    }

    fn durable(&mut self) -> Vec<u64> {
        let told = std::mem::take(&mut self.told).into_iter();
        told.filter_map(|message| match message {
            Message::JobEventsDurable(message) => Some(message.sequence),
            _ => None,
        })
        .collect()
    }
}

fn base() -> JobEvent {
    JobEvent::BaseRecorded { initialized: vec![], finished: vec![], coordinators: vec![] }
}

fn message(message: impl Into<Message>) -> Event {
    Event::Message { from: Address::MASTER, message: message.into() }
}

fn event(n: u64) -> JobEvent {
    JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(JobVertexId(0), n as u32)] }
}

#[test]
fn what_was_flushed_is_replayed_by_the_next_epoch_and_the_rest_is_not() {
    let mut first = Fixture::new(Configuration::default());
    assert!(first.open(9).events.is_empty());
    first.write(1);
    first.write(2);
    first.tell(FlushJobEvents {});
    first.write(3);
    let mut second = Fixture::on(first.files);
    assert_eq!(second.open(10).events, [event(1), event(2)]);
    second.write(1);
    second.tell(FlushJobEvents {});
    let mut third = Fixture::on(second.files);
    assert_eq!(third.open(11).events, [event(1), event(2), event(1)]);
}

#[test]
fn five_events_and_after_a_restart_two_more_are_seven_in_order() {
    let mut first = Fixture::new(Configuration::default());
    first.open(1);
    (1..=5).for_each(|n| first.write(n));
    first.tell(FlushJobEvents {});
    let mut second = Fixture::on(first.files);
    assert_eq!(second.open(2).events.len(), 5);
    for n in 6..=7 {
        second.tell(WriteJobEvent { sequence: n - 5, event: Arc::new(event(n)), cut: false });
    }
    second.tell(FlushJobEvents {});
    assert_eq!(second.replayed().events, (1..=7).map(event).collect::<Vec<_>>());
}

/// The writer is an actor: whoever sends events, they come one by one.
#[test]
fn ten_events_of_which_half_come_during_a_flush_are_all_there_in_order() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    (1..=5).for_each(|n| fixture.write(n));
    let Some((op, append)) = fixture.held(message(FlushJobEvents {})).pop() else { panic!() };
    for n in 6..=10 {
        let event = WriteJobEvent { sequence: n, event: Arc::new(event(n)), cut: false };
        assert!(fixture.held(message(event)).is_empty());
    }
    let result = fixture.perform(append);
    fixture.run(Event::Disk { op, result });
    fixture.tell(FlushJobEvents {});
    assert_eq!(fixture.replayed().events, (1..=10).map(event).collect::<Vec<_>>());
}

#[test]
fn the_log_is_on_the_volume_and_below_the_directory_that_are_configured() {
    let mut config = Configuration::default();
    config.set("job-event.store.volume", "local").unwrap();
    config.set("high-availability.cluster-id", "blue").unwrap();
    let boot = Boot { process: ProcessId::JOB_MANAGER, session: SessionId(1), config, volumes: vec![] };
    let open = message(OpenJobEventStore { token: FencingToken(1), fingerprint: 5 });
    let mut out = Outbox::new();
    JobEventWriter::new(&boot).handle(NOW, open, &mut out);
    let effects = out.take();
    let [Effect::Disk { volume, action, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((*volume, action.path()), (crate::disk::Volume::Local, "blue/job-events/events.1.0"));
}

#[test]
fn what_an_earlier_epoch_had_written_is_synced_before_anything_rests_on_it() {
    let mut first = Fixture::new(Configuration::default());
    first.open(1);
    first.write(1);
    first.tell(FlushJobEvents {});
    let mut second = Fixture::on(first.files);
    second.open(2);
    assert_eq!(second.operations, ["create", "list", "read", "sync", "append", "sync", "sync-directory"]);
}

#[test]
fn an_event_waits_for_the_flush_interval_and_is_durable_only_after_the_sync() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.operations.clear();
    fixture.write(1);
    assert_eq!(fixture.timers[&FLUSH], NOW + Duration::from_secs(1));
    fixture.write(2);
    assert_eq!((fixture.durable(), fixture.operations.len()), (vec![], 0));
    fixture.fire(FLUSH);
    assert_eq!(fixture.operations, ["append", "sync", "list"]);
    assert_eq!(fixture.durable(), [2]);
}

fn with_buffer(size: &str) -> Fixture {
    let mut config = Configuration::default();
    config.set("job-event.store.write-buffer.size", size).unwrap();
    let mut fixture = Fixture::new(config);
    fixture.open(1);
    fixture.operations.clear();
    fixture
}

#[test]
fn b13_a_full_buffer_and_a_record_larger_than_it_are_flushed_at_once() {
    let mut fixture = with_buffer("1 b");
    fixture.write(1);
    assert_eq!(fixture.durable(), [1]);
    assert!(fixture.timers.is_empty());
}

#[test]
fn b13_a_buffer_of_ten_thousand_bytes_is_flushed_by_exactly_the_tenth_record_of_a_thousand() {
    let mut fixture = with_buffer("10000 b");
    for n in 1..=9 {
        fixture.write_long(n, 1_000);
        assert_eq!(fixture.operations.len(), 0, "record {n}");
    }
    fixture.write_long(10, 1_000);
    assert_eq!((fixture.operations.clone(), fixture.durable()), (vec!["append", "sync", "list"], vec![10]));
    fixture.operations.clear();
    fixture.write_long(11, 10_001);
    assert_eq!((fixture.operations.clone(), fixture.durable()), (vec!["append", "sync", "list"], vec![11]));
    assert!(fixture.timers.is_empty());
}

#[test]
fn a_cut_flushes_and_ends_the_file_and_the_next_event_begins_another() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.operations.clear();
    fixture.write(1);
    fixture.cut(2);
    assert_eq!(
        (fixture.operations.clone(), fixture.durable()),
        (vec!["append", "sync", "list", "close"], vec![2])
    );
    assert!(fixture.timers.is_empty());
    assert_eq!(fixture.names(), ["events.1.0"]);
    fixture.operations.clear();
    fixture.write(3);
    assert_eq!(fixture.operations, ["create", "append", "sync", "sync-directory"]);
    assert_eq!(fixture.names(), ["events.1.0", "events.1.1"]);
    assert_eq!(fixture.durable(), [0_u64; 0]);
    fixture.fire(FLUSH);
    assert_eq!(fixture.durable(), [3]);
    assert_eq!(fixture.replayed().events, [event(1), event(2), event(3)]);
}

#[test]
fn b6_a_crash_right_after_a_new_file_was_begun_loses_nothing_before_it() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.cut(1);
    fixture.write(2);
    assert_eq!(fixture.names().len(), 2);
    assert_eq!(fixture.replayed(), super::super::Replay { events: vec![event(1)], damage: None });
    fixture.files.get_mut("default/job-events/events.1.1").unwrap().clear();
    assert_eq!(fixture.replayed(), super::super::Replay { events: vec![event(1)], damage: None });
}

#[test]
fn events_that_arrive_during_a_flush_are_not_reported_by_it() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.write(1);
    let Some((op, _)) = fixture.held(message(FlushJobEvents {})).pop() else { panic!() };
    fixture.write(2);
    fixture.run(Event::Disk { op, result: Ok(DiskOutput::Done) });
    assert_eq!(fixture.durable(), [1]);
}

#[test]
fn events_behind_a_cut_that_is_under_way_go_to_the_next_file() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    let cut = WriteJobEvent { sequence: 1, event: Arc::new(event(1)), cut: true };
    let [(op, append)] = &fixture.held(message(cut))[..] else { panic!() };
    fixture.write(2);
    fixture.cut(3);
    fixture.write(4);
    fixture.perform(append.clone()).unwrap();
    fixture.run(Event::Disk { op: *op, result: Ok(DiskOutput::Done) });
    assert_eq!(fixture.durable(), [1, 3]);
    assert_eq!(fixture.names(), ["events.1.0", "events.1.1", "events.1.2"]);
    assert_eq!(fixture.replayed().events, [event(1), event(2), event(3)]);
}

#[test]
fn a_store_that_takes_a_minute_for_a_sync_collects_events_meanwhile_and_writes_them_in_one() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.write(1);
    let Some((op, _)) = fixture.held(message(FlushJobEvents {})).pop() else { panic!() };
    for n in 2..=100 {
        assert!(
            fixture
                .held(message(WriteJobEvent { sequence: n, event: Arc::new(event(n)), cut: false }))
                .is_empty()
        );
    }
    assert!(fixture.held(message(FlushJobEvents {})).is_empty());
    fixture.operations.clear();
    fixture.run(Event::Disk { op, result: Ok(DiskOutput::Done) });
    assert_eq!(fixture.operations, ["sync", "list", "append", "sync", "list"]);
    assert_eq!(fixture.durable(), [1, 100]);
}

/// A writer that had events 1 and 2 durable when event 3 met a broken disk.
fn failed() -> Fixture {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.write(1);
    fixture.write(2);
    fixture.tell(FlushJobEvents {});
    fixture.broken = Some("");
    fixture.write(3);
    fixture.tell(FlushJobEvents {});
    fixture
}

#[test]
fn a_failing_disk_is_reported_once_and_tried_again_with_a_new_file_and_a_base() {
    let mut fixture = failed();
    let message = "append of ha:default/job-events/events.1.0 failed: no space left";
    assert_eq!(fixture.failures(), [message]);
    fixture.operations.clear();
    fixture.write(4);
    fixture.tell(FlushJobEvents {});
    assert!(fixture.operations.is_empty(), "nothing is written behind bytes of unknown fate");
    fixture.fire(RETRY);
    assert_eq!(fixture.operations, ["create"]);
    assert_eq!(fixture.failures().len(), 1, "it is told once");
    fixture.broken = None;
    fixture.operations.clear();
    fixture.fire(RETRY);
    assert_eq!(fixture.operations, ["create", "append", "sync", "sync-directory"]);
    assert_eq!((fixture.recovered(), fixture.failures().len()), (1, 1));
    // What was under way from the JobMaster when the store failed is not wanted.
    fixture.write(5);
    fixture.base(6);
    fixture.write(7);
    fixture.tell(FlushJobEvents {});
    assert_eq!(fixture.durable(), [2, 6, 7]);
    assert_eq!(fixture.names(), ["events.1.0", "events.1.2"]);
    assert_eq!(fixture.replayed().events, [base(), event(7)]);
}

#[test]
fn every_kind_of_operation_that_fails_after_the_opening_is_reported_and_overcome() {
    for kind in ["append", "sync", "close", "create", "sync-directory"] {
        let mut fixture = Fixture::new(Configuration::default());
        fixture.open(1);
        fixture.broken = Some(kind);
        fixture.cut(1);
        fixture.write(2);
        let failures = fixture.failures();
        assert!(failures.len() == 1 && failures[0].starts_with(&format!("{kind} of ")), "{failures:?}");
        fixture.fire(RETRY);
        fixture.broken = None;
        if fixture.recovered() == 0 {
            fixture.fire(RETRY);
        }
        assert_eq!(fixture.recovered(), 1, "{kind}");
        fixture.base(3);
        assert_eq!(fixture.replayed(), super::super::Replay { events: vec![base()], damage: None }, "{kind}");
    }
}

#[test]
fn a_base_that_is_not_durable_either_is_reported_anew_and_what_was_durable_before_still_counts() {
    let mut fixture = failed();
    fixture.broken = None;
    fixture.fire(RETRY);
    fixture.broken = Some("sync");
    fixture.base(4);
    assert_eq!(fixture.failures().len(), 2);
    fixture.files.get_mut("default/job-events/events.1.1").unwrap().pop();
    assert_eq!(fixture.replayed().events, [event(1), event(2)]);
    fixture.broken = None;
    fixture.fire(RETRY);
    fixture.base(9);
    assert_eq!(fixture.replayed().events, [base()]);
}

#[test]
fn an_opening_that_fails_is_tried_again_from_the_start() {
    let mut first = Fixture::new(Configuration::default());
    first.open(1);
    first.write(1);
    first.tell(FlushJobEvents {});
    for kind in ["list", "read", "sync", "create", "append", "sync-directory"] {
        let mut second = Fixture::on(first.files.clone());
        second.broken = Some(kind);
        second.tell(OpenJobEventStore { token: FencingToken(2), fingerprint: 5 });
        assert_eq!(second.failures().len(), 1, "{kind}");
        second.fire(RETRY);
        assert_eq!(second.failures().len(), 1, "{kind}");
        second.broken = None;
        second.fire(RETRY);
        let Some(Message::JobEventStoreOpened(opened)) = second.told.pop() else { panic!("{kind}") };
        assert_eq!(opened.replay.events, [event(1)], "{kind}");
        second.write(1);
        second.tell(FlushJobEvents {});
        assert_eq!(second.replayed().events, [event(1), event(1)], "{kind}");
    }
}

#[test]
fn a_base_for_a_leader_that_did_not_wait_begins_a_file_of_its_own() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.base(17);
    assert_eq!(fixture.names(), ["events.1.0", "events.1.1"]);
    assert_eq!(fixture.durable(), [17]);
    assert_eq!(fixture.replayed().events, [base()]);
}

fn too_long() -> Arc<JobEvent> {
    let reason = "x".repeat(record::MAX_PAYLOAD);
    Arc::new(JobEvent::HistoryDiscarded { reason })
}

#[test]
fn an_event_too_long_for_a_record_is_a_failure_and_never_a_torn_tail() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.tell(WriteJobEvent { sequence: 1, event: too_long(), cut: false });
    assert_eq!(fixture.failures(), ["the event 1 is longer than the 67108864 bytes of a record"]);
}

#[test]
fn a_base_too_long_for_a_record_is_tried_again_in_the_same_file() {
    let mut fixture = failed();
    fixture.broken = None;
    fixture.fire(RETRY);
    let JobEvent::HistoryDiscarded { reason } = &*too_long() else { panic!() };
    let coordinators = vec![(JobVertexId(0), reason.clone().into_bytes().into())];
    let long = JobEvent::BaseRecorded { initialized: vec![], finished: vec![], coordinators };
    fixture.tell(WriteJobEvent { sequence: 4, event: Arc::new(long), cut: false });
    assert_eq!(fixture.failures()[1], "the base 4 is longer than the 67108864 bytes of a record");
    fixture.fire(RETRY);
    assert_eq!(fixture.names(), ["events.1.0", "events.1.1"]);
    fixture.base(5);
    assert_eq!(fixture.replayed().events, [base()]);
}

#[test]
fn a_damaged_log_is_reported_and_the_new_epoch_accepts_nothing_of_it() {
    let mut first = Fixture::new(Configuration::default());
    first.open(1);
    first.write(1);
    first.write(2);
    first.tell(FlushJobEvents {});
    let file = first.files.values_mut().next().unwrap();
    let middle = file.len() - 40;
    file[middle] ^= 1;
    let mut second = Fixture::on(first.files);
    let replay = second.open(2);
    assert!(replay.events.is_empty());
    assert!(replay.damage.as_ref().unwrap().starts_with("default/job-events/events.1.0 at offset "));
    let mut third = Fixture::on(second.files);
    assert_eq!(*third.open(3), super::super::Replay::default());
}

#[test]
fn clearing_deletes_every_file() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.cut(1);
    fixture.write(2);
    fixture.tell(ClearJobEvents {});
    assert!(fixture.files.is_empty());
    assert!(matches!(fixture.told.pop(), Some(Message::JobEventsCleared(_))));
    assert!(fixture.timers.is_empty());
    assert_eq!(fixture.operations.last(), Some(&"sync-directory"));
    // An earlier leader may have deleted them, and died before it could make that durable.
    let mut next = Fixture::new(Configuration::default());
    next.tell(ClearJobEvents {});
    assert_eq!(next.operations, ["list", "sync-directory"]);
    assert!(matches!(next.told.pop(), Some(Message::JobEventsCleared(_))));
}

#[test]
fn clearing_waits_for_what_is_under_way_and_takes_it_along() {
    let message = |message: Message| Event::Message { from: Address::MASTER, message };
    // Of a flush, of the opening of an epoch, and of a new file.
    let mut flushing = Fixture::new(Configuration::default());
    flushing.open(1);
    flushing.write(1);
    let flush = flushing.held(message(FlushJobEvents {}.into()));
    let mut opening = Fixture::new(Configuration::default());
    let open = OpenJobEventStore { token: FencingToken(1), fingerprint: 7 };
    let list = opening.held(message(open.into()));
    let mut beginning = Fixture::new(Configuration::default());
    beginning.open(1);
    beginning.cut(1);
    let event = WriteJobEvent { sequence: 2, event: Arc::new(event(2)), cut: true };
    let create = beginning.held(message(event.into()));
    for (mut fixture, under_way) in [(flushing, flush), (opening, list), (beginning, create)] {
        let [(op, action)] = &under_way[..] else { panic!("{under_way:?}") };
        assert!(fixture.held(message(ClearJobEvents {}.into())).is_empty(), "{action:?} is under way");
        let result = fixture.perform(action.clone());
        fixture.run(Event::Disk { op: *op, result });
        assert!(fixture.files.is_empty(), "{action:?}");
        assert!(matches!(fixture.told.pop(), Some(Message::JobEventsCleared(_))), "{action:?}");
    }
}

#[test]
fn clearing_that_fails_is_tried_again_and_at_last_leaves_the_log() {
    let cleared = |fixture: &Fixture| {
        fixture.told.iter().filter(|message| matches!(message, Message::JobEventsCleared(_))).count()
    };
    let mut fixture = Fixture::on(failed().files);
    fixture.open(2);
    fixture.broken = Some("delete");
    fixture.tell(ClearJobEvents {});
    for _ in 0..3 {
        assert_eq!(cleared(&fixture), 0);
        fixture.fire(RETRY);
    }
    assert_eq!(cleared(&fixture), 1);
    assert!(!fixture.files.is_empty() && fixture.timers.is_empty());

    let mut fixture = Fixture::on(failed().files);
    fixture.open(2);
    fixture.broken = Some("delete");
    fixture.tell(ClearJobEvents {});
    fixture.broken = None;
    fixture.fire(RETRY);
    assert!(fixture.files.is_empty() && fixture.timers.is_empty());
    assert_eq!(cleared(&fixture), 1);
}
