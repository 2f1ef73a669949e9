//! Recovery (FLIP-383, "Re-schedule after JM restart"): the log says what was decided and what had
//! finished; the TaskManagers say which partitions still exist; what is finished and still has the
//! partitions that unfinished consumers need stays finished, the rest runs again. What is decided
//! here is durable before anything is scheduled (hazard B1).
//!
//! What was reported of attempts that stay finished counts as present even where nothing needs it
//! any more, while it is decided what must run again: if a finished consumer lost its own result,
//! its producers need not run for it. What is still not needed then is released.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actor::{Outbox, Time};
use crate::ids::{ExecutionAttemptId, ExecutionVertexId, JobVertexId, ProcessId, ResultPartitionId};
use crate::job_event::{Finish, JobEvent, Replay};
use crate::note::Note;
use crate::planted::PlantedBug;
use crate::probe::Probe;
use crate::scheduler::{ExecutionGraph, RecoveredLog, fold};

use super::shuffle_master::Reported;
use super::{JobMaster, Phase, RECOVERY_TIMEOUT};

impl JobMaster {
    pub(super) fn store_opened(&mut self, now: Time, replay: &Arc<Replay>, out: &mut Outbox) {
        if !matches!(self.phase, Phase::OpeningStore | Phase::RecordingJob | Phase::Contending) {
            return;
        }
        let mut events = replay.events.as_slice();
        if self.is_planted(PlantedBug::SkipLastRecord) {
            events = events.split_last().map_or(events, |(_, rest)| rest);
        }
        let mut damage = replay.damage.clone();
        out.probe_if(damage.is_some(), Probe::LogDamaged);
        if let Err(reason) = self.restore(events, out) {
            // The durable mark lets the next replay begin behind what this one could not believe. A
            // recovery that fails is no failure of the job: the restart strategy is not asked.
            self.execution = ExecutionGraph::new(Arc::clone(&self.execution.graph));
            self.coordinators.clear();
            self.unrecovered.clear();
            self.record_event(JobEvent::HistoryDiscarded { reason: reason.clone() }, out);
            damage = Some(reason);
        }
        if let Some(damage) = &damage {
            out.note(Note::Warning {
                text: format!("the job starts over: its event log cannot be used: {damage}"),
            });
        }
        let finished = self.execution.subtasks().filter_map(|(id, _)| self.execution.finish(id));
        let finished = finished.map(|finish| finish.attempt).collect();
        let count = replay.events.len() as u64;
        out.note(Note::Replayed { token: self.token, events: count, finished, damage });

        self.shuffle_master.expect(self.execution.required_partitions().into_iter().collect());
        self.enter(Phase::Reconciling, out);
        out.set_timer(RECOVERY_TIMEOUT, self.recovery_until);
        self.check_partitions(now, out);
    }

    /// Brings execution graph and coordinators to where the log says they were. What coordinators no
    /// longer know is taken back, durably.
    fn restore(&mut self, events: &[JobEvent], out: &mut Outbox) -> Result<(), String> {
        let log = fold(events, &self.execution.graph)?;
        let RecoveredLog { initialized, finished, coordinators, taken_back, unrecovered } = log;
        for (vertex, inputs) in initialized {
            let parallelism = inputs.len() as u32;
            self.execution.initialize(vertex, inputs);
            self.create_coordinator(vertex);
            let Some(coordinator) = self.coordinators.get_mut(&vertex) else { continue };
            coordinator.set_parallelism(parallelism);
            if let Some(snapshot) = coordinators.get(&vertex) {
                coordinator.reset_to_checkpoint(snapshot)?;
            }
        }
        for finish in finished.into_values() {
            self.execution.set_finished(finish);
        }
        // Splits are now with subtasks that finished, or with subtasks that will run again.
        let all = self.is_planted(PlantedBug::DuplicateSplits);
        let subtasks = self.execution.subtasks().map(|(id, _)| id);
        let unfinished = subtasks.filter(|&id| all || !self.execution.is_finished(id));
        for id in unfinished.collect::<Vec<_>>() {
            self.give_splits_back(id);
        }
        out.probe_if(!unrecovered.is_empty(), Probe::SourceUnrecovered);
        self.unrecovered = unrecovered;
        out.probe_if(!taken_back.is_empty(), Probe::FinishTakenBack);
        self.record_reset(taken_back.into_iter().collect(), out);
        Ok(())
    }

    pub(super) fn create_coordinator(&mut self, vertex: JobVertexId) {
        if !self.coordinators.contains_key(&vertex)
            && let Some(coordinator) = self.new_coordinator(vertex)
        {
            self.coordinators.insert(vertex, coordinator);
        }
    }

    /// FLIP-383: OperatorCoordinator#subtaskReset for a subtask that will run again.
    pub(super) fn give_splits_back(&mut self, id: ExecutionVertexId) {
        let forget = self.is_planted(PlantedBug::KeepSplits);
        let Some(coordinator) = self.coordinators.get_mut(&id.vertex) else { return };
        if forget {
            coordinator.unassign(id.subtask);
        } else {
            coordinator.subtask_reset(id.subtask);
        }
    }

    /// Ends the wait early once every partition that is needed to go on was reported.
    pub(super) fn check_partitions(&mut self, now: Time, out: &mut Outbox) {
        let reconciling = matches!(self.phase, Phase::Reconciling);
        if reconciling && (self.shuffle_master.is_complete() || self.is_planted(PlantedBug::ForgetPartitions))
        {
            out.probe(Probe::WaitEndedEarly);
            self.close_recovery_window(now, out);
        }
    }

    /// Decides with the partitions that were reported; workers that come later with others are
    /// rejected.
    pub(super) fn close_recovery_window(&mut self, now: Time, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Reconciling) {
            return;
        }
        out.cancel_timer(RECOVERY_TIMEOUT);
        let (reported, missing) = self.shuffle_master.take_reported();
        for (&partition, (location, _)) in &reported {
            if self
                .execution
                .finish(partition.producer.subtask)
                .is_some_and(|f| f.attempt == partition.producer)
            {
                self.tracker.track(partition, *location);
            }
        }
        if self.is_planted(PlantedBug::AcceptOlderAttempt) {
            self.accept_any_attempt(&reported);
        }
        if self.is_planted(PlantedBug::FinishVacuously) {
            self.accept_by_partitions();
        }
        // Whoever has not finished may come to another result than an attempt that counted once and that
        // somebody has read, also if an earlier leader took that back and died before it had taken back
        // what rests on it.
        let subtasks = self.execution.subtasks().map(|(id, _)| id);
        let mut roots: Vec<ExecutionVertexId> =
            subtasks.filter(|&id| !self.execution.is_finished(id)).collect();
        roots.extend(missing.iter().map(|partition| partition.producer.subtask));

        let mut reset = BTreeSet::new();
        if !self.is_planted(PlantedBug::FinishWithoutPartitions) {
            reset = self.execution.restart_set(&roots, &self.tracker, &self.unrecovered);
            out.probe_if(reset.iter().any(|&id| self.execution.is_finished(id)), Probe::FinishedRunsAgain);
            self.reset_subtasks(&reset, out);
        }
        let mut orphans: BTreeMap<ProcessId, Vec<ResultPartitionId>> = BTreeMap::new();
        for (partition, (location, _)) in &reported {
            if self.tracker.get(*partition).is_none() {
                orphans.entry(*location).or_default().push(*partition);
            }
        }
        out.probe_if(!orphans.is_empty(), Probe::OrphansReleased);
        self.send_releases(orphans, out);
        let tracked = reported.into_keys().filter(|&partition| self.tracker.get(partition).is_some());
        let tracked = tracked.collect();
        self.release_unneeded(tracked, out);
        let kept = self.execution.subtasks().filter_map(|(id, _)| self.execution.finish(id));
        let kept = kept.map(|finish| finish.attempt).collect();
        out.note(Note::Recovered { token: self.token, kept, reset: reset.into_iter().collect() });

        let sequence = self.recording.last_sequence();
        if self.recording.is_durable(sequence) {
            self.run(now, out);
        } else {
            out.probe(Probe::DecisionLogged);
            self.flush_events(out);
            self.enter(Phase::LoggingRecovery { sequence }, out);
            out.set_timer(RECOVERY_TIMEOUT, now + self.boot.config.previous_worker_recovery_timeout);
        }
    }

    /// [`PlantedBug::FinishVacuously`].
    fn accept_by_partitions(&mut self) {
        let epoch = self.token;
        let attempts = self.execution.subtasks().filter(|(id, _)| !self.execution.is_finished(*id));
        let attempts = attempts.map(|(subtask, _)| ExecutionAttemptId { subtask, epoch, number: 0 });
        let all_tracked = |producer: &ExecutionAttemptId| {
            let outputs = &self.execution.graph.vertex(producer.subtask.vertex).outputs;
            let mut partitions =
                outputs.iter().map(|&data_set| ResultPartitionId { data_set, producer: *producer });
            partitions.all(|partition| self.tracker.get(partition).is_some())
        };
        for attempt in attempts.filter(all_tracked).collect::<Vec<_>>() {
            self.execution.set_finished(Finish {
                attempt,
                location: self.boot.process,
                partitions: Vec::new(),
                committables: Vec::new(),
                metrics: crate::message::IoMetrics::default(),
                accumulators: crate::message::Accumulators::new(),
            });
        }
    }

    /// [`PlantedBug::AcceptOlderAttempt`].
    fn accept_any_attempt(&mut self, reported: &Reported) {
        let unfinished =
            self.execution.subtasks().map(|(id, _)| id).filter(|&id| !self.execution.is_finished(id));
        for id in unfinished.collect::<Vec<_>>() {
            let of_subtask = || reported.iter().filter(|(partition, _)| partition.producer.subtask == id);
            let Some((newest, (location, _))) = of_subtask().max_by_key(|(partition, _)| partition.producer)
            else {
                continue;
            };
            let partitions = of_subtask().filter(|(partition, _)| partition.producer == newest.producer);
            let partitions: Vec<_> = partitions
                .map(|(&partition, (_, bytes))| crate::message::PartitionWithMetrics {
                    partition,
                    subpartition_bytes: bytes.clone(),
                })
                .collect();
            for partition in &partitions {
                self.tracker.track(partition.partition, *location);
            }
            self.execution.set_finished(Finish {
                attempt: newest.producer,
                location: *location,
                partitions,
                committables: Vec::new(),
                metrics: crate::message::IoMetrics::default(),
                accumulators: crate::message::Accumulators::new(),
            });
        }
    }
}
