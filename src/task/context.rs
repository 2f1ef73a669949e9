//! What a body can ask of its task.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;

use crate::actor::{DiskOpId, Purpose};
use crate::disk::{DiskError, DiskErrorKind, DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::ExecutionAttemptId;
use crate::message::{Committable, SourceSplit};

use super::LongCounter;
use super::input::InputBuffer;
use super::shared::{Shared, SortMemory};

/// A body's view of its task. Clones share the task.
#[derive(Clone)]
pub struct TaskContext {
    shared: Rc<RefCell<Shared>>,
}

impl TaskContext {
    pub(super) fn new(shared: Rc<RefCell<Shared>>) -> Self {
        Self { shared }
    }

    pub fn attempt(&self) -> ExecutionAttemptId {
        self.shared.borrow().attempt
    }

    pub fn subtask(&self) -> u32 {
        self.attempt().subtask.subtask
    }

    pub fn parallelism(&self) -> u32 {
        self.shared.borrow().parallelism
    }

    pub fn sort_memory(&self) -> SortMemory {
        self.shared.borrow().sort_memory
    }

    /// The next buffer in the order (gate, partition, subpartition, production); `None` when all
    /// inputs are at their end. Waits when no more is at hand than the credit allows, so that a
    /// cancel is seen.
    pub async fn next_buffer(&self) -> Option<InputBuffer> {
        poll_fn(|_| {
            let Shared { inputs, out, .. } = &mut *self.shared.borrow_mut();
            inputs.poll_next(out)
        })
        .await
    }

    /// The rest of the input is not wanted: it is not fetched, `next_buffer` gives `None`.
    pub fn close_inputs(&self) {
        let Shared { inputs, out, .. } = &mut *self.shared.borrow_mut();
        inputs.close(out);
    }

    /// Asks the coordinator for a split; `None` when there will be none.
    pub async fn next_split(&self) -> Option<SourceSplit> {
        poll_fn(|_| {
            let Shared { splits, attempt, out, .. } = &mut *self.shared.borrow_mut();
            splits.poll_next(*attempt, out)
        })
        .await
    }

    pub fn output_count(&self) -> usize {
        self.shared.borrow().outputs.len()
    }

    /// Number of subpartitions of an output.
    pub fn subpartitions(&self, output: usize) -> u32 {
        self.shared.borrow().outputs.subpartitions(output)
    }

    /// Adds one encoded record to a subpartition, and counts it: `write` appends the record's bytes to the
    /// subpartition's current buffer, and may not use the context. A buffer that is full is written
    /// to the partition's file. Never waits: call [`Self::room`] between input buffers.
    pub fn emit<R>(&self, output: usize, subpartition: u32, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut shared = self.shared.borrow_mut();
        shared.records.records_out += 1;
        shared.outputs.emit(output, subpartition, write)
    }

    /// Waits until output that is not yet written is below its limit.
    pub async fn room(&self) {
        poll_fn(|_| if self.has_room() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Whether [`Self::room`] would not wait.
    pub fn has_room(&self) -> bool {
        self.shared.borrow_mut().outputs.has_room()
    }

    /// The sink's subtask wants this rename when the job commits.
    pub fn add_committable(&self, committable: Committable) {
        self.shared.borrow_mut().committables.push(committable);
    }

    /// Adds to a sum of the job (Flink's LongCounter): it counts once this attempt is accepted as the
    /// subtask's finish, and once only.
    pub fn add_to_accumulator(&self, name: &str, value: i64) {
        let mut shared = self.shared.borrow_mut();
        match shared.accumulators.get(name) {
            Some(sum) => sum.add(value),
            None => shared.accumulators.entry(name.to_owned()).or_default().add(value),
        }
    }

    /// The same sum, to be kept and added to.
    pub fn long_counter(&self, name: &str) -> LongCounter {
        self.shared.borrow_mut().accumulators.entry(name.to_owned()).or_default().clone()
    }

    pub fn count_records_in(&self, records: u64) {
        self.shared.borrow_mut().records.records_in += records;
    }

    pub fn count_records_out(&self, records: u64) {
        self.shared.borrow_mut().records.records_out += records;
    }

    /// Makes an empty file; with its directory entry durable only after [`Self::sync_directory`].
    pub async fn create(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::CreateNew { path: path.to_owned() }).await.map(drop)
    }

    pub async fn append(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
        bytes: Bytes,
    ) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::Append { path: path.to_owned(), bytes }).await.map(drop)
    }

    pub async fn sync(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::Sync { path: path.to_owned() }).await.map(drop)
    }

    pub async fn sync_directory(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
    ) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::SyncDirectory { path: path.to_owned() }).await.map(drop)
    }

    /// The task will not append to this file any more.
    pub async fn close(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::Close { path: path.to_owned() }).await.map(drop)
    }

    /// Fewer than `length` bytes at the end of the file.
    pub async fn read(
        &self,
        volume: Volume,
        purpose: Purpose,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, DiskError> {
        let action = DiskOp::ReadRange { path: path.to_owned(), offset, length };
        match self.disk(volume, purpose, action).await? {
            DiskOutput::Data(bytes) => Ok(bytes),
            other => Err(DiskError {
                kind: DiskErrorKind::Other,
                operation: "read".to_owned(),
                volume,
                path: path.to_owned(),
                message: format!("the disk answered {other:?} instead of data"),
            }),
        }
    }

    pub async fn delete(&self, volume: Volume, purpose: Purpose, path: &str) -> Result<(), DiskError> {
        self.disk(volume, purpose, DiskOp::Delete { path: path.to_owned() }).await.map(drop)
    }

    async fn disk(&self, volume: Volume, purpose: Purpose, action: DiskOp) -> DiskResult {
        let op = {
            let mut shared = self.shared.borrow_mut();
            let op = shared.ids.next();
            shared.operations.insert(op, None);
            shared.out.disk(op, volume, purpose, action);
            op
        };
        let operation = Operation { shared: Rc::clone(&self.shared), op };
        poll_fn(|_| operation.poll()).await
    }
}

impl fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext").finish_non_exhaustive()
    }
}

/// A disk operation that the body waits for; forgotten when the body stops waiting.
struct Operation {
    shared: Rc<RefCell<Shared>>,
    op: DiskOpId,
}

impl Operation {
    fn poll(&self) -> Poll<DiskResult> {
        match self.shared.borrow_mut().operations.get_mut(&self.op).and_then(Option::take) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Ok(mut shared) = self.shared.try_borrow_mut() {
            shared.operations.remove(&self.op);
        }
    }
}
