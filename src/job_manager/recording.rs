//! What the JobMaster records, and what waits until it is durable. A consumed partition is released
//! only when the finishes of all its consumers are durable (hazard B5); nothing else waits for the
//! store while the job runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actor::{ExitStatus, Outbox, Time};
use crate::ids::{Address, ProcessId, ResultPartitionId};
use crate::job_event::{JobEvent, StoreFailure};
use crate::message::{FlushJobEvents, RecordingStatus, ReleasePartitions, WriteJobEvent};
use crate::note::Note;

use super::{JobMaster, Phase};

#[derive(Debug, Default)]
pub(super) struct Recording {
    /// Whether events are recorded at all.
    pub(super) open: bool,
    /// The store failed: what is recorded from now on is lost, so partitions are kept.
    failed: bool,
    /// Sequence of the last event; 0 before the first.
    last: u64,
    /// Sequence up to which all events are durable.
    durable: u64,
    /// Partitions to release when the event of this sequence is durable.
    releases: BTreeMap<u64, Vec<ResultPartitionId>>,
}

impl Recording {
    pub(super) fn status(&self) -> RecordingStatus {
        match (self.open, self.failed) {
            (false, _) => RecordingStatus::Off,
            (true, false) => RecordingStatus::On,
            (true, true) => RecordingStatus::Failing("the event store failed".to_owned()),
        }
    }

    pub(super) const fn last_sequence(&self) -> u64 {
        self.last
    }

    pub(super) const fn is_durable(&self, sequence: u64) -> bool {
        self.durable >= sequence
    }
}

impl JobMaster {
    /// Records an event; returns its sequence.
    pub(super) fn record_event(&mut self, event: JobEvent, out: &mut Outbox) -> u64 {
        if self.recording.open {
            self.recording.last += 1;
            let sequence = self.recording.last;
            if !self.recording.failed {
                out.send(Address::WRITER, WriteJobEvent { sequence, event: Arc::new(event), cut: false });
            }
        }
        self.recording.last
    }

    pub(super) fn flush_events(out: &mut Outbox) {
        out.send(Address::WRITER, FlushJobEvents {});
    }

    /// Releases partitions once the event of `sequence` is durable, or at once if nothing is
    /// recorded.
    pub(super) fn release_when_durable(
        &mut self,
        sequence: u64,
        partitions: Vec<ResultPartitionId>,
        out: &mut Outbox,
    ) {
        if partitions.is_empty() {
        } else if self.recording.open {
            self.recording.releases.entry(sequence).or_default().extend(partitions);
        } else {
            self.release_unneeded(partitions, out);
        }
    }

    pub(super) fn events_durable(&mut self, now: Time, sequence: u64, out: &mut Outbox) {
        self.recording.durable = self.recording.durable.max(sequence);
        while let Some(due) = self.recording.releases.first_entry().filter(|due| *due.key() <= sequence) {
            let partitions = due.remove();
            self.release_unneeded(partitions, out);
        }
        if let Phase::LoggingRecovery { sequence: awaited } = self.phase
            && awaited <= sequence
        {
            self.run(now, out);
        }
    }

    /// Consumers were reset: what they read is not released when their earlier finishes become
    /// durable, but when their next ones do.
    pub(super) fn keep_what_is_needed_again(&mut self) {
        for partitions in self.recording.releases.values_mut() {
            partitions.retain(|partition| !self.execution.is_needed(partition.data_set, partition.index()));
        }
    }

    /// Releases those of the partitions that are still tracked and that no consumer needs: a
    /// consumer may have been reset since the release was planned.
    pub(super) fn release_unneeded(&mut self, partitions: Vec<ResultPartitionId>, out: &mut Outbox) {
        let unneeded = partitions.into_iter().filter(|p| !self.execution.is_needed(p.data_set, p.index()));
        let unneeded: Vec<ResultPartitionId> = unneeded.collect();
        let mut by_location: BTreeMap<ProcessId, Vec<ResultPartitionId>> = BTreeMap::new();
        for partition in unneeded {
            if let Some(location) = self.tracker.untrack(partition) {
                by_location.entry(location).or_default().push(partition);
            }
        }
        self.send_releases(by_location, out);
    }

    pub(super) fn send_releases(
        &self,
        by_location: BTreeMap<ProcessId, Vec<ResultPartitionId>>,
        out: &mut Outbox,
    ) {
        for (location, partitions) in by_location {
            out.send(Address::worker(location), ReleasePartitions { token: self.token, partitions });
        }
    }

    pub(super) fn store_failed(&mut self, failure: &StoreFailure, out: &mut Outbox) {
        out.note(Note::Warning { text: format!("job event store: {}", failure.message) });
        match self.phase {
            // What was durable cannot be known, or what recovery decided cannot be made durable:
            // the next incarnation tries again.
            Phase::OpeningStore | Phase::Reconciling | Phase::LoggingRecovery { .. } => {
                out.exit(ExitStatus::Failure(format!("job event store: {}", failure.message)));
            }
            // The log stays behind; nothing will read it, for the job's end is durable.
            Phase::Done { .. } => out.exit(ExitStatus::Success),
            _ => self.recording.failed = true,
        }
    }
}
