//! What the JobMaster records, and what waits until it is durable. A consumed partition is released
//! only when the finishes of all its consumers are durable (hazard B5); nothing else waits for the
//! store while the job runs.
//!
//! A store that fails holds nothing up and ends nothing. What happens then is not recorded, so
//! partitions are kept, and what recovery decided need not be durable before it runs. That is safe
//! because the log is always a prefix of what happened: a later leader sees an earlier state of the
//! job, whole and consistent, and partitions that are gone since are found missing. For the same
//! reason a leader that could not read the log in time may start the job over: an epoch that records
//! nothing does not exist for later leaders. When the store works again, one base with all that
//! counts then takes the place of what was not recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actor::{Outbox, Time};
use crate::ids::{Address, ExecutionVertexId, ProcessId, ResultPartitionId};
use crate::job_event::{Finish, JobEvent, StoreFailure};
use crate::message::{FlushJobEvents, RecordingStatus, ReleasePartitions, WriteJobEvent};
use crate::note::Note;
use crate::planted::PlantedBug;
use crate::probe::Probe;

use super::{JobMaster, Phase};

#[derive(Debug, Default)]
pub(super) struct Recording {
    store: Store,
    /// Sequence of the last event; 0 before the first.
    last: u64,
    /// Sequence up to which all events are durable.
    durable: u64,
    /// Partitions to release when the event of this sequence is durable.
    releases: BTreeMap<u64, Vec<ResultPartitionId>>,
}

#[derive(Debug, Default)]
enum Store {
    /// Nothing is recorded.
    #[default]
    Off,
    Works,
    Fails {
        reason: String,
    },
    /// It works again, and will have all that counts when the event `base` is durable.
    Resumes {
        reason: String,
        base: u64,
    },
}

impl Recording {
    pub(super) fn status(&self) -> RecordingStatus {
        match &self.store {
            Store::Off => RecordingStatus::Off,
            Store::Works => RecordingStatus::On,
            Store::Fails { reason } | Store::Resumes { reason, .. } => {
                RecordingStatus::Failing(reason.clone())
            }
        }
    }

    /// The store is asked to open, or has opened.
    pub(super) fn begin(&mut self) {
        self.store = Store::Works;
    }

    const fn is_off(&self) -> bool {
        matches!(self.store, Store::Off)
    }

    const fn fails(&self) -> bool {
        matches!(self.store, Store::Fails { .. })
    }

    pub(super) const fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Whether nobody has to wait for the event of this sequence: it is durable, or the store fails.
    pub(super) const fn is_durable(&self, sequence: u64) -> bool {
        self.durable >= sequence || self.fails()
    }
}

impl JobMaster {
    /// Records an event; returns its sequence.
    pub(super) fn record_event(&mut self, event: JobEvent, out: &mut Outbox) -> u64 {
        self.record(event, false, out)
    }

    /// As [`Self::record_event`] for the finish that completes its job vertex: the log's file ends
    /// behind it, so that it is written at once (Flink's `cutBlock`).
    pub(super) fn record_last_finish(&mut self, event: JobEvent, out: &mut Outbox) -> u64 {
        self.record(event, true, out)
    }

    /// Records that finishes are taken back, if there are any.
    pub(super) fn record_reset(&mut self, subtasks: Vec<ExecutionVertexId>, out: &mut Outbox) {
        let forget =
            self.is_planted(PlantedBug::ForgetRecoveryResets) && !matches!(self.phase, Phase::Running);
        if !subtasks.is_empty() && !forget {
            self.record_event(JobEvent::ExecutionVertexReset { subtasks }, out);
        }
    }

    fn record(&mut self, event: JobEvent, cut: bool, out: &mut Outbox) -> u64 {
        if !self.recording.is_off() {
            self.recording.last += 1;
            let sequence = self.recording.last;
            if !self.recording.fails() {
                out.send(self.writer(), WriteJobEvent { sequence, event: Arc::new(event), cut });
            }
        }
        self.recording.last
    }

    pub(super) fn flush_events(&self, out: &mut Outbox) {
        out.send(self.writer(), FlushJobEvents {});
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
        } else if !self.recording.is_off() {
            self.recording.releases.entry(sequence).or_default().extend(partitions);
        } else {
            self.release_unneeded(partitions, out);
        }
    }

    pub(super) fn events_durable(&mut self, now: Time, sequence: u64, out: &mut Outbox) {
        self.recording.durable = self.recording.durable.max(sequence);
        if matches!(self.recording.store, Store::Resumes { base, .. } if base <= sequence) {
            self.recording.store = Store::Works;
            let text = "the job event store works again: all that is finished is recorded";
            out.note(Note::Warning { text: text.to_owned() });
        }
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
    pub(super) fn keep_what_is_needed_again(&mut self, out: &mut Outbox) {
        let mut called_off = false;
        for partitions in self.recording.releases.values_mut() {
            let before = partitions.len();
            partitions.retain(|partition| !self.execution.is_needed(partition.data_set, partition.index()));
            called_off |= partitions.len() < before;
        }
        out.probe_if(called_off, Probe::ReleaseCalledOff);
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

    pub(super) fn store_failed(&mut self, now: Time, failure: &StoreFailure, out: &mut Outbox) {
        out.note(Note::Warning { text: format!("job event store: {}", failure.message) });
        self.recording.store = Store::Fails { reason: failure.message.clone() };
        if matches!(self.phase, Phase::LoggingRecovery { .. }) {
            out.probe(Probe::StoreFailedInRecovery);
            self.run(now, out);
        }
    }

    /// The store works (again) for a leader that did not wait for it: it gets all that counts.
    pub(super) fn store_recovered(&mut self, now: Time, out: &mut Outbox) {
        let goes_on = matches!(
            self.phase,
            Phase::Reconciling
                | Phase::LoggingRecovery { .. }
                | Phase::Running
                | Phase::DecidingCommit { .. }
                | Phase::Committing(_)
        );
        let Store::Fails { reason } = &mut self.recording.store else { return };
        if !goes_on {
            return;
        }
        let (reason, base) = (std::mem::take(reason), self.recording.last + 1);
        out.probe(Probe::StoreResumed);
        self.recording.store = Store::Resumes { reason, base };
        self.snapshots.covered(now);
        let event = self.base();
        self.record_event(event, out);
        self.flush_events(out);
    }

    /// All that counts now.
    fn base(&self) -> JobEvent {
        let vertices = self.execution.vertices.iter();
        let initialized = vertices.filter_map(|vertex| {
            let initialized = self.execution.initialized(vertex.id)?;
            Some((vertex.id, initialized.inputs.clone()))
        });
        let finished: Vec<Finish> =
            self.execution.subtasks().filter_map(|(id, _)| self.execution.finish(id)).cloned().collect();
        let coordinators = self
            .coordinators
            .iter()
            .filter_map(|(&vertex, coordinator)| Some((vertex, coordinator.checkpoint_coordinator()?)));
        JobEvent::BaseRecorded {
            initialized: initialized.collect(),
            finished,
            coordinators: coordinators.collect(),
        }
    }

    /// The store did not open in time, broken or slow: the job starts over, and is recorded once the
    /// store works.
    fn start_without_store(&mut self, now: Time, out: &mut Outbox) {
        out.probe(Probe::StartedWithoutStore);
        let config = &self.boot.config;
        let waited = config.previous_worker_recovery_timeout.max(config.registration_retry);
        let reason = match &self.recording.store {
            Store::Fails { reason } => reason.clone(),
            _ => format!("it did not open within {waited:?}"),
        };
        let text = format!("the job starts over without its job event store, for now: {reason}");
        out.note(Note::Warning { text });
        self.recording.store = Store::Fails { reason };
        self.store_opened(now, &Arc::default(), out);
    }

    pub(super) fn recovery_timed_out(&mut self, now: Time, out: &mut Outbox) {
        match self.phase {
            Phase::OpeningStore => self.start_without_store(now, out),
            Phase::LoggingRecovery { .. } => {
                out.probe(Probe::DecisionNotLogged);
                let text = "the job goes on before its event store has recorded what the recovery decided";
                out.note(Note::Warning { text: text.to_owned() });
                self.run(now, out);
            }
            _ => {
                out.probe_if(matches!(self.phase, Phase::Reconciling), Probe::WaitTimedOut);
                self.close_recovery_window(now, out);
            }
        }
    }
}
