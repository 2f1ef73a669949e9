//! One volume: its names, its files, and what of both is durable. Knows nothing of time or
//! processes; [`super`] has the durability model.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use revenant::actor::Purpose;
use revenant::disk::{DirectoryEntry, DiskErrorKind, DiskOp, DiskOutput, Volume};
use xxhash_rust::xxh3::Xxh3;

use super::file::File;
use super::path::{check_directory, check_file, is_below, parent};
use crate::trace::TraceKind;

/// Index of a file, which outlives its names.
pub(super) type FileIndex = usize;

/// A change of names that is not durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The name that is made, with its file.
    pub made: Option<(String, FileIndex)>,
    /// The name that is removed.
    pub removed: Option<String>,
}

impl Change {
    /// The directory whose sync makes the change durable.
    fn directory(&self) -> &str {
        let made = self.made.as_ref().map(|(path, _)| path.as_str());
        parent(made.or(self.removed.as_deref()).unwrap_or_default())
    }

    pub(super) fn apply(&self, names: &mut BTreeMap<String, FileIndex>) {
        if let Some(path) = &self.removed {
            names.remove(path);
        }
        if let Some((path, file)) = &self.made {
            names.insert(path.clone(), *file);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct VolumeImage {
    pub(super) files: Vec<File>,
    pub(super) names: BTreeMap<String, FileIndex>,
    /// The names that a machine crash cannot take.
    pub(super) durable: BTreeMap<String, FileIndex>,
    pub(super) changes: Vec<Change>,
    directories: BTreeSet<String>,
}

type Failure = (DiskErrorKind, String);

fn other(message: String) -> Failure {
    (DiskErrorKind::Other, message)
}

impl VolumeImage {
    pub fn apply(&mut self, action: &DiskOp, purpose: Purpose) -> Result<DiskOutput, Failure> {
        match action {
            DiskOp::List { path } | DiskOp::SyncDirectory { path } => check_directory(path),
            DiskOp::Rename { from, to } => check_file(from).and_then(|()| check_file(to)),
            _ => check_file(action.path()),
        }
        .map_err(other)?;
        match action {
            DiskOp::CreateNew { path } => self.create(path, purpose)?,
            DiskOp::Append { path, bytes } => self.file(path)?.append(bytes.clone()),
            DiskOp::Sync { path } => {
                let file = self.file(path)?;
                file.durable = file.length;
            }
            DiskOp::SyncDirectory { path } => self.sync_directory(path)?,
            DiskOp::Close { path } => {
                self.file(path)?;
            }
            DiskOp::ReadRange { path, offset, length } => {
                return Ok(DiskOutput::Data(self.file(path)?.read(*offset, *length)));
            }
            DiskOp::List { path } => return Ok(DiskOutput::Entries(self.list(path))),
            DiskOp::Rename { from, to } => self.rename(from, to)?,
            DiskOp::Delete { path } => {
                if self.names.remove(path).is_some() {
                    self.changes.push(Change { made: None, removed: Some(path.clone()) });
                }
            }
        }
        Ok(DiskOutput::Done)
    }

    /// As an operation that fails: of one that was to make bytes durable, they never will be.
    pub fn fail(&mut self, action: &DiskOp) {
        if let DiskOp::Sync { path } = action
            && let Ok(file) = self.file(path)
        {
            file.fail_sync();
        }
    }

    fn file(&mut self, path: &str) -> Result<&mut File, Failure> {
        match self.names.get(path) {
            Some(&file) => Ok(&mut self.files[file]),
            None => Err((DiskErrorKind::NotFound, "there is no such file".to_owned())),
        }
    }

    /// Makes the directories above `path`; fails if one of them is a file or `path` is a directory.
    fn prepare(&mut self, path: &str) -> Result<(), Failure> {
        if self.directories.contains(path) {
            return Err((DiskErrorKind::AlreadyExists, "there is a directory of this name".to_owned()));
        }
        let mut directory = parent(path);
        while !directory.is_empty() && !self.directories.contains(directory) {
            if self.names.contains_key(directory) {
                return Err(other(format!("'{directory}' is a file, not a directory")));
            }
            self.directories.insert(directory.to_owned());
            directory = parent(directory);
        }
        Ok(())
    }

    fn create(&mut self, path: &str, purpose: Purpose) -> Result<(), Failure> {
        if self.names.contains_key(path) {
            return Err((DiskErrorKind::AlreadyExists, "there is a file of this name".to_owned()));
        }
        self.prepare(path)?;
        let file = self.files.len();
        self.files.push(File::new(purpose));
        self.names.insert(path.to_owned(), file);
        self.changes.push(Change { made: Some((path.to_owned(), file)), removed: None });
        Ok(())
    }

    /// Makes a file that is durable, content and name.
    pub fn place(&mut self, path: &str, bytes: Bytes) -> Result<(), DiskErrorKind> {
        let steps = [
            DiskOp::CreateNew { path: path.to_owned() },
            DiskOp::Append { path: path.to_owned(), bytes },
            DiskOp::Sync { path: path.to_owned() },
            DiskOp::SyncDirectory { path: parent(path).to_owned() },
        ];
        steps
            .iter()
            .try_for_each(|step| self.apply(step, Purpose::Source).map(|_| ()).map_err(|(kind, _)| kind))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Failure> {
        self.file(from)?;
        self.prepare(to)?;
        if from == to {
            return Ok(());
        }
        let Some(&file) = self.names.get(from) else { return Ok(()) };
        let change = Change { made: Some((to.to_owned(), file)), removed: Some(from.to_owned()) };
        change.apply(&mut self.names);
        self.changes.push(change);
        Ok(())
    }

    fn sync_directory(&mut self, directory: &str) -> Result<(), Failure> {
        if !directory.is_empty() && !self.directories.contains(directory) {
            return Err((DiskErrorKind::NotFound, "there is no such directory".to_owned()));
        }
        let mut open: Vec<Change> = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            if change.directory() != directory {
                open.push(change);
                continue;
            }
            // A name that is durably removed cannot come back from an older, open change.
            if let Some(removed) = &change.removed {
                open.retain(|older| older.made.as_ref().is_none_or(|(path, _)| path != removed));
            }
            change.apply(&mut self.durable);
        }
        self.changes = open;
        Ok(())
    }

    fn list(&self, listed: &str) -> Vec<DirectoryEntry> {
        let below = self.names.iter().filter(|(path, _)| *path == listed || is_below(path, listed));
        below
            .map(|(path, &file)| DirectoryEntry { path: path.clone(), length: self.files[file].length })
            .collect()
    }

    /// What the trace says of an operation on the job event store that was just applied.
    pub fn happening(&self, volume: Volume, purpose: Purpose, action: &DiskOp) -> Option<TraceKind> {
        if purpose != Purpose::JobEvent {
            return None;
        }
        match action {
            DiskOp::Append { path, bytes } => {
                Some(TraceKind::LogAppended { volume, path: path.clone(), bytes: bytes.clone() })
            }
            DiskOp::Sync { path } => {
                let length = self.files[*self.names.get(path)?].length;
                Some(TraceKind::LogSynced { volume, path: path.clone(), length })
            }
            DiskOp::Delete { path } => Some(TraceKind::LogDeleted { volume, path: path.clone() }),
            _ => None,
        }
    }

    /// Flips a bit of the byte at `offset` in the newest file of this purpose in which it is durable;
    /// the file's path, if there is one.
    pub fn corrupt(&mut self, purpose: Purpose, offset: u64) -> Option<String> {
        let fits = |file: &File| file.purpose == Some(purpose) && offset < file.durable;
        let (path, &file) =
            self.names.iter().filter(|(_, file)| fits(&self.files[**file])).max_by_key(|(_, file)| **file)?;
        let path = path.clone();
        self.files[file].flip(offset);
        Some(path)
    }

    /// Whether there are names, or bytes of files that have one, which are not durable.
    pub fn has_unsynced(&self) -> bool {
        !self.changes.is_empty() || self.names.values().any(|&file| self.files[file].has_unsynced())
    }

    /// Adds all names and the bytes behind them, and what of both is durable.
    pub fn digest(&self, digest: &mut Xxh3) {
        for names in [&self.names, &self.durable] {
            digest.update(&(names.len() as u64).to_le_bytes());
            for (path, &file) in names {
                digest.update(path.as_bytes());
                self.files[file].digest(digest);
            }
        }
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, Bytes)> {
        self.names.iter().map(|(path, &file)| (path.as_str(), self.files[file].read(0, u64::MAX)))
    }
}
