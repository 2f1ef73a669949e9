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
}

impl PlantedBug {
    pub const ALL: [Self; 6] = [
        Self::SkipLastRecord,
        Self::ForgetPartitions,
        Self::ReleaseTooEarly,
        Self::AcceptOlderAttempt,
        Self::FinishWithoutPartitions,
        Self::KeepSplits,
    ];
}

/// Whether `bug` is planted. Constant `false` without the feature.
#[inline]
pub fn is_planted(config: &Configuration, bug: PlantedBug) -> bool {
    cfg!(feature = "planted-bugs") && config.planted_bug == Some(bug)
}
