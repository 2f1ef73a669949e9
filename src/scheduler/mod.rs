//! The adaptive batch scheduler's state and its pure decisions (Flink's AdaptiveBatchScheduler,
//! DefaultBatchJobRecoveryHandler and JobMasterPartitionTracker): which vertices may be
//! initialized, with what parallelism and which input ranges; what may be deployed where; what
//! must run again when something is lost, and how often. Nothing here sends a message or writes a record: the
//! JobMaster does that with what these functions return.

mod execution_graph;
mod failover;
mod parallelism;
mod partition_group;
mod partition_tracker;
mod ranges;
mod readiness;
mod recovery;
mod restart;
mod slots;
#[cfg(test)]
mod tests;

pub use execution_graph::{ExecutionGraph, ExecutionJobVertex, ExecutionVertex, Initialized, SubtaskState};
pub use parallelism::{Bounds, MAX_SUBPARTITIONS_PER_TASK, ProducedInput, decide, subpartition_count};
pub use partition_tracker::{PartitionTracker, TrackedPartition};
pub use ranges::{Input, InputRanges, UnreadableInput, input_ranges};
pub use recovery::{RecoveredLog, fold};
pub use restart::RestartBackoff;
pub use slots::{SlotPool, Slots};
