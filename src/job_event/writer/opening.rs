//! Opening the store: the epoch's first file is created, the files of earlier epochs are listed, read
//! and replayed, what counts of them is made durable, and the epoch's file begins with what it accepts
//! of them. If any of it fails, all of it is tried again, with another file if that one may not be empty.

use std::sync::Arc;

use bytes::Bytes;

use crate::actor::Outbox;
use crate::config::Configuration;
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput};
use crate::ids::FencingToken;
use crate::job_event::replay::{LogFile, replay};
use crate::job_event::{JobEvent, Replay, record};
use crate::message::OpenJobEventStore;
use crate::planted::{PlantedBug, is_planted};

use super::{JobEventWriter, State, Step};

#[derive(Debug, Default)]
pub(super) struct Reading {
    /// In rising order of (epoch, index).
    files: Vec<OldFile>,
    missing: usize,
}

#[derive(Debug)]
struct OldFile {
    epoch: FencingToken,
    index: u32,
    path: String,
    bytes: Bytes,
}

#[derive(Debug)]
pub(super) struct Adopting {
    left: usize,
    replay: Arc<Replay>,
    header: Bytes,
}

impl JobEventWriter {
    pub(super) fn open(&mut self, message: &OpenJobEventStore, out: &mut Outbox) {
        if !matches!(self.state, State::Closed) {
            return;
        }
        self.token = message.token;
        self.fingerprint = message.fingerprint;
        self.fence(out);
    }

    /// From the creation of this file on, no earlier leader takes anything that it writes for durable.
    pub(super) fn fence(&mut self, out: &mut Outbox) {
        self.state = State::Fencing;
        self.create(out);
    }

    pub(super) fn read(&mut self, out: &mut Outbox) {
        self.state = State::Reading(Reading::default());
        self.list(Step::List, out);
    }

    pub(super) fn read_files(&mut self, output: DiskOutput, out: &mut Outbox) {
        let DiskOutput::Entries(entries) = output else { return };
        if let Some(newer) = newest_epoch(&self.config, &entries).filter(|&newest| newest > self.token) {
            return self.fenced(newer, out);
        }
        let mut found: Vec<(OldFile, u64)> = Vec::new();
        for entry in entries {
            if let Some((epoch, index)) = name_of(&self.config, &entry.path)
                && epoch < self.token
            {
                found.push((OldFile { epoch, index, path: entry.path, bytes: Bytes::new() }, entry.length));
            }
        }
        // `List` sorts by path, in which 10 comes before 9.
        found.sort_by_key(|(file, _)| (file.epoch, file.index));
        for (at, (file, length)) in found.iter().enumerate() {
            let read = DiskOp::ReadRange { path: file.path.clone(), offset: 0, length: *length };
            self.disk(Step::Read(at), read, out);
        }
        let files: Vec<OldFile> = found.into_iter().map(|(file, _)| file).collect();
        let missing = files.len();
        self.state = State::Reading(Reading { files, missing });
        if missing == 0 {
            self.adopt(out);
        }
    }

    pub(super) fn file_read(&mut self, at: usize, output: DiskOutput, out: &mut Outbox) {
        let State::Reading(Reading { files, missing }) = &mut self.state else { return };
        let DiskOutput::Data(bytes) = output else { return };
        files[at].bytes = bytes;
        *missing -= 1;
        if *missing == 0 {
            self.adopt(out);
        }
    }

    fn adopt(&mut self, out: &mut Outbox) {
        let State::Reading(Reading { files, .. }) = &self.state else { return };
        let files: Vec<LogFile<'_>> = files
            .iter()
            .map(|file| LogFile {
                path: &file.path,
                epoch: file.epoch,
                index: file.index,
                bytes: &file.bytes,
            })
            .collect();
        let outcome = replay(&files, self.fingerprint);
        let paths = outcome.accepted.iter().map(|file| Self::path(&self.config, file.epoch, file.index));
        let paths: Vec<String> = paths.collect();
        let mut header = record::header().to_vec();
        let forget = is_planted(&self.config, PlantedBug::ForgetOlderFiles);
        let started = JobEvent::EpochStarted {
            token: self.token,
            fingerprint: self.fingerprint,
            accepted: if forget { Vec::new() } else { outcome.accepted },
        };
        record::write_record(&mut header, 0, self.token, &started);
        self.state = State::Adopting(Adopting {
            left: paths.len(),
            replay: Arc::new(outcome.replay),
            header: header.into(),
        });
        for path in paths {
            self.disk(Step::SyncOld, DiskOp::Sync { path }, out);
        }
        self.begin(out);
    }

    pub(super) fn old_synced(&mut self, out: &mut Outbox) {
        let State::Adopting(adopting) = &mut self.state else { return };
        adopting.left -= 1;
        self.begin(out);
    }

    fn begin(&mut self, out: &mut Outbox) {
        let State::Adopting(Adopting { left: 0, replay, header }) = &mut self.state else { return };
        let (replay, header) = (Arc::clone(replay), std::mem::take(header));
        self.state = State::Beginning { replay: Some(replay) };
        self.write_header(header, out);
    }
}

/// The newest epoch that has a file.
pub(super) fn newest_epoch(config: &Configuration, entries: &[DirectoryEntry]) -> Option<FencingToken> {
    entries.iter().filter_map(|entry| Some(name_of(config, &entry.path)?.0)).max()
}

/// Epoch and index in the name of a file of the store; other files are none of its business.
fn name_of(config: &Configuration, path: &str) -> Option<(FencingToken, u32)> {
    let (_, name) = path.rsplit_once("events.")?;
    let (epoch, index) = name.split_once('.')?;
    let (epoch, index) = (FencingToken(epoch.parse().ok()?), index.parse().ok()?);
    (JobEventWriter::path(config, epoch, index) == path).then_some((epoch, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_the_store_gives_are_its_files() {
        let config = Configuration::default();
        let path = JobEventWriter::path(&config, FencingToken(12), 3);
        assert_eq!(path, "default/job-events/events.12.3");
        assert_eq!(name_of(&config, &path), Some((FencingToken(12), 3)));
        for foreign in [
            "default/job-events/events.12",
            "default/job-events/events.12.",
            "default/job-events/events.012.3",
            "default/job-events/events.12.+3",
            "default/job-events/events.12.3.bak",
            "default/job-events/old/events.12.3",
            "default/job-events/notes",
            "events.12.3",
        ] {
            assert_eq!(name_of(&config, foreign), None, "{foreign}");
        }
    }
}
