//! Probes: the rare branches of recovery that a cluster can come to, so that a search can say which of them it has
//! reached. They exist only in builds with the feature `probes`; anywhere else they are nothing.

use serde::{Deserialize, Serialize};

macro_rules! probes {
    ($($(#[doc = $what:literal])+ $name:ident = $text:literal,)+) => {
        /// A branch that is taken rarely.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Probe {
            $($(#[doc = $what])+ $name,)+
        }

        impl Probe {
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }

            /// What it means that it is reached.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($what),+).trim_ascii(),)+
                }
            }
        }
    };
}

probes! {
    /// A new leader found a log that is damaged.
    LogDamaged = "log-damaged",
    /// Finishes since the latest snapshot of a coordinator were taken back.
    FinishTakenBack = "finish-taken-back",
    /// A source without snapshots begins anew as a whole.
    SourceUnrecovered = "source-unrecovered",
    /// All partitions that were needed had been reported before the time was over.
    WaitEndedEarly = "wait-ended-early",
    /// The time was over before all of them had been reported.
    WaitTimedOut = "wait-timed-out",
    /// A recovery had something run again that had finished.
    FinishedRunsAgain = "finished-runs-again",
    /// Partitions that no finish names were released.
    OrphansReleased = "orphans-released",
    /// A recovery waited until what it had decided was durable.
    DecisionLogged = "decision-logged",
    /// A recovery went on before the store had recorded what it had decided.
    DecisionNotLogged = "decision-not-logged",
    /// The store failed while a recovery waited for it.
    StoreFailedInRecovery = "store-failed-in-recovery",
    /// The store did not open in time, and the job started over.
    StartedWithoutStore = "started-without-store",
    /// A leader that had been replaced found a newer epoch in the log.
    FencedByLog = "fenced-by-log",
    /// The store worked again, and got all that counts.
    StoreResumed = "store-resumed",
    /// A worker had heard of the leader before the leader did.
    WorkerEarly = "worker-early",
    /// A worker with partitions came when recovery was over.
    WorkerTooLate = "worker-too-late",
    /// A worker came as a new process before the loss of the old one was noticed.
    WorkerCameAgain = "worker-came-again",
    /// A worker came at the job's end.
    WorkerAtTheEnd = "worker-at-the-end",
    /// A worker reported after the recovery what nobody tracks.
    UntrackedReleased = "untracked-released",
    /// A task that should not run was found by a heartbeat.
    CancelledAgain = "cancelled-again",
    /// A release that waited for durability was called off, since a consumer runs again.
    ReleaseCalledOff = "release-called-off",
    /// A new leader found a commit that had been decided.
    CommitTakenOver = "commit-taken-over",
    /// A new leader found that the job had ended.
    EndTakenOver = "end-taken-over",
    /// Somebody asked for a cancel before anybody led.
    CancelBeforeLeading = "cancel-before-leading",
    /// A restart had to wait for the restart strategy.
    RestartPause = "restart-pause",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_different_and_each_says_what_it_means() {
        let names: BTreeSet<&str> = Probe::ALL.iter().map(|probe| probe.name()).collect();
        assert_eq!(names.len(), Probe::ALL.len());
        assert!(Probe::ALL.iter().all(|probe| probe.what().ends_with('.')));
        assert_eq!(Probe::WaitTimedOut.what(), "The time was over before all of them had been reported.");
    }
}
