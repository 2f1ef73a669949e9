//! Operator coordinators: in this engine, the enumerators that assign a source's splits to its
//! readers on request (Flink's SourceCoordinator and SplitEnumerator).

mod source_coordinator;

use bytes::Bytes;

use crate::message::SourceSplit;

pub use source_coordinator::SourceCoordinator;

/// Makes the enumerator of a source; runs in the JobManager.
pub trait SplitEnumeratorFactory: Send + Sync {
    /// All splits of the source, in order, equal at every call. Split `i` has id `i`.
    fn splits(&self) -> Vec<SourceSplit>;
}

/// Bytes of a coordinator's snapshot.
pub type CoordinatorSnapshot = Bytes;
