//! The TaskManagers and shuffle services, which are workers without slots: registration, what they
//! report, and their loss. Every registration under a token claims the job's partitions and is
//! asked for them; within the recovery window the answer is part of recovery, later whatever is not
//! tracked is released.

use std::collections::BTreeMap;

use crate::actor::{Outbox, Time};
use crate::ids::{Address, ExecutionAttemptId, ProcessId, ResultPartitionId, SessionId};
use crate::message::{
    CancelTask, GetAndRetainPartitionWithMetrics, HeartbeatRequest, HeartbeatResponse, JobTerminated,
    PartitionReport, RegisterTaskManager, RegistrationRejected, RegistrationSuccess,
};
use crate::note::Note;
use crate::probe::Probe;

use super::{ASK_AGAIN, HEARTBEAT, JobMaster, Phase};

/// How often a worker that says nothing is asked in the time for which a recovery waits for it.
const ASKED_IN_RECOVERY: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct Workers {
    registered: BTreeMap<ProcessId, Worker>,
    /// Registrations that arrived before this incarnation knew that it leads.
    early: BTreeMap<ProcessId, RegisterTaskManager>,
}

#[derive(Debug)]
struct Worker {
    session: SessionId,
    last_heard: Time,
    /// Whether it has said which partitions it keeps.
    reported: bool,
}

impl Workers {
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessId> {
        self.registered.keys().copied()
    }

    pub(super) fn is_registered(&self, process: ProcessId) -> bool {
        self.registered.contains_key(&process)
    }

    pub(super) fn session(&self, process: ProcessId) -> Option<SessionId> {
        self.registered.get(&process).map(|worker| worker.session)
    }

    fn is_session(&self, process: ProcessId, session: SessionId) -> bool {
        self.registered.get(&process).is_some_and(|worker| worker.session == session)
    }
}

impl JobMaster {
    /// TaskManagers may have heard of this leader before it did.
    pub(super) fn register_early(&mut self, now: Time, out: &mut Outbox) {
        for message in std::mem::take(&mut self.workers.early).into_values() {
            self.register(now, &message, out);
        }
    }

    pub(super) fn register(&mut self, now: Time, message: &RegisterTaskManager, out: &mut Outbox) {
        if matches!(self.phase, Phase::Contending) {
            out.probe(Probe::WorkerEarly);
            self.workers.early.insert(message.process, message.clone());
        }
        if message.token != self.token {
            return; // The HA service tells the TaskManager who leads.
        }
        let RegisterTaskManager { process, session, slots, retains, holds, .. } = *message;
        let executor = Address::worker(process);
        if self.boot.config.job_recovery_enabled && !retains {
            // It would drop at the next crash what recovery then waits for (hazard B52).
            let reason = "execution.batch.job-recovery.enabled is true at the JobManager, but false at this \
                          worker, or its taskmanager.registration.timeout is 0: start it with the same \
                          configuration"
                .to_owned();
            out.send(executor, RegistrationRejected { token: self.token, session, reason, too_late: false });
            return;
        }
        if let Some(reason) = self.other_shuffle(message) {
            out.send(executor, RegistrationRejected { token: self.token, session, reason, too_late: false });
            return;
        }
        let known = self.workers.is_session(process, session);
        if holds && !known && self.is_recovery_over() {
            // FLIP-383: "only TMs connected within this period will be accepted".
            out.probe(Probe::WorkerTooLate);
            let reason = "the recovery did not wait any longer for the partitions that it kept".to_owned();
            out.send(executor, RegistrationRejected { token: self.token, session, reason, too_late: true });
            return;
        }
        out.send(executor, RegistrationSuccess { token: self.token, session });
        if matches!(self.phase, Phase::Done { .. } | Phase::CleaningUp { .. } | Phase::StoppingTasks { .. }) {
            out.probe(Probe::WorkerAtTheEnd);
            out.send(executor, JobTerminated { token: self.token });
            if self.workers.is_registered(process) {
                // Whatever ran there does not any more.
                self.lose_worker(now, process, "it registered again at the job's end", out);
            }
            return;
        }
        out.send(executor, GetAndRetainPartitionWithMetrics { token: self.token });
        if known {
            return;
        }
        if self.workers.is_registered(process) {
            out.probe(Probe::WorkerCameAgain);
            self.lose_worker(now, process, "it registered again as a new process", out);
        }
        self.workers.registered.insert(process, Worker { session, last_heard: now, reported: false });
        self.slots.add(process, slots);
        self.shuffle_master.add(process);
        out.note(Note::TaskManagerRegistered { process });
        self.schedule(out);
    }

    /// Whether it is decided which of the partitions that earlier leaders left are of use.
    const fn is_recovery_over(&self) -> bool {
        matches!(
            self.phase,
            Phase::LoggingRecovery { .. }
                | Phase::Running
                | Phase::DecidingCommit { .. }
                | Phase::Committing(_)
        )
    }

    /// Why a worker that keeps results elsewhere than this leader looks for them cannot be taken in:
    /// it would lose at the next crash what recovery then waits for (hazard B52).
    fn other_shuffle(&self, message: &RegisterTaskManager) -> Option<String> {
        let (here, there) = (self.boot.config.shuffle_service, message.shuffle_service);
        (here != there).then(|| {
            format!(
                "shuffle.service is {here} at the JobManager and {there} at {}: start all processes with \
                 the same configuration",
                message.process
            )
        })
    }

    pub(super) fn partition_report(
        &mut self,
        now: Time,
        from: Address,
        message: PartitionReport,
        out: &mut Outbox,
    ) {
        let process = from.process;
        if message.token != self.token || !self.workers.is_session(process, message.session) {
            return;
        }
        self.heard_from(now, process, message.session);
        if let Some(worker) = self.workers.registered.get_mut(&process) {
            worker.reported = true;
        }
        let before_recovery_ends = matches!(
            self.phase,
            Phase::EnumeratingSplits(_) | Phase::RecordingJob | Phase::OpeningStore | Phase::Reconciling
        );
        if before_recovery_ends {
            let partitions = message.partitions.into_iter();
            let (partitions, foreign): (Vec<_>, Vec<_>) =
                partitions.partition(|p| self.execution.is_output(p.partition));
            if !foreign.is_empty() {
                let foreign = foreign.into_iter().map(|p| p.partition).collect();
                self.send_releases([(process, foreign)].into(), out);
            }
            self.shuffle_master.report(process, partitions);
            self.check_partitions(now, out);
        } else {
            let untracked = message.partitions.iter().map(|p| p.partition);
            // A producer that is deployed may have finished with a report still to come.
            let running = |p: ResultPartitionId| self.execution.deployed_at(p.producer).is_some();
            let untracked = untracked.filter(|&p| self.tracker.get(p).is_none() && !running(p));
            let untracked: Vec<_> = untracked.collect();
            if !untracked.is_empty() {
                out.probe(Probe::UntrackedReleased);
                self.send_releases([(process, untracked)].into(), out);
            }
        }
    }

    pub(super) fn heard_from(&mut self, now: Time, process: ProcessId, session: SessionId) {
        if let Some(worker) = self.workers.registered.get_mut(&process)
            && worker.session == session
        {
            worker.last_heard = now;
        }
    }

    /// What runs there and should not was cancelled by a message that got lost: it is cancelled again.
    /// Once the job's end is decided that is everything.
    pub(super) fn heartbeat_response(
        &mut self,
        now: Time,
        from: Address,
        message: &HeartbeatResponse,
        out: &mut Outbox,
    ) {
        let process = from.process;
        if message.token != self.token || !self.workers.is_session(process, message.session) {
            return;
        }
        self.heard_from(now, process, message.session);
        for &attempt in &message.attempts {
            if self.execution.deployed_at(attempt) != Some(process) || self.is_ending() {
                out.probe(Probe::CancelledAgain);
                out.send(from, CancelTask { token: self.token, attempt });
            }
        }
    }

    pub(super) fn heartbeat(&mut self, now: Time, out: &mut Outbox) {
        let timeout = self.boot.config.heartbeat_timeout;
        let silent =
            self.workers.registered.iter().filter(|(_, worker)| now.since(worker.last_heard) > timeout);
        for process in silent.map(|(&process, _)| process).collect::<Vec<_>>() {
            self.lose_worker(now, process, "its heartbeat timed out", out);
        }
        self.ask_for_partitions(out);
        for process in self.workers.processes() {
            let attempts = self.execution.attempts_at(process).collect();
            out.send(Address::worker(process), HeartbeatRequest { token: self.token, attempts });
        }
        out.set_timer(HEARTBEAT, now + self.boot.config.heartbeat_interval);
    }

    /// Asks those again of whom nothing is known, since the question or the answer was lost.
    fn ask_for_partitions(&self, out: &mut Outbox) {
        let silent = self.workers.registered.iter().filter(|(_, worker)| !worker.reported);
        for (&process, _) in silent {
            out.send(Address::worker(process), GetAndRetainPartitionWithMetrics { token: self.token });
        }
    }

    /// Asks several times within the time for which a recovery waits, however rare heartbeats are.
    pub(super) fn ask_again(&mut self, now: Time, out: &mut Outbox) {
        let pause = self.boot.config.previous_worker_recovery_timeout / ASKED_IN_RECOVERY;
        if !pause.is_zero() && !self.is_recovery_over() {
            self.ask_for_partitions(out);
            out.set_timer(ASK_AGAIN, now + pause);
        }
    }

    fn lose_worker(&mut self, now: Time, process: ProcessId, reason: &str, out: &mut Outbox) {
        self.workers.registered.remove(&process);
        self.shuffle_master.remove(process);
        self.slots.remove(process);
        self.tracker.untrack_location(process);
        out.note(Note::TaskManagerLost { process, reason: reason.to_owned() });
        // What runs there, and what pushes its results there.
        let mut attempts: Vec<ExecutionAttemptId> = self.execution.attempts_at(process).collect();
        attempts.extend(self.shuffle_master.placed_at(process));
        self.fail(now, &attempts, &format!("{process} was lost: {reason}"), out);
    }
}
