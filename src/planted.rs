//! Bugs planted by hand, each a way to break recovery that the testbed must notice. They exist
//! only in builds with the feature `planted-bugs`, and act only in an incarnation whose
//! configuration names one.

use serde::{Deserialize, Serialize};

use crate::config::Configuration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlantedBug {
    /// Replay ignores the last record of the durable log.
    SkipLastRecord,
    /// Recovery goes on without waiting for the TaskManagers' partitions.
    ForgetPartitions,
    /// A consumed partition is released before its consumers' finishes are durable.
    ReleaseTooEarly,
    /// Recovery counts a subtask as finished if any attempt's partition of it is reported.
    AcceptOlderAttempt,
    /// Recovery counts a subtask as finished though its partitions are gone.
    FinishWithoutPartitions,
    /// A reset subtask's splits are not given back to the enumerator.
    KeepSplits,
    /// B1, stale finish resurrected by a second crash: finishes that a recovery takes back are not
    /// taken back in the log, so the next recovery believes them again.
    ForgetRecoveryResets,
    /// B2, stage-boundary hang: after a recovery no vertex is initialized before some task finishes. If the
    /// last finish of a stage is durable and the decision about the next is not, none ever does.
    SkipInitializeScan,
    /// B3, all finished and never completes: whether the job is finished is only looked at when a
    /// task finishes. If all had finished before the recovery, none ever does.
    SkipCompletionCheck,
    /// B15, late TaskManager wiped with new data: the timer that ends the retention of what an earlier
    /// leader left, and no later one claimed, takes the new leader's partitions along.
    WipeNewPartitions,
    /// B20, vacuous finish: recovery counts a subtask as finished if all partitions that it produces are
    /// there. A sink produces none.
    FinishVacuously,
    /// B23, split duplication: recovery gives the splits of all subtasks back to the enumerator, also those
    /// that finished subtasks have read.
    DuplicateSplits,
    /// B25, NoMoreSplits not sent again: after a restart a reader is not told that there are no more
    /// splits, as if it had been told before.
    TellNoMoreSplitsOnce,
    /// Events are reported as durable when they are written, before they are synced.
    AcknowledgeBeforeSync,
    /// The first record of an epoch does not note what the epoch accepts of older files, so the leader
    /// after the next finds nothing of them.
    ForgetOlderFiles,
}

impl PlantedBug {
    pub const ALL: [Self; 15] = [
        Self::SkipLastRecord,
        Self::ForgetPartitions,
        Self::ReleaseTooEarly,
        Self::AcceptOlderAttempt,
        Self::FinishWithoutPartitions,
        Self::KeepSplits,
        Self::ForgetRecoveryResets,
        Self::SkipInitializeScan,
        Self::SkipCompletionCheck,
        Self::WipeNewPartitions,
        Self::FinishVacuously,
        Self::DuplicateSplits,
        Self::TellNoMoreSplitsOnce,
        Self::AcknowledgeBeforeSync,
        Self::ForgetOlderFiles,
    ];
}

/// Whether `bug` is planted. Constant `false` without the feature.
#[inline]
pub fn is_planted(config: &Configuration, bug: PlantedBug) -> bool {
    cfg!(feature = "planted-bugs") && config.planted_bug == Some(bug)
}
