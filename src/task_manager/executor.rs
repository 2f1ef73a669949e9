//! The actor of a TaskManager that obeys the leader.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::actor::{Actor, Boot, Event, Outbox, Time, TimerId};
use crate::ids::{ActorId, Address, ExecutionAttemptId, ProcessId, ResultPartitionId, SessionId};
use crate::message::{
    DropPartitions, HeartbeatRequest, HeartbeatResponse, JobResult, LeaderChanged, Message, PartitionReport,
    PartitionWithMetrics, RegisterPartitions, RegistrationRejected, SubmitTask, TaskEnded, TaskState,
    UpdateTaskExecutionState,
};
use crate::note::Note;

use super::connection::{Connection, HEARTBEAT, RETRY};
use super::files::Files;
use super::partitions::{RETENTION, TrackedPartitions};
use super::tasks::{Tasks, failed};

/// Flink's TaskExecutor.
pub struct TaskExecutor {
    process: ProcessId,
    session: SessionId,
    slots: usize,
    /// Whether partitions outlive their leader at all: both sides must go by the same option.
    recovery_enabled: bool,
    retention: Duration,
    connection: Connection,
    tasks: Tasks,
    partitions: TrackedPartitions,
    files: Files,
    /// Attempts whose partitions the shuffle does not know yet: their finish is not told before.
    registering: BTreeSet<ExecutionAttemptId>,
    /// A stopped task's last write may have come after its file was deleted.
    unclean: bool,
}

impl TaskExecutor {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            session: boot.session,
            slots: boot.config.task_slots as usize,
            recovery_enabled: boot.config.job_recovery_enabled,
            retention: boot.config.registration_timeout,
            connection: Connection::new(boot),
            tasks: Tasks::default(),
            partitions: TrackedPartitions::default(),
            files: Files::default(),
            registering: BTreeSet::new(),
            unclean: false,
        }
    }

    // ---- the leader comes and goes ----

    fn leader_changed(&mut self, now: Time, message: LeaderChanged, out: &mut Outbox) {
        if let Some(JobResult::Clean(_)) = message.result {
            return self.job_ended(out);
        }
        match message.leader {
            Some(leader) if self.connection.is_news(leader) => {
                self.lose_leader(now, out);
                self.tasks.begin_epoch(leader.token);
                self.connection.register(now, leader, !self.partitions.is_empty(), out);
            }
            Some(_) => {}
            None => {
                if self.lose_leader(now, out) {
                    self.connection.search(now, out);
                }
            }
        }
    }

    /// Stops what the leader began and keeps what is finished (FLIP-383). Whether there was one.
    fn lose_leader(&mut self, now: Time, out: &mut Outbox) -> bool {
        let Some(token) = self.connection.lose(out) else { return false };
        out.note(Note::JobManagerLost { token });
        self.stop_all("stopped because its JobManager was lost", out);
        if self.recovery_enabled {
            self.partitions.retain(now, self.retention, out);
        } else {
            let all = self.partitions.release_all(out);
            self.drop_partitions(all, out);
        }
        true
    }

    fn job_ended(&mut self, out: &mut Outbox) {
        self.stop_all("stopped because the job ended", out);
        let all = self.partitions.release_all(out);
        self.drop_partitions(all, out);
        self.connection.end(out);
        if std::mem::take(&mut self.unclean) {
            self.files.sweep(out);
        }
    }

    /// A worker that comes too late for the recovery may come as a new one, with nothing.
    fn rejected(&mut self, now: Time, message: &RegistrationRejected, out: &mut Outbox) {
        let again = if message.too_late { "without them" } else { "after a pause" };
        let text = format!(
            "the JobManager did not register {}: {}; it is asked again {again}",
            self.process, message.reason
        );
        out.note(Note::Warning { text });
        if let Some(leader) = self.connection.leader().filter(|_| message.too_late) {
            let all = self.partitions.release_all(out);
            self.drop_partitions(all, out);
            self.connection.register(now, leader, false, out);
        }
    }

    fn claimed(&mut self, out: &mut Outbox) {
        let Some(leader) = self.connection.leader() else { return };
        let partitions = self.partitions.claim(leader.token, out);
        let report = PartitionReport { token: leader.token, session: self.session, partitions };
        self.connection.send(report, out);
    }

    fn heartbeat(&mut self, message: &HeartbeatRequest, out: &mut Outbox) {
        let attempts = self.tasks.running();
        let response = HeartbeatResponse { token: message.token, session: self.session, attempts };
        self.connection.send(response, out);
        for &attempt in &message.attempts {
            if self.tasks.is_running(attempt) {
                continue;
            }
            if self.tasks.final_state(attempt).is_none() {
                self.tasks.end(attempt, failed(attempt, &format!("unknown to {}", self.process)));
            }
            self.report(attempt, out);
        }
    }

    // ---- tasks ----

    fn submit(&mut self, message: SubmitTask, out: &mut Outbox) {
        let task = message.task;
        let attempt = task.attempt;
        if self.tasks.is_running(attempt) {
            return;
        }
        if self.tasks.final_state(attempt).is_some() {
            return self.report(attempt, out);
        }
        if self.tasks.count() >= self.slots {
            let reason = format!("none of the {} slots of {} is free", self.slots, self.process);
            self.tasks.end(attempt, failed(attempt, &reason));
            return self.report(attempt, out);
        }
        self.tasks.start(&task);
        out.note(Note::TaskStarted { attempt });
        out.spawn(*task);
    }

    fn task_ended(&mut self, message: TaskEnded, out: &mut Outbox) {
        let attempt = message.attempt;
        let Some(leader) = self.connection.leader().filter(|_| self.tasks.is_running(attempt)) else {
            return;
        };
        let failure = message.result.as_ref().err().map(|failure| failure.message.clone());
        let state = match message.result {
            Ok(result) => {
                let mut partitions = Vec::new();
                for partition in &result.partitions {
                    let metrics = PartitionWithMetrics {
                        partition: partition.partition,
                        subpartition_bytes: partition.subpartition_bytes(),
                    };
                    let bytes = metrics.subpartition_bytes.iter().sum();
                    out.note(Note::PartitionFinished { partition: partition.partition, bytes });
                    self.partitions.track(leader.token, metrics.clone());
                    partitions.push(metrics);
                }
                // The JobMaster hears of it when readers will find it: they may come at once.
                if !result.partitions.is_empty() {
                    self.registering.insert(attempt);
                    let register = RegisterPartitions { attempt, partitions: result.partitions };
                    out.send(Address::shuffle(self.process), register);
                }
                self.tasks.end(
                    attempt,
                    TaskState::Finished {
                        partitions,
                        committables: result.committables,
                        metrics: result.metrics,
                        accumulators: result.accumulators,
                    },
                );
                None
            }
            Err(failure) => self.tasks.end(attempt, TaskState::Failed(failure)),
        };
        for path in state.into_iter().flatten() {
            self.files.delete(path, out);
        }
        out.note(Note::TaskEnded { attempt, failure });
        self.report(attempt, out);
        out.stop(ActorId::Task(attempt));
    }

    fn cancel(&mut self, attempt: ExecutionAttemptId, out: &mut Outbox) {
        if self.tasks.is_running(attempt) {
            self.stop(attempt, TaskState::Canceled, "canceled", out);
        } else if self.tasks.final_state(attempt).is_none() {
            // Should it come later, it will not run.
            self.tasks.end(attempt, TaskState::Canceled);
        }
        self.report(attempt, out);
    }

    fn stop_all(&mut self, reason: &str, out: &mut Outbox) {
        for attempt in self.tasks.running() {
            self.stop(attempt, failed(attempt, reason), reason, out);
        }
    }

    fn stop(&mut self, attempt: ExecutionAttemptId, state: TaskState, reason: &str, out: &mut Outbox) {
        out.stop(ActorId::Task(attempt));
        out.note(Note::TaskEnded { attempt, failure: Some(reason.to_owned()) });
        for path in self.tasks.end(attempt, state).into_iter().flatten() {
            self.unclean = true;
            self.files.delete(path, out);
        }
    }

    /// Tells the leader the final state of an attempt.
    fn report(&self, attempt: ExecutionAttemptId, out: &mut Outbox) {
        if self.registering.contains(&attempt) {
            return;
        }
        let (Some(leader), Some(state)) = (self.connection.leader(), self.tasks.final_state(attempt)) else {
            return;
        };
        let (token, session, state) = (leader.token, self.session, state.clone());
        self.connection.send(UpdateTaskExecutionState { token, session, attempt, state }, out);
    }

    // ---- partitions ----

    fn drop_partitions(&self, partitions: Vec<ResultPartitionId>, out: &mut Outbox) {
        if !partitions.is_empty() {
            out.send(Address::shuffle(self.process), DropPartitions { partitions });
        }
    }

    fn retention_fired(&mut self, now: Time, out: &mut Outbox) {
        let expired = self.partitions.expire(now, self.connection.registered_token());
        if !expired.is_empty() {
            let text =
                format!("no JobManager claimed {} partitions in time: they are dropped", expired.len());
            out.note(Note::Warning { text });
        }
        self.drop_partitions(expired, out);
    }

    // ---- events ----

    fn receive(&mut self, now: Time, from: Address, message: Message, out: &mut Outbox) {
        match message {
            Message::LeaderChanged(message) => self.leader_changed(now, message, out),
            Message::TaskEnded(message) => {
                if from == Address::new(self.process, ActorId::Task(message.attempt)) {
                    self.task_ended(message, out);
                }
            }
            Message::PartitionsRegistered(message) if from == Address::shuffle(self.process) => {
                if self.registering.remove(&message.attempt) {
                    self.report(message.attempt, out);
                }
            }
            message => self.receive_from_leader(now, message, out),
        }
    }

    fn receive_from_leader(&mut self, now: Time, message: Message, out: &mut Outbox) {
        let (token, session) = match &message {
            Message::RegistrationSuccess(message) => (message.token, message.session),
            Message::RegistrationRejected(message) => (message.token, message.session),
            Message::GetAndRetainPartitionWithMetrics(message) => (message.token, self.session),
            Message::SubmitTask(message) if message.task.token == message.token => {
                (message.token, self.session)
            }
            Message::CancelTask(message) => (message.token, self.session),
            Message::ReleasePartitions(message) => (message.token, self.session),
            Message::HeartbeatRequest(message) => (message.token, self.session),
            Message::JobTerminated(message) => (message.token, self.session),
            _ => return,
        };
        if session != self.session || !self.connection.accepts(now, token) {
            return;
        }
        match message {
            Message::RegistrationSuccess(_) => {
                self.connection.registered(now, out);
                self.partitions.settle(token, out);
            }
            Message::RegistrationRejected(message) => self.rejected(now, &message, out),
            Message::GetAndRetainPartitionWithMetrics(_) => self.claimed(out),
            Message::SubmitTask(message) => self.submit(message, out),
            Message::CancelTask(message) => self.cancel(message.attempt, out),
            Message::ReleasePartitions(message) => {
                let released = self.partitions.release(message.partitions);
                self.drop_partitions(released, out);
            }
            Message::HeartbeatRequest(message) => self.heartbeat(&message, out),
            Message::JobTerminated(_) => self.job_ended(out),
            _ => {}
        }
    }

    fn timer(&mut self, now: Time, timer: TimerId, out: &mut Outbox) {
        match timer {
            RETRY => self.connection.retry_fired(now, out),
            HEARTBEAT if self.connection.heartbeat_fired(now, out) => {
                self.lose_leader(now, out);
                self.connection.search(now, out);
            }
            RETENTION => self.retention_fired(now, out),
            _ => {}
        }
    }
}

impl Actor for TaskExecutor {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => {
                // A TaskManager that is started again starts empty.
                self.files.sweep(out);
                self.connection.search(now, out);
            }
            Event::Message { from, message } => self.receive(now, from, message, out),
            Event::Timer(timer) => self.timer(now, timer, out),
            Event::Disk { op, result } => {
                let needed = |path: &str| self.partitions.have_file(path) || self.tasks.writes(path);
                self.files.complete(op, result, needed, out);
            }
        }
    }
}
