//! What a task's body and its actor share: the body asks and looks for answers, the actor turns
//! what was asked into effects and puts the answers in. Both run in the same `handle`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Poll;

use crate::actor::{DiskOpId, Outbox};
use crate::config::Configuration;
use crate::disk::DiskResult;
use crate::ids::{Address, ExecutionAttemptId, ProcessId};
use crate::message::{
    Accumulators, Committable, IoMetrics, RequestSplit, SourceSplit, TaskDeploymentDescriptor,
};

use super::LongCounter;
use super::input::Inputs;
use super::output::Outputs;
use super::silence::Awaited;

/// In bytes.
#[derive(Clone, Copy, Debug)]
pub struct SortMemory {
    /// Of a sort of a whole subtask.
    pub partition: u64,
    /// Of bringing together by key.
    pub keyed: u64,
}

impl SortMemory {
    pub(super) fn of(config: &Configuration) -> Self {
        Self { partition: config.sort_partition_memory.0, keyed: config.sort_keyed_partition_memory.0 }
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub attempt: ExecutionAttemptId,
    pub parallelism: u32,
    pub sort_memory: SortMemory,
    pub inputs: Inputs,
    pub outputs: Outputs,
    pub splits: Splits,
    pub committables: Vec<Committable>,
    pub accumulators: BTreeMap<String, LongCounter>,
    /// Of records only; bytes are counted by inputs and outputs.
    pub records: IoMetrics,
    /// What the body asked for, in order.
    pub out: Outbox,
    pub ids: OpIds,
    /// The body's disk operations, with the results of those that are complete.
    pub operations: BTreeMap<DiskOpId, Option<DiskResult>>,
}

impl Shared {
    /// Of a task that runs in the process `here`.
    pub fn new(here: ProcessId, task: &TaskDeploymentDescriptor, config: &Configuration) -> Self {
        Self {
            attempt: task.attempt,
            parallelism: task.parallelism,
            sort_memory: SortMemory::of(config),
            inputs: Inputs::new(&task.inputs, config.buffers_per_gate),
            outputs: Outputs::new(here, &task.outputs, config.segment_size.0),
            splits: Splits::new(Address::master(task.job_manager)),
            committables: Vec::new(),
            accumulators: BTreeMap::new(),
            records: IoMetrics::default(),
            out: Outbox::new(),
            ids: OpIds::default(),
            operations: BTreeMap::new(),
        }
    }

    /// What the body waits for of another process.
    pub fn awaited(&self) -> Option<Awaited> {
        let buffer = self.inputs.waiting().map(|(stream, received)| Awaited::Buffer { stream, received });
        buffer
            .or_else(|| self.splits.waiting().map(|received| Awaited::Split { received }))
            .or_else(|| self.awaited_of_outputs())
    }

    /// What the task waits for of another process when its body has ended.
    pub fn awaited_of_outputs(&self) -> Option<Awaited> {
        self.outputs.waiting().map(|(output, offset)| Awaited::Push { output, offset })
    }

    /// The sums as they are now; there are none afterwards.
    pub fn take_accumulators(&mut self) -> Accumulators {
        let sums = std::mem::take(&mut self.accumulators).into_iter();
        sums.map(|(name, sum)| (name, sum.local_value())).collect()
    }

    pub fn metrics(&self) -> IoMetrics {
        IoMetrics { bytes_in: self.inputs.bytes(), bytes_out: self.outputs.bytes(), ..self.records }
    }
}

/// Numbers the disk operations of a task.
#[derive(Debug, Default)]
pub(super) struct OpIds(u64);

impl OpIds {
    pub fn next(&mut self) -> DiskOpId {
        self.0 += 1;
        DiskOpId(self.0)
    }
}

/// The splits that the coordinator assigned to this reader.
#[derive(Debug)]
pub(super) struct Splits {
    /// The JobMaster that deployed the task.
    coordinator: Address,
    queue: VecDeque<SourceSplit>,
    received: BTreeSet<u32>,
    requested: bool,
    no_more: bool,
}

impl Splits {
    pub fn new(coordinator: Address) -> Self {
        let (queue, received) = (VecDeque::new(), BTreeSet::new());
        Self { coordinator, queue, received, requested: false, no_more: false }
    }

    pub fn poll_next(&mut self, attempt: ExecutionAttemptId, out: &mut Outbox) -> Poll<Option<SourceSplit>> {
        if let Some(split) = self.queue.pop_front() {
            return Poll::Ready(Some(split));
        }
        if self.no_more {
            return Poll::Ready(None);
        }
        if !self.requested {
            self.request(attempt, out);
        }
        Poll::Pending
    }

    pub fn request(&mut self, attempt: ExecutionAttemptId, out: &mut Outbox) {
        self.requested = true;
        let received = self.received.len() as u32;
        out.send(self.coordinator, RequestSplit { attempt, received });
    }

    /// While an answer is outstanding: how many splits were received before.
    pub fn waiting(&self) -> Option<u32> {
        (self.requested && !self.no_more).then_some(self.received.len() as u32)
    }

    pub fn add(&mut self, split: SourceSplit) {
        // A repeated answer must not be read twice; an answer more than was asked for must not be lost.
        if self.received.insert(split.id) {
            self.requested = false;
            self.queue.push_back(split);
        }
    }

    pub fn no_more(&mut self) {
        self.no_more = true;
    }
}
