//! The writer of the job event store: an actor of its own, so that no disk operation ever holds up
//! the JobMaster (FLIP-383, "Persistent JobEventStore", features 1 and 2).
//!
//! It creates a file for the new epoch, reads the logs of earlier epochs once (`opening`), says in its
//! file what of them counts, and then appends. It decides only when to flush: when the buffer is full,
//! when its oldest event has waited for the flush interval, when a file is to end, or when it is told
//! to. The buffer is full when it holds `write-buffer.size` bytes as they go to disk, what frames a
//! record included; a larger record goes through at once. A flush is an append, a sync and a look
//! whether a newer epoch has a file by now. If none has, the events are durable, and the JobMaster is
//! told. A cut ends the file behind its event; the next event begins another. A file is durable with
//! its name before anything in it counts.
//!
//! That file, which is there before its leader reads, fences the leaders before: what one of them had
//! synced before it was created is read, and what one synced later, that one finds to be for nobody. So
//! whatever is reported durable, every later leader knows, and partitions may be released for it, even
//! by a leader that has not heard that it was replaced.
//!
//! It never drops an event silently, and never gives up. An error of the disk is reported once; what
//! was not durable then is dropped. After a while a new file is begun, never the old one continued,
//! for nobody knows what of the failed operation reached the disk. Its first record is a base: all
//! that counts at that time. So the log is at any moment a prefix of what happened, followed by what
//! happened from a base on.

use std::sync::Arc;

use bytes::Bytes;

use crate::actor::{Actor, Boot, DiskOpId, Event, Outbox, Pending, Purpose, Time, TimerId};
use crate::config::Configuration;
use crate::disk::{DiskErrorKind, DiskOp, DiskOutput, DiskResult};
use crate::ids::{Address, ExecutionAttemptId, FencingToken};
use crate::message::{
    Fenced, JobEventStoreFailed, JobEventStoreOpened, JobEventStoreRecovered, JobEventsDurable, Message,
    WriteJobEvent,
};
use crate::note::Note;
use crate::planted::{PlantedBug, is_planted};
use crate::probe::Probe;

use super::{JobEvent, StoreFailure, record};

mod clearing;
mod opening;
mod queue;
#[cfg(test)]
mod tests;

use opening::{Adopting, Reading, newest_epoch};
use queue::{Batch, Queue};

const FLUSH: TimerId = TimerId(1);
const RETRY: TimerId = TimerId(2);

/// The writer actor of a JobManager process.
#[derive(Debug)]
pub struct JobEventWriter {
    /// The JobMaster of this process.
    master: Address,
    config: Configuration,
    token: FencingToken,
    fingerprint: u64,
    state: State,
    pending: Pending<Step>,
    /// Index of the next file of this epoch.
    next_index: u32,
    /// Whether a file says durably that the epoch began.
    begun: bool,
    /// Whether the JobMaster thinks that the store works, or waits to hear.
    trusted: bool,
}

#[derive(Debug)]
enum State {
    /// Not told to open yet.
    Closed,
    /// Creating the epoch's first file, which tells earlier leaders that their time is over.
    Fencing,
    /// Collecting the contents of the files of earlier epochs.
    Reading(Reading),
    /// Making what was read of earlier epochs durable: their last bytes may have been written but
    /// not synced when their leader died, and from now on decisions rest on them.
    Adopting(Adopting),
    /// Making a file durable before any event is taken: the epoch's first, with what older ones say,
    /// or the first after a failure.
    Beginning {
        replay: Option<Arc<super::Replay>>,
    },
    Writing(Writing),
    /// An operation failed: tries again when a timer fires. With `empty_file`, the newest file holds
    /// nothing, so it can be used; if the epoch has begun, it is also durable.
    Failing {
        empty_file: bool,
    },
    /// Deleting all files. After an error it is tried again, so often.
    Clearing {
        left: usize,
        tries: u32,
    },
    /// The log is cleared, or belongs to a newer epoch.
    Ended,
}

#[derive(Debug)]
struct Writing {
    file: FileState,
    queue: Queue,
    /// Whether the file that the next event goes to has no record yet.
    empty: bool,
    /// Nothing but a base is taken: what was on its way when the store failed is not wanted.
    wants_base: bool,
    timer_set: bool,
}

/// What happens to the file in use; one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// The last one ended; the next event begins another.
    Absent,
    Beginning,
    Idle,
    Flushing {
        last: u64,
        cut: bool,
    },
    Closing,
}

/// What a disk operation is for.
#[derive(Clone, Debug)]
enum Step {
    List,
    Read(usize),
    SyncOld,
    Create,
    AppendHeader,
    SyncHeader,
    SyncDirectory,
    Append,
    Sync,
    LookForNewer,
    Close,
    ListToClear,
    Delete,
    SyncCleared,
}

impl JobEventWriter {
    pub fn new(boot: &Boot) -> Self {
        Self {
            config: boot.config.clone(),
            master: Address::master(boot.process),
            token: FencingToken::default(),
            fingerprint: 0,
            state: State::Closed,
            pending: Pending::default(),
            next_index: 0,
            begun: false,
            trusted: true,
        }
    }

    /// Directory of a cluster's job event files on their volume.
    pub fn directory(config: &Configuration) -> String {
        format!("{}/job-events", config.cluster_id)
    }

    /// File `index`, from 0, of an epoch.
    pub fn path(config: &Configuration, epoch: FencingToken, index: u32) -> String {
        format!("{}/events.{epoch}.{index}", Self::directory(config))
    }

    fn disk(&mut self, step: Step, action: DiskOp, out: &mut Outbox) {
        let op = self.pending.begin(step);
        out.disk(op, self.config.job_event_volume, Purpose::JobEvent, action);
    }

    /// The newest file of this epoch.
    fn current(&self) -> String {
        Self::path(&self.config, self.token, self.next_index.saturating_sub(1))
    }

    fn list(&mut self, step: Step, out: &mut Outbox) {
        self.disk(step, DiskOp::List { path: Self::directory(&self.config) }, out);
    }

    fn create(&mut self, out: &mut Outbox) {
        self.next_index += 1;
        let path = self.current();
        self.disk(Step::Create, DiskOp::CreateNew { path }, out);
    }

    /// The file that was created is empty so far.
    fn created(&mut self, out: &mut Outbox) {
        if matches!(self.state, State::Fencing) {
            return self.read(out);
        }
        self.write_header(Bytes::copy_from_slice(&record::header()), out);
    }

    fn write_header(&mut self, bytes: Bytes, out: &mut Outbox) {
        let path = self.current();
        self.disk(Step::AppendHeader, DiskOp::Append { path, bytes }, out);
    }

    fn write(&mut self, now: Time, message: &WriteJobEvent, out: &mut Outbox) {
        let (token, interval) = (self.token, self.config.flush_interval);
        let WriteJobEvent { sequence, event, cut } = message;
        let State::Writing(writing) = &mut self.state else { return };
        let is_base = matches!(**event, JobEvent::BaseRecorded { .. });
        if writing.wants_base && !is_base {
            return;
        }
        if is_base && !writing.empty {
            writing.queue.cut();
        }
        let length = writing.queue.push(token, *sequence, event);
        if length > record::RECORD_OVERHEAD + record::MAX_PAYLOAD {
            // Replay would take it for a torn tail, and what follows for damage.
            let what = if is_base { "the base" } else { "the event" };
            let message =
                format!("{what} {sequence} is longer than the {} bytes of a record", record::MAX_PAYLOAD);
            let empty_file = writing.wants_base && writing.file == FileState::Idle;
            return self.fail(now, message, empty_file, out);
        }
        writing.wants_base = false;
        writing.empty = *cut;
        out.note(Note::EventBuffered { token, sequence: *sequence, finished: finished_attempt(event) });
        if *cut {
            writing.queue.cut();
        }
        if *cut || interval.is_zero() || writing.queue.collected() as u64 >= self.config.write_buffer_size.0 {
            return self.flush(out);
        }
        if !std::mem::replace(&mut writing.timer_set, true) {
            out.set_timer(FLUSH, now + interval);
        }
        self.advance(out);
    }

    /// Has all that is collected written as soon as the file is free.
    fn flush(&mut self, out: &mut Outbox) {
        let State::Writing(writing) = &mut self.state else { return };
        if std::mem::take(&mut writing.timer_set) {
            out.cancel_timer(FLUSH);
        }
        writing.queue.flush();
        self.advance(out);
    }

    /// Begins whatever can be done with the file now.
    fn advance(&mut self, out: &mut Outbox) {
        let State::Writing(writing) = &mut self.state else { return };
        match writing.file {
            FileState::Absent if !writing.queue.is_empty() => {
                writing.file = FileState::Beginning;
                self.create(out);
            }
            FileState::Idle => {
                let Some(Batch { bytes, last, cut, .. }) = writing.queue.take_due() else { return };
                let path = Self::path(&self.config, self.token, self.next_index.saturating_sub(1));
                if bytes.is_empty() {
                    writing.file = FileState::Closing;
                    return self.disk(Step::Close, DiskOp::Close { path }, out);
                }
                writing.file = FileState::Flushing { last, cut };
                self.disk(Step::Append, DiskOp::Append { path, bytes: bytes.into() }, out);
            }
            _ => {}
        }
    }

    /// What was synced is durable for all later leaders if none of them has begun to read before.
    fn looked_for_newer(&mut self, output: DiskOutput, out: &mut Outbox) {
        let DiskOutput::Entries(entries) = output else { return };
        match newest_epoch(&self.config, &entries).filter(|&newest| newest > self.token) {
            Some(newer) => self.fenced(newer, out),
            None => self.flushed(out),
        }
    }

    /// A newer epoch has begun, so that this one's leader is not the leader any more.
    fn fenced(&mut self, current: FencingToken, out: &mut Outbox) {
        if let State::Writing(Writing { timer_set: true, .. }) = self.state {
            out.cancel_timer(FLUSH);
        }
        self.pending.forget_all();
        self.state = State::Ended;
        out.probe(Probe::FencedByLog);
        out.send(self.master, Fenced { token: self.token, current });
    }

    fn flushed(&mut self, out: &mut Outbox) {
        let State::Writing(writing) = &mut self.state else { return };
        let FileState::Flushing { last: sequence, cut } = writing.file else { return };
        writing.file = if cut { FileState::Closing } else { FileState::Idle };
        out.note(Note::EventsDurable { token: self.token, sequence });
        out.send(self.master, JobEventsDurable { token: self.token, sequence });
        if cut {
            let path = self.current();
            return self.disk(Step::Close, DiskOp::Close { path }, out);
        }
        self.advance(out);
    }

    /// The file is durable with its name.
    fn file_begun(&mut self, out: &mut Outbox) {
        match &mut self.state {
            State::Beginning { replay } => {
                let replay = replay.take();
                self.trusted = true;
                self.state = State::Writing(Writing {
                    file: FileState::Idle,
                    queue: Queue::default(),
                    empty: replay.is_none(),
                    wants_base: replay.is_none(),
                    timer_set: false,
                });
                let token = self.token;
                match replay {
                    Some(replay) => {
                        self.begun = true;
                        out.send(self.master, JobEventStoreOpened { token, replay });
                    }
                    None => out.send(self.master, JobEventStoreRecovered { token }),
                }
            }
            State::Writing(writing) => {
                writing.file = FileState::Idle;
                self.advance(out);
            }
            _ => {}
        }
    }

    /// Of a file that is written, at most one operation is under way, and exactly one unless it is idle or not
    /// there; what waits is in order.
    fn state_contradicts(&self) -> Option<String> {
        let State::Writing(writing) = &self.state else { return None };
        let expected = usize::from(!matches!(writing.file, FileState::Absent | FileState::Idle));
        if self.pending.len() != expected {
            return Some(format!("{} disk operations are under way for {writing:?}", self.pending.len()));
        }
        (!writing.queue.is_sound()).then(|| format!("the buffer is not in order: {:?}", writing.queue))
    }

    /// What is not durable is dropped, for the file must not be written behind; a new one is tried
    /// after a while.
    fn fail(&mut self, now: Time, message: String, empty_file: bool, out: &mut Outbox) {
        self.pending.forget_all();
        if let State::Writing(Writing { timer_set: true, .. }) = self.state {
            out.cancel_timer(FLUSH);
        }
        self.state = State::Failing { empty_file };
        out.set_timer(RETRY, now + self.config.registration_retry);
        if std::mem::take(&mut self.trusted) {
            let failure = StoreFailure { message };
            out.send(self.master, JobEventStoreFailed { token: self.token, failure });
        }
    }

    fn retry(&mut self, out: &mut Outbox) {
        if matches!(self.state, State::Clearing { .. }) {
            return self.list_to_clear(out);
        }
        let State::Failing { empty_file } = self.state else { return };
        if !self.begun && empty_file {
            return self.read(out);
        }
        if !self.begun {
            return self.fence(out);
        }
        self.state = State::Beginning { replay: None };
        if empty_file {
            self.file_begun(out);
        } else {
            self.create(out);
        }
    }

    fn completed(&mut self, now: Time, op: DiskOpId, result: DiskResult, out: &mut Outbox) {
        let Some(step) = self.pending.complete(op) else { return };
        let clearing = matches!(self.state, State::Clearing { .. });
        if clearing && !matches!(step, Step::ListToClear | Step::Delete | Step::SyncCleared) {
            return self.list_to_clear(out);
        }
        let output = match result {
            Ok(output) => output,
            // No log was ever begun.
            Err(error) if matches!(step, Step::SyncCleared) && error.kind == DiskErrorKind::NotFound => {
                DiskOutput::Done
            }
            Err(error) if clearing => return self.clearing_failed(now, &error, out),
            Err(error) => {
                // Nothing was written to the epoch's file yet.
                let empty_file = matches!(self.state, State::Reading(_) | State::Adopting(_));
                return self.fail(now, error.to_string(), empty_file, out);
            }
        };
        let path = self.current();
        match step {
            Step::List => self.read_files(output, out),
            Step::Read(index) => self.file_read(index, output, out),
            Step::SyncOld => self.old_synced(out),
            Step::Create => self.created(out),
            Step::AppendHeader => self.disk(Step::SyncHeader, DiskOp::Sync { path }, out),
            Step::SyncHeader => {
                let path = Self::directory(&self.config);
                self.disk(Step::SyncDirectory, DiskOp::SyncDirectory { path }, out);
            }
            Step::SyncDirectory => self.file_begun(out),
            Step::Append if is_planted(&self.config, PlantedBug::AcknowledgeBeforeSync) => self.flushed(out),
            Step::Append => self.disk(Step::Sync, DiskOp::Sync { path }, out),
            Step::Sync => self.list(Step::LookForNewer, out),
            Step::LookForNewer => self.looked_for_newer(output, out),
            Step::Close => {
                let State::Writing(writing) = &mut self.state else { return };
                writing.file = FileState::Absent;
                self.advance(out);
            }
            Step::ListToClear => self.listed_to_clear(output, out),
            Step::Delete => self.deleted(out),
            Step::SyncCleared => self.cleared(out),
        }
    }
}

impl Actor for JobEventWriter {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Message { message, .. } => match message {
                Message::OpenJobEventStore(message) => self.open(&message, out),
                Message::WriteJobEvent(message) => self.write(now, &message, out),
                Message::FlushJobEvents(_) => self.flush(out),
                Message::ClearJobEvents(_) => self.clear(out),
                _ => {}
            },
            Event::Timer(FLUSH) => {
                if let State::Writing(writing) = &mut self.state {
                    writing.timer_set = false;
                }
                self.flush(out);
            }
            Event::Timer(RETRY) => self.retry(out),
            Event::Disk { op, result } => self.completed(now, op, result, out),
            Event::Start | Event::Timer(_) => {}
        }
    }

    fn contradiction(&self) -> Option<String> {
        self.state_contradicts()
    }
}

fn finished_attempt(event: &JobEvent) -> Option<ExecutionAttemptId> {
    match event {
        JobEvent::ExecutionVertexFinished { finish, .. } => Some(finish.attempt),
        _ => None,
    }
}
