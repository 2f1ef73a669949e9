//! What a body can ask of its task.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;

use crate::actor::Purpose;
use crate::disk::{DiskError, Volume};
use crate::ids::ExecutionAttemptId;
use crate::message::{Committable, SourceSplit};

/// A body's view of its task. Clones share the task.
#[derive(Clone, Debug)]
pub struct TaskContext {
    shared: Rc<RefCell<()>>,
}

/// A buffer of one input gate: whole records, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputBuffer {
    /// Index of the input edge.
    pub gate: usize,
    pub bytes: Bytes,
}

impl TaskContext {
    pub fn attempt(&self) -> ExecutionAttemptId {
        todo!()
    }

    pub fn subtask(&self) -> u32 {
        todo!()
    }

    pub fn parallelism(&self) -> u32 {
        todo!()
    }

    /// The next buffer in the order (gate, partition, subpartition, production); `None` when all
    /// inputs are at their end. Also yields, so that a cancel is seen.
    pub async fn next_buffer(&self) -> Option<InputBuffer> {
        todo!()
    }

    /// The rest of the input is not wanted: it is not fetched, `next_buffer` gives `None`.
    pub fn close_inputs(&self) {
        todo!()
    }

    /// Asks the coordinator for a split; `None` when there will be none.
    pub async fn next_split(&self) -> Option<SourceSplit> {
        todo!()
    }

    pub fn output_count(&self) -> usize {
        todo!()
    }

    /// Number of subpartitions of an output.
    pub fn subpartitions(&self, output: usize) -> u32 {
        todo!()
    }

    /// Adds one encoded record to a subpartition: `write` appends the record's bytes to the
    /// subpartition's current buffer. A buffer that is full is written to the partition's file.
    /// Never waits: call [`Self::room`] between input buffers.
    pub fn emit(&self, output: usize, subpartition: u32, write: impl FnOnce(&mut Vec<u8>)) {
        let _ = (output, subpartition, write);
        todo!()
    }

    /// Waits until output that is not yet written is below its limit.
    pub async fn room(&self) {
        todo!()
    }

    /// The sink's subtask wants this rename when the job commits.
    pub fn add_committable(&self, committable: Committable) {
        let _ = committable;
        todo!()
    }

    pub fn count_records_in(&self, records: u64) {
        let _ = records;
        todo!()
    }

    pub fn count_records_out(&self, records: u64) {
        let _ = records;
        todo!()
    }

    /// Makes an empty file; with its directory entry durable only after [`Self::sync_directory`].
    pub async fn create(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        let _ = (volume, purpose, path);
        todo!()
    }

    pub async fn append(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
        bytes: Bytes,
    ) -> Result<(), DiskError> {
        let _ = (volume, purpose, path, bytes);
        todo!()
    }

    pub async fn sync(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        let _ = (volume, purpose, path);
        todo!()
    }

    pub async fn sync_directory(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
    ) -> Result<(), DiskError> {
        let _ = (volume, purpose, path);
        todo!()
    }

    pub async fn read(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, DiskError> {
        let _ = (volume, purpose, path, offset, length);
        todo!()
    }

    pub async fn delete(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        let _ = (volume, purpose, path);
        todo!()
    }
}
