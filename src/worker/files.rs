//! The partition files that nobody will ask for: those of an earlier incarnation and those of tasks
//! that did not finish. It decides only when to look and how to delete; whose files are needed is
//! for its owner to say.

use crate::actor::{DiskOpId, Outbox, Pending, Purpose};
use crate::disk::{DiskOp, DiskOutput, DiskResult, Volume};
use crate::note::Note;
use crate::task::PARTITION_DIRECTORY;

#[derive(Debug, Default)]
pub struct Files {
    pending: Pending<Operation>,
}

#[derive(Debug)]
enum Operation {
    Sweep,
    Delete,
}

impl Files {
    /// Whether nothing is being looked for or deleted.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Looks for files that are left over.
    pub fn sweep(&mut self, out: &mut Outbox) {
        let action = DiskOp::List { path: PARTITION_DIRECTORY.to_owned() };
        out.disk(self.pending.begin(Operation::Sweep), Volume::Local, Purpose::Partition, action);
    }

    pub fn delete(&mut self, path: String, out: &mut Outbox) {
        let action = DiskOp::Delete { path };
        out.disk(self.pending.begin(Operation::Delete), Volume::Local, Purpose::Partition, action);
    }

    /// Deletes what a sweep found and is not `needed`.
    pub fn complete(
        &mut self,
        op: DiskOpId,
        result: DiskResult,
        needed: impl Fn(&str) -> bool,
        out: &mut Outbox,
    ) {
        match (self.pending.complete(op), result) {
            (Some(Operation::Sweep), Ok(DiskOutput::Entries(entries))) => {
                for entry in entries.into_iter().filter(|entry| !needed(&entry.path)) {
                    self.delete(entry.path, out);
                }
            }
            (Some(_), Err(error)) => {
                out.note(Note::Warning { text: format!("partition files may be left over: {error}") });
            }
            _ => {}
        }
    }
}
