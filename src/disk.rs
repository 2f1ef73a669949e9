//! The disk operations that actors may ask for, and their results. A path is relative to its
//! volume, with `/` between parts; parents of a new file are made when they are missing.
//! Durable means synced: bytes by [`DiskOp::Sync`], directory entries by [`DiskOp::SyncDirectory`].

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Where files live. The scenario (or, for real, the configuration) says with which machine, if
/// any, a volume dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Volume {
    /// A process's own disk, kept over a restart of the process.
    Local,
    /// A process's own disk for spill files.
    Scratch,
    /// `high-availability.storageDir`, shared by the JobManager's incarnations.
    Ha,
    /// Where sinks write, shared by all.
    Output,
    /// Where sources read, shared by all.
    Input,
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Scratch => "scratch",
            Self::Ha => "ha",
            Self::Output => "output",
            Self::Input => "input",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DiskOp {
    /// Makes an empty file; fails with [`DiskErrorKind::AlreadyExists`] if there is one.
    CreateNew { path: String },
    /// Adds bytes at the end of an existing file.
    Append { path: String, bytes: Bytes },
    /// Makes the file's bytes durable (not its directory entry).
    Sync { path: String },
    /// Makes the entries of a directory durable: creations, renames and deletions in it.
    SyncDirectory { path: String },
    /// The actor will not append to this file any more.
    Close { path: String },
    /// Reads `length` bytes from `offset`, fewer at the end of the file.
    ReadRange { path: String, offset: u64, length: u64 },
    /// The files in a directory and its subdirectories, by path; of a file, the file itself; empty
    /// when there is neither.
    List { path: String },
    /// Replaces `to` if it exists.
    Rename { from: String, to: String },
    /// Deleting what is not there succeeds.
    Delete { path: String },
}

impl DiskOp {
    /// Short name of the kind of operation, as crash points use it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::CreateNew { .. } => "create",
            Self::Append { .. } => "append",
            Self::Sync { .. } => "sync",
            Self::SyncDirectory { .. } => "sync-directory",
            Self::Close { .. } => "close",
            Self::ReadRange { .. } => "read",
            Self::List { .. } => "list",
            Self::Rename { .. } => "rename",
            Self::Delete { .. } => "delete",
        }
    }

    /// The path that an error about this operation names.
    pub fn path(&self) -> &str {
        match self {
            Self::CreateNew { path }
            | Self::Append { path, .. }
            | Self::Sync { path }
            | Self::SyncDirectory { path }
            | Self::Close { path }
            | Self::ReadRange { path, .. }
            | Self::List { path }
            | Self::Delete { path } => path,
            Self::Rename { from, .. } => from,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DiskOutput {
    Done,
    Data(Bytes),
    Entries(Vec<DirectoryEntry>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Path of the file, relative to the volume.
    pub path: String,
    /// In bytes.
    pub length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DiskErrorKind {
    NotFound,
    AlreadyExists,
    Full,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[error("{operation} of {volume}:{path} failed: {message}")]
pub struct DiskError {
    pub kind: DiskErrorKind,
    pub operation: String,
    pub volume: Volume,
    pub path: String,
    pub message: String,
}

pub type DiskResult = Result<DiskOutput, DiskError>;
