//! The writer of the job event store: an actor of its own, so that no disk operation ever holds up
//! the JobMaster (FLIP-383, "Persistent JobEventStore", features 1 and 2).
//!
//! It reads the logs of earlier epochs once, opens a file for the new epoch, and then appends. It
//! decides only when to flush: when the buffer is full, when its oldest event has waited for the
//! flush interval, or when it is told to. A flush is an append and a sync; only then are its events
//! durable, and the JobMaster is told. It never drops an event silently: an error ends recording
//! and is reported.

use std::sync::Arc;

use bytes::Bytes;

use crate::actor::{Actor, Boot, DiskOpId, Event, Outbox, Pending, Purpose, Time, TimerId};
use crate::config::Configuration;
use crate::disk::{DiskOp, DiskOutput, DiskResult};
use crate::ids::{Address, ExecutionAttemptId, FencingToken};
use crate::message::{
    JobEventStoreFailed, JobEventStoreOpened, JobEventsCleared, JobEventsDurable, Message, OpenJobEventStore,
};
use crate::note::Note;

use super::replay::{LogFile, replay};
use super::{JobEvent, StoreFailure, record};

const FLUSH: TimerId = TimerId(1);

/// The writer actor of a JobManager process.
#[derive(Debug)]
pub struct JobEventWriter {
    config: Configuration,
    token: FencingToken,
    fingerprint: u64,
    state: State,
    pending: Pending<Step>,
}

#[derive(Debug)]
enum State {
    /// Not told to open yet.
    Closed,
    /// Collecting the contents of the files of earlier epochs.
    Reading {
        files: Vec<OldFile>,
        missing: usize,
    },
    /// Making what was read of earlier epochs durable: their last bytes may have been written but
    /// not synced when their leader died, and from now on decisions rest on them.
    Adopting {
        left: usize,
        replay: Arc<super::Replay>,
        header: Bytes,
    },
    /// Making the new epoch's file durable.
    Creating {
        replay: Arc<super::Replay>,
        header: Bytes,
    },
    Open(OpenFile),
    /// Deleting all files.
    Clearing {
        left: usize,
    },
    /// An operation failed, or the log is cleared: nothing is written any more.
    Ended,
}

#[derive(Debug)]
struct OldFile {
    epoch: FencingToken,
    path: String,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct OpenFile {
    buffer: Vec<u8>,
    /// Last event in the buffer or before it.
    buffered: u64,
    /// Last event of the append that is under way.
    writing: Option<u64>,
    timer_set: bool,
    /// Flush again when the append under way is done.
    flush_again: bool,
}

/// What a disk operation is for.
#[derive(Clone, Copy, Debug)]
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
    ListToClear,
    Delete,
}

impl JobEventWriter {
    pub fn new(boot: &Boot) -> Self {
        Self {
            config: boot.config.clone(),
            token: FencingToken::default(),
            fingerprint: 0,
            state: State::Closed,
            pending: Pending::default(),
        }
    }

    /// Directory of a cluster's job event files on their volume.
    pub fn directory(config: &Configuration) -> String {
        format!("{}/job-events", config.cluster_id)
    }

    /// The file of an epoch.
    pub fn path(config: &Configuration, epoch: FencingToken) -> String {
        format!("{}/events.{epoch}", Self::directory(config))
    }

    fn disk(&mut self, step: Step, action: DiskOp, out: &mut Outbox) {
        let op = self.pending.begin(step);
        out.disk(op, self.config.job_event_volume, Purpose::JobEvent, action);
    }

    fn current(&self) -> String {
        Self::path(&self.config, self.token)
    }

    fn open(&mut self, message: &OpenJobEventStore, out: &mut Outbox) {
        self.token = message.token;
        self.fingerprint = message.fingerprint;
        self.state = State::Reading { files: Vec::new(), missing: 0 };
        self.disk(Step::List, DiskOp::List { path: Self::directory(&self.config) }, out);
    }

    fn read_files(&mut self, output: DiskOutput, out: &mut Outbox) {
        let DiskOutput::Entries(entries) = output else { return };
        let mut files: Vec<OldFile> = Vec::new();
        let mut lengths = Vec::new();
        for entry in entries {
            if let Some(epoch) = epoch_of(&entry.path).filter(|epoch| *epoch < self.token) {
                files.push(OldFile { epoch, path: entry.path, bytes: Bytes::new() });
                lengths.push(entry.length);
            }
        }
        // `List` sorts by path, in which 10 comes before 9.
        let mut order: Vec<usize> = (0..files.len()).collect();
        order.sort_by_key(|&i| files[i].epoch);
        let mut sorted = Vec::new();
        for (to, &from) in order.iter().enumerate() {
            let file = &files[from];
            sorted.push(OldFile { epoch: file.epoch, path: file.path.clone(), bytes: Bytes::new() });
            let read = DiskOp::ReadRange { path: file.path.clone(), offset: 0, length: lengths[from] };
            self.disk(Step::Read(to), read, out);
        }
        let missing = sorted.len();
        self.state = State::Reading { files: sorted, missing };
        if missing == 0 {
            self.adopt(out);
        }
    }

    fn adopt(&mut self, out: &mut Outbox) {
        let State::Reading { files, .. } = &self.state else { return };
        let files: Vec<LogFile<'_>> = files
            .iter()
            .map(|file| LogFile { path: &file.path, epoch: file.epoch, bytes: &file.bytes })
            .collect();
        let outcome = replay(&files, self.fingerprint);
        let accepted =
            files.iter().filter(|file| outcome.accepted.iter().any(|(epoch, _)| *epoch == file.epoch));
        let accepted: Vec<String> = accepted.map(|file| file.path.to_owned()).collect();
        let mut header = record::header().to_vec();
        let started = JobEvent::EpochStarted {
            token: self.token,
            fingerprint: self.fingerprint,
            accepted: outcome.accepted,
        };
        record::write_record(&mut header, 0, self.token, &started);
        self.state =
            State::Adopting { left: accepted.len(), replay: Arc::new(outcome.replay), header: header.into() };
        for path in accepted {
            self.disk(Step::SyncOld, DiskOp::Sync { path }, out);
        }
        self.create(out);
    }

    fn create(&mut self, out: &mut Outbox) {
        let State::Adopting { left: 0, replay, header } = &mut self.state else { return };
        let (replay, header) = (Arc::clone(replay), std::mem::take(header));
        self.state = State::Creating { replay, header };
        let path = self.current();
        self.disk(Step::Create, DiskOp::CreateNew { path }, out);
    }

    fn write(&mut self, now: Time, sequence: u64, event: &JobEvent, out: &mut Outbox) {
        let (token, interval) = (self.token, self.config.flush_interval);
        let State::Open(open) = &mut self.state else { return };
        let before = open.buffer.len();
        record::write_record(&mut open.buffer, sequence, token, event);
        if open.buffer.len() - before > record::RECORD_OVERHEAD + record::MAX_PAYLOAD {
            // Replay would take it for a torn tail, and what follows for damage.
            let message =
                format!("event {sequence} is longer than the {} bytes of a record", record::MAX_PAYLOAD);
            return self.fail(message, out);
        }
        open.buffered = sequence;
        out.note(Note::EventBuffered { token, sequence, finished: finished_attempt(event) });
        if open.buffer.len() as u64 >= self.config.write_buffer_size.0 || interval.is_zero() {
            self.flush(out);
        } else if !open.timer_set {
            open.timer_set = true;
            out.set_timer(FLUSH, now + interval);
        }
    }

    fn flush(&mut self, out: &mut Outbox) {
        let State::Open(open) = &mut self.state else { return };
        if open.writing.is_some() {
            open.flush_again = true;
            return;
        }
        if open.buffer.is_empty() {
            return;
        }
        if std::mem::take(&mut open.timer_set) {
            out.cancel_timer(FLUSH);
        }
        open.flush_again = false;
        open.writing = Some(open.buffered);
        let bytes = Bytes::from(std::mem::take(&mut open.buffer));
        let path = self.current();
        self.disk(Step::Append, DiskOp::Append { path, bytes }, out);
    }

    fn clear(&mut self, out: &mut Outbox) {
        if let State::Open(OpenFile { timer_set: true, .. }) = self.state {
            out.cancel_timer(FLUSH);
        }
        self.pending.forget_all();
        self.state = State::Clearing { left: 0 };
        self.disk(Step::ListToClear, DiskOp::List { path: Self::directory(&self.config) }, out);
    }

    fn completed(&mut self, op: DiskOpId, result: DiskResult, out: &mut Outbox) {
        let Some(step) = self.pending.complete(op) else { return };
        let output = match result {
            Ok(output) => output,
            Err(error) => return self.fail(error.to_string(), out),
        };
        let path = self.current();
        match step {
            Step::List => self.read_files(output, out),
            Step::Read(index) => {
                let State::Reading { files, missing } = &mut self.state else { return };
                let DiskOutput::Data(bytes) = output else { return };
                files[index].bytes = bytes;
                *missing -= 1;
                if *missing == 0 {
                    self.adopt(out);
                }
            }
            Step::SyncOld => {
                let State::Adopting { left, .. } = &mut self.state else { return };
                *left -= 1;
                self.create(out);
            }
            Step::Create => {
                let State::Creating { header, .. } = &mut self.state else { return };
                let bytes = std::mem::take(header);
                self.disk(Step::AppendHeader, DiskOp::Append { path, bytes }, out);
            }
            Step::AppendHeader => self.disk(Step::SyncHeader, DiskOp::Sync { path }, out),
            Step::SyncHeader => {
                let path = Self::directory(&self.config);
                self.disk(Step::SyncDirectory, DiskOp::SyncDirectory { path }, out);
            }
            Step::SyncDirectory => {
                let State::Creating { replay, .. } = &self.state else { return };
                let replay = Arc::clone(replay);
                self.state = State::Open(OpenFile::default());
                out.send(Address::MASTER, JobEventStoreOpened { token: self.token, replay });
            }
            Step::Append => self.disk(Step::Sync, DiskOp::Sync { path }, out),
            Step::Sync => {
                let State::Open(open) = &mut self.state else { return };
                let Some(sequence) = open.writing.take() else { return };
                let again = open.flush_again;
                out.note(Note::EventsDurable { token: self.token, sequence });
                out.send(Address::MASTER, JobEventsDurable { token: self.token, sequence });
                if again {
                    self.flush(out);
                }
            }
            Step::ListToClear => {
                let DiskOutput::Entries(entries) = output else { return };
                self.state = State::Clearing { left: entries.len() };
                for entry in entries {
                    self.disk(Step::Delete, DiskOp::Delete { path: entry.path }, out);
                }
                self.cleared(out);
            }
            Step::Delete => {
                let State::Clearing { left } = &mut self.state else { return };
                *left -= 1;
                self.cleared(out);
            }
        }
    }

    /// Recording ends; what was not durable is not.
    fn fail(&mut self, message: String, out: &mut Outbox) {
        self.pending.forget_all();
        self.state = State::Ended;
        let failure = StoreFailure { message };
        out.send(Address::MASTER, JobEventStoreFailed { token: self.token, failure });
    }

    fn cleared(&mut self, out: &mut Outbox) {
        if matches!(self.state, State::Clearing { left: 0 }) {
            self.state = State::Ended;
            out.send(Address::MASTER, JobEventsCleared {});
        }
    }
}

impl Actor for JobEventWriter {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Message { message, .. } => match message {
                Message::OpenJobEventStore(message) => self.open(&message, out),
                Message::WriteJobEvent(message) => self.write(now, message.sequence, &message.event, out),
                Message::FlushJobEvents(_) => self.flush(out),
                Message::ClearJobEvents(_) => self.clear(out),
                _ => {}
            },
            Event::Timer(FLUSH) => {
                if let State::Open(open) = &mut self.state {
                    open.timer_set = false;
                }
                self.flush(out);
            }
            Event::Disk { op, result } => self.completed(op, result, out),
            Event::Start | Event::Timer(_) => {}
        }
    }
}

fn epoch_of(path: &str) -> Option<FencingToken> {
    path.rsplit('/').next()?.strip_prefix("events.")?.parse().ok().map(FencingToken)
}

fn finished_attempt(event: &JobEvent) -> Option<ExecutionAttemptId> {
    match event {
        JobEvent::ExecutionVertexFinished { finish, .. } => Some(finish.attempt),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
