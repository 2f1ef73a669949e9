//! When coordinators are snapshotted. FLIP-383 takes snapshots with the finishes of tasks, but not
//! with each: between two of them lies at least the min-pause, except that the last finish of a
//! vertex always takes one. Decides which coordinators are due; never what is in a snapshot.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::actor::Time;
use crate::ids::JobVertexId;

/// How the state of a vertex's coordinator comes back after the loss of the JobManager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// It has no state but what the assignment says anyway.
    Stateless,
    /// From the latest snapshot; finishes that came after it are taken back.
    Supported,
    /// Not at all: its vertex runs as a whole or not at all.
    Unsupported,
}

/// The pause between snapshots
/// (`execution.batch.job-recovery.operator-coordinator-snapshot.min-pause`).
#[derive(Debug, Default)]
pub struct SnapshotPause {
    /// Vertices with finishes that no snapshot covers.
    dirty: BTreeSet<JobVertexId>,
    last: Option<Time>,
}

impl SnapshotPause {
    /// A subtask of a vertex whose coordinator has snapshots finished.
    pub fn finished(&mut self, vertex: JobVertexId) {
        self.dirty.insert(vertex);
    }

    /// The vertices whose coordinators are due for a snapshot with a finish at `now`, which may have
    /// been its vertex's last.
    pub fn due(&mut self, now: Time, min_pause: Duration, last_of_vertex: bool) -> BTreeSet<JobVertexId> {
        let paused = self.last.is_none_or(|last| now.since(last) >= min_pause);
        if self.dirty.is_empty() || !(paused || last_of_vertex) {
            return BTreeSet::new();
        }
        self.last = Some(now);
        std::mem::take(&mut self.dirty)
    }

    /// All coordinators were snapshotted.
    pub fn covered(&mut self, now: Time) {
        self.last = Some(now);
        self.dirty.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: JobVertexId = JobVertexId(0);
    const B: JobVertexId = JobVertexId(1);
    const PAUSE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000_000)
    }

    #[test]
    fn the_first_finish_takes_a_snapshot_and_the_next_only_after_the_pause() {
        let mut pause = SnapshotPause::default();
        pause.finished(A);
        assert_eq!(pause.due(at(100), PAUSE, false), [A].into());
        pause.finished(A);
        assert_eq!(pause.due(at(109), PAUSE, false), [].into());
        pause.finished(B);
        assert_eq!(pause.due(at(110), PAUSE, false), [A, B].into());
        assert_eq!(pause.due(at(200), PAUSE, false), [].into());
    }

    #[test]
    fn the_last_finish_of_any_vertex_takes_a_snapshot_of_all_that_is_due() {
        let mut pause = SnapshotPause::default();
        pause.covered(at(100));
        pause.finished(A);
        assert_eq!(pause.due(at(101), PAUSE, true), [A].into());
        assert_eq!(pause.due(at(102), PAUSE, true), [].into());
    }

    #[test]
    fn without_a_pause_every_finish_takes_one() {
        let mut pause = SnapshotPause::default();
        for second in 0..3 {
            pause.finished(A);
            assert_eq!(pause.due(at(second), Duration::ZERO, false), [A].into());
        }
    }
}
