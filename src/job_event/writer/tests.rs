//! The writer called by hand, over a disk that is a map.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::actor::Effect;
use crate::disk::{DirectoryEntry, DiskError, DiskErrorKind};
use crate::ids::{ExecutionVertexId, JobVertexId, ProcessId, SessionId};
use crate::message::{ClearJobEvents, FlushJobEvents, WriteJobEvent};

const NOW: Time = Time(1_000);

/// A writer with its disk. `run` carries effects out until nothing is left but timers.
struct Fixture {
    writer: JobEventWriter,
    files: BTreeMap<String, Vec<u8>>,
    /// Kinds of disk operations, in order.
    operations: Vec<&'static str>,
    told: Vec<Message>,
    timer: Option<Time>,
    broken: bool,
}

impl Fixture {
    fn new(config: Configuration) -> Self {
        let boot = Boot { process: ProcessId::JobManager, session: SessionId(1), config, volumes: vec![] };
        Self {
            writer: JobEventWriter::new(&boot),
            files: BTreeMap::new(),
            operations: Vec::new(),
            told: Vec::new(),
            timer: None,
            broken: false,
        }
    }

    fn on(files: BTreeMap<String, Vec<u8>>) -> Self {
        Self { files, ..Self::new(Configuration::default()) }
    }

    fn tell(&mut self, message: impl Into<Message>) {
        self.run(Event::Message { from: Address::MASTER, message: message.into() });
    }

    fn run(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Outbox::new();
            self.writer.handle(NOW, event, &mut out);
            for effect in out.take() {
                match effect {
                    Effect::Disk { op, action, .. } => {
                        self.operations.push(action.kind());
                        events.insert(0, Event::Disk { op, result: self.perform(action) });
                    }
                    Effect::Send { message, .. } => self.told.push(message),
                    Effect::SetTimer { at, .. } => self.timer = Some(at),
                    Effect::CancelTimer { .. } => self.timer = None,
                    _ => {}
                }
            }
        }
    }

    fn perform(&mut self, action: DiskOp) -> DiskResult {
        if self.broken {
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

    fn durable(&mut self) -> Vec<u64> {
        let told = std::mem::take(&mut self.told).into_iter();
        told.filter_map(|message| match message {
            Message::JobEventsDurable(message) => Some(message.sequence),
            _ => None,
        })
        .collect()
    }
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
fn what_an_earlier_epoch_had_written_is_synced_before_anything_rests_on_it() {
    let mut first = Fixture::new(Configuration::default());
    first.open(1);
    first.write(1);
    first.tell(FlushJobEvents {});
    let mut second = Fixture::on(first.files);
    second.open(2);
    assert_eq!(second.operations, ["list", "read", "sync", "create", "append", "sync", "sync-directory"]);
}

#[test]
fn an_event_waits_for_the_flush_interval_and_is_durable_only_after_the_sync() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.operations.clear();
    fixture.write(1);
    assert_eq!(fixture.timer, Some(NOW + Duration::from_secs(1)));
    fixture.write(2);
    assert_eq!((fixture.durable(), fixture.operations.len()), (vec![], 0));
    fixture.run(Event::Timer(FLUSH));
    assert_eq!(fixture.operations, ["append", "sync"]);
    assert_eq!(fixture.durable(), [2]);
}

#[test]
fn b13_a_full_buffer_and_a_record_larger_than_it_are_flushed_at_once() {
    let mut config = Configuration::default();
    config.set("job-event.store.write-buffer.size", "1 b").unwrap();
    let mut fixture = Fixture::new(config);
    fixture.open(1);
    fixture.write(1);
    assert_eq!(fixture.durable(), [1]);
    assert_eq!(fixture.timer, None);
}

#[test]
fn events_that_arrive_during_a_flush_are_not_reported_by_it() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.write(1);
    let mut out = Outbox::new();
    let flush = Event::Message { from: Address::MASTER, message: FlushJobEvents {}.into() };
    fixture.writer.handle(NOW, flush, &mut out);
    let Some(Effect::Disk { op, .. }) = out.take().pop() else { panic!() };
    fixture.write(2);
    fixture.run(Event::Disk { op, result: Ok(DiskOutput::Done) });
    assert_eq!(fixture.durable(), [1]);
}

#[test]
fn a_failing_disk_is_reported_and_ends_recording() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.broken = true;
    fixture.write(1);
    fixture.tell(FlushJobEvents {});
    let Some(Message::JobEventStoreFailed(failed)) = fixture.told.pop() else { panic!() };
    assert_eq!(failed.failure.message, "append of ha:default/job-events/events.1 failed: no space left");
    fixture.operations.clear();
    fixture.write(2);
    fixture.tell(FlushJobEvents {});
    assert!(fixture.operations.is_empty());
}

#[test]
fn an_event_too_long_for_a_record_is_a_failure_and_never_a_torn_tail() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    let subtasks = vec![ExecutionVertexId::new(JobVertexId(u32::MAX), u32::MAX); 7_000_000];
    let event = Arc::new(JobEvent::ExecutionVertexReset { subtasks });
    fixture.tell(WriteJobEvent { sequence: 1, event, cut: false });
    assert!(matches!(fixture.told.pop(), Some(Message::JobEventStoreFailed(_))));
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
    assert!(replay.damage.as_ref().unwrap().starts_with("default/job-events/events.1 at offset "));
    let mut third = Fixture::on(second.files);
    assert_eq!(*third.open(3), super::super::Replay::default());
}

#[test]
fn clearing_deletes_every_file() {
    let mut fixture = Fixture::new(Configuration::default());
    fixture.open(1);
    fixture.write(1);
    fixture.tell(ClearJobEvents {});
    assert!(fixture.files.is_empty());
    assert!(matches!(fixture.told.pop(), Some(Message::JobEventsCleared(_))));
}
