//! The files that nobody will ask for: partitions of an earlier incarnation and of tasks that did not
//! finish, and what sorts and sinks of such tasks left. It decides only when to look and how to delete; whose
//! files are needed is for its owner to say.

use crate::actor::{DiskOpId, Outbox, Pending, Purpose};
use crate::connectors::PENDING_DIRECTORY;
use crate::disk::{DiskOp, DiskOutput, DiskResult, Volume};
use crate::note::Note;
use crate::task::{PARTITION_DIRECTORY, SPILL_DIRECTORY};

/// What kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Partitions,
    Spills,
    /// Output that no commit will name.
    Uncommitted,
}

impl Place {
    const fn directory(self) -> &'static str {
        match self {
            Self::Partitions => PARTITION_DIRECTORY,
            Self::Spills => SPILL_DIRECTORY,
            Self::Uncommitted => PENDING_DIRECTORY,
        }
    }

    const fn volume(self) -> Volume {
        match self {
            Self::Partitions => Volume::Local,
            Self::Spills => Volume::Scratch,
            Self::Uncommitted => Volume::Output,
        }
    }

    const fn purpose(self) -> Purpose {
        match self {
            Self::Partitions => Purpose::Partition,
            Self::Spills => Purpose::Spill,
            Self::Uncommitted => Purpose::Sink,
        }
    }
}

#[derive(Debug, Default)]
pub struct Files {
    pending: Pending<Operation>,
}

#[derive(Debug)]
enum Operation {
    Sweep(Place),
    Delete(Place),
}

impl Files {
    /// Whether nothing is being looked for or deleted.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Looks for files that are left over.
    pub fn sweep(&mut self, place: Place, out: &mut Outbox) {
        let action = DiskOp::List { path: place.directory().to_owned() };
        out.disk(self.pending.begin(Operation::Sweep(place)), place.volume(), place.purpose(), action);
    }

    pub fn delete(&mut self, place: Place, path: String, out: &mut Outbox) {
        let action = DiskOp::Delete { path };
        out.disk(self.pending.begin(Operation::Delete(place)), place.volume(), place.purpose(), action);
    }

    /// Deletes what a sweep found and is not `needed`.
    pub fn complete(
        &mut self,
        op: DiskOpId,
        result: DiskResult,
        needed: impl Fn(Place, &str) -> bool,
        out: &mut Outbox,
    ) {
        match (self.pending.complete(op), result) {
            (Some(Operation::Sweep(place)), Ok(DiskOutput::Entries(entries))) => {
                for entry in entries.into_iter().filter(|entry| !needed(place, &entry.path)) {
                    self.delete(place, entry.path, out);
                }
            }
            (Some(Operation::Sweep(place) | Operation::Delete(place)), Err(error)) => {
                let what = match place {
                    Place::Partitions => "partition files",
                    Place::Spills => "files of sorts",
                    Place::Uncommitted => "pending files of sinks",
                };
                out.note(Note::Warning { text: format!("{what} may be left over: {error}") });
            }
            _ => {}
        }
    }
}
