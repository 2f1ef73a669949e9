//! Operator coordinators: in this engine, the enumerators that assign a source's splits to its
//! readers on request (Flink's SourceCoordinator and SplitEnumerator).

mod snapshots;
mod source_coordinator;

use bytes::Bytes;

use crate::disk::DirectoryEntry;
use crate::message::SourceSplit;

pub use snapshots::{SnapshotKind, SnapshotPause};
pub use source_coordinator::SourceCoordinator;

/// Makes the enumerator of a source; runs in the JobManager.
pub trait SplitEnumeratorFactory: Send + Sync {
    /// All splits of a source that needs no files to know them, in order, equal at every call. Split
    /// `i` has id `i`.
    fn splits(&self) -> Vec<SourceSplit>;

    /// The files and directories on the input volume from which the splits follow; empty for a source
    /// that knows its splits without.
    fn paths(&self) -> Vec<String> {
        Vec::new()
    }

    /// As [`Self::splits`], for a source with [`Self::paths`]: given the files that were found there,
    /// path by path.
    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<SourceSplit> {
        let _ = files;
        self.splits()
    }

    fn assignment(&self) -> SplitAssignment {
        SplitAssignment::Dynamic
    }

    /// Whether a coordinator's state can be recorded in a batch job (Flink's SupportsBatchSnapshot).
    /// If not, a job that recovers reads this source again unless all of its subtasks had finished.
    fn supports_batch_snapshot(&self) -> bool {
        true
    }
}

/// Who reads which split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitAssignment {
    /// Whoever asks first: a subtask that runs again may get other splits.
    #[default]
    Dynamic,
    /// Split `i` is read by subtask `i` modulo the parallelism, in every attempt.
    Static,
}

impl dyn SplitEnumeratorFactory {
    /// What recovery has to know of this source's enumerators.
    pub fn snapshot_kind(&self) -> SnapshotKind {
        match (self.assignment(), self.supports_batch_snapshot()) {
            (SplitAssignment::Static, _) => SnapshotKind::Stateless,
            (SplitAssignment::Dynamic, true) => SnapshotKind::Supported,
            (SplitAssignment::Dynamic, false) => SnapshotKind::Unsupported,
        }
    }
}

/// Bytes of a coordinator's snapshot.
pub type CoordinatorSnapshot = Bytes;
