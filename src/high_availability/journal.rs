//! The journal of the high-availability service on the `ha` volume: files
//! `<cluster>/ha/journal.<n>`, of which the newest that was completely begun counts. Every
//! incarnation begins a new file with a snapshot of all that it read, so that what it acts upon is
//! durable and a torn tail is never written behind. It never decides what to write.

use crate::actor::{DiskOpId, Outbox, Pending, Purpose};
use crate::disk::{DirectoryEntry, DiskError, DiskOp, DiskOutput, DiskResult, Volume};

use super::format;
use super::state::{HaRecord, HaState};

/// What the owner is told.
pub enum JournalEvent {
    /// The state is read, and durable in a file of this incarnation.
    Opened(HaState),
    /// The record is durable.
    Written,
    /// The file in use must not be trusted any more.
    Failed(DiskError),
    /// The files cannot be read as they are; with what to do.
    Damaged(String),
}

#[derive(Debug)]
enum Step {
    List,
    /// Of the file at this index in `old`.
    Read {
        index: usize,
    },
    Create {
        state: Box<HaState>,
    },
    Head {
        state: Box<HaState>,
    },
    HeadSync {
        state: Box<HaState>,
    },
    Directory {
        state: Box<HaState>,
    },
    Append,
    Sync,
    /// Nobody waits for it.
    DeleteOld,
}

#[derive(Debug)]
pub struct Journal {
    cluster_id: String,
    /// Where the job event store keeps files of the same cluster.
    job_event_volume: Volume,
    directory: String,
    steps: Pending<Step>,
    /// Number of the newest file that exists or was tried.
    number: u64,
    /// Sequence number of the last record in the file.
    sequence: u64,
    /// Files that a newer one makes superfluous: number and length in bytes, rising.
    old: Vec<(u64, u64)>,
}

impl Journal {
    pub fn new(cluster_id: &str, job_event_volume: Volume) -> Self {
        Self {
            cluster_id: cluster_id.to_owned(),
            job_event_volume,
            directory: format!("{cluster_id}/ha"),
            steps: Pending::default(),
            number: 0,
            sequence: 0,
            old: Vec::new(),
        }
    }

    /// Reads what earlier incarnations left and begins a file.
    pub fn open(&mut self, out: &mut Outbox) {
        self.steps.forget_all();
        self.run(Step::List, DiskOp::List { path: self.directory.clone() }, out);
    }

    /// Begins the next file with `state`.
    pub fn begin_file(&mut self, state: &HaState, out: &mut Outbox) {
        self.steps.forget_all();
        if self.number > 0 {
            self.old.push((self.number, 0));
        }
        self.number += 1;
        self.sequence = 0;
        let state = Box::new(state.clone());
        self.run(Step::Create { state }, DiskOp::CreateNew { path: self.path(self.number) }, out);
    }

    /// Makes a record durable; [`JournalEvent::Written`] says when it is. One at a time.
    pub fn write(&mut self, record: &HaRecord, out: &mut Outbox) {
        self.sequence += 1;
        let mut bytes = Vec::new();
        format::encode(self.number, self.sequence, record, &mut bytes);
        self.run(Step::Append, DiskOp::Append { path: self.path(self.number), bytes: bytes.into() }, out);
    }

    pub fn complete(&mut self, op: DiskOpId, result: DiskResult, out: &mut Outbox) -> Option<JournalEvent> {
        let step = self.steps.complete(op)?;
        let output = match result {
            Ok(output) => output,
            Err(_) if matches!(step, Step::DeleteOld) => return None,
            Err(error) => return Some(JournalEvent::Failed(error)),
        };
        match step {
            Step::List => {
                let DiskOutput::Entries(entries) = output else { return None };
                self.old = self.files(&entries);
                self.number = self.old.last().map_or(0, |&(number, _)| number);
                self.read_or_begin(self.old.len().checked_sub(1), out);
                None
            }
            Step::Read { index } => {
                let DiskOutput::Data(bytes) = output else { return None };
                self.understand(&bytes, index, out)
            }
            Step::Create { state } => {
                let path = self.path(self.number);
                let bytes = format::begin(self.number, &state);
                self.run(Step::Head { state }, DiskOp::Append { path, bytes: bytes.into() }, out);
                None
            }
            Step::Head { state } => {
                self.run(Step::HeadSync { state }, DiskOp::Sync { path: self.path(self.number) }, out);
                None
            }
            Step::HeadSync { state } => {
                let path = self.directory.clone();
                self.run(Step::Directory { state }, DiskOp::SyncDirectory { path }, out);
                None
            }
            Step::Directory { state } => {
                for (number, _) in std::mem::take(&mut self.old) {
                    self.run(Step::DeleteOld, DiskOp::Delete { path: self.path(number) }, out);
                }
                Some(JournalEvent::Opened(*state))
            }
            Step::Append => {
                self.run(Step::Sync, DiskOp::Sync { path: self.path(self.number) }, out);
                None
            }
            Step::Sync => Some(JournalEvent::Written),
            Step::DeleteOld => None,
        }
    }

    fn read_or_begin(&mut self, index: Option<usize>, out: &mut Outbox) {
        match index.and_then(|index| Some((index, *self.old.get(index)?))) {
            Some((index, (number, length))) => {
                let path = self.path(number);
                self.run(Step::Read { index }, DiskOp::ReadRange { path, offset: 0, length }, out);
            }
            None => self.begin_after_read(&HaState::default(), out),
        }
    }

    fn understand(&mut self, bytes: &[u8], index: usize, out: &mut Outbox) -> Option<JournalEvent> {
        let number = self.old.get(index)?.0;
        match format::decode(number, bytes) {
            Ok(Some(state)) => self.begin_after_read(&state, out),
            // An older file is deleted only when its successor is durable: then this one was.
            Ok(None) if index == 0 && number > 1 => {
                return Some(self.damaged(number, "has lost all its records"));
            }
            Ok(None) => self.read_or_begin(index.checked_sub(1), out),
            Err(error) => return Some(self.damaged(number, &error.to_string())),
        }
        None
    }

    fn begin_after_read(&mut self, state: &HaState, out: &mut Outbox) {
        let old = std::mem::take(&mut self.old);
        self.begin_file(state, out);
        self.old = old;
    }

    fn damaged(&self, number: u64, what: &str) -> JournalEvent {
        // Tokens begin at 1 again without a journal: what was left under the old ones has to go, too.
        let volumes = match self.job_event_volume {
            Volume::Ha => "volume ha".to_owned(),
            other => format!("volumes ha and {other}"),
        };
        JournalEvent::Damaged(format!(
            "the high-availability journal ha:{} {what}. Nothing was changed. Restore the file from a copy; or \
             start the cluster anew, which forgets its job and result: remove the whole directory '{}' on the \
             {volumes} and restart the TaskManagers",
            self.path(number),
            self.cluster_id
        ))
    }

    fn path(&self, number: u64) -> String {
        format!("{}/journal.{number}", self.directory)
    }

    /// The journal files, with number and length, rising.
    fn files(&self, entries: &[DirectoryEntry]) -> Vec<(u64, u64)> {
        let prefix = format!("{}/journal.", self.directory);
        let mut files: Vec<(u64, u64)> = entries
            .iter()
            .filter_map(|entry| Some((entry.path.strip_prefix(&prefix)?.parse().ok()?, entry.length)))
            .filter(|&(number, _)| number > 0)
            .collect();
        files.sort_unstable();
        files
    }

    fn run(&mut self, step: Step, action: DiskOp, out: &mut Outbox) {
        let op = self.steps.begin(step);
        out.disk(op, Volume::Ha, Purpose::HighAvailability, action);
    }
}
