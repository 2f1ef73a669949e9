//! The actor of a TaskManager that obeys the leader.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actor::{Actor, Boot, Event, Outbox, Time, TimerId};
use crate::connectors::is_pending_of;
use crate::ids::{ActorId, Address, ExecutionAttemptId, ProcessId, ResultPartitionId, SessionId};
use crate::message::{
    DropPartitions, HeartbeatRequest, HeartbeatResponse, JobResult, LeaderChanged, Message, PartitionReport,
    PartitionWithMetrics, RegistrationRejected, ResultPartitionDescriptor, SubmitTask, TaskEnded, TaskState,
    UpdateTaskExecutionState,
};
use crate::note::Note;
use crate::planted::{PlantedBug, is_planted};
use crate::task::partition_path;
use crate::worker::{Connection, Files, HEARTBEAT, Place, RETENTION, RETRY, TrackedPartitions};

use super::registrations::{REGISTRATION, Registrations};
use super::tasks::{Tasks, failed};

const SWEEP: TimerId = TimerId(5);

/// Flink's TaskExecutor.
#[derive(Debug)]
pub struct TaskExecutor {
    process: ProcessId,
    session: SessionId,
    slots: usize,
    /// Whether partitions outlive their leader at all: both sides must go by the same option.
    recovery_enabled: bool,
    retention: Duration,
    /// [`PlantedBug::WipeNewPartitions`].
    wipes: bool,
    connection: Connection,
    tasks: Tasks,
    partitions: TrackedPartitions,
    files: Files,
    registrations: Registrations,
    /// A stopped task's last write may have come after its file was deleted.
    unclean: bool,
    uncommitted: Uncommitted,
    /// When it is looked again for what such tasks left.
    again: Duration,
}

/// Whose pending files nobody will commit.
#[derive(Debug)]
enum Uncommitted {
    /// Those that ran here, under whatever leader: what is pending when the job has ended was not committed, and their
    /// last file may come when the leader has deleted what it found.
    Of(Vec<ExecutionAttemptId>),
    /// Anybody's: this process came when the job had ended.
    All,
}

impl TaskExecutor {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            session: boot.session,
            slots: boot.config.task_slots as usize,
            recovery_enabled: boot.config.job_recovery_enabled,
            retention: boot.config.registration_timeout,
            wipes: is_planted(&boot.config, PlantedBug::WipeNewPartitions),
            connection: Connection::new(boot),
            tasks: Tasks::default(),
            partitions: TrackedPartitions::default(),
            files: Files::default(),
            registrations: Registrations::new(boot.config.heartbeat_interval, boot.config.heartbeat_timeout),
            unclean: false,
            uncommitted: Uncommitted::Of(Vec::new()),
            again: boot.config.registration_retry,
        }
    }

    // ---- the leader comes and goes ----

    fn leader_changed(&mut self, now: Time, message: LeaderChanged, out: &mut Outbox) {
        if let Some(JobResult::Clean(_)) = message.result {
            return self.job_ended(now, out);
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

    fn job_ended(&mut self, now: Time, out: &mut Outbox) {
        let running = self.tasks.running();
        self.stop_all("stopped because the job ended", out);
        // The leader may wait for them, to delete what they leave.
        for &attempt in &running {
            self.report(attempt, out);
        }
        let is_known = self.connection.is_over();
        if self.connection.is_new() {
            // An earlier incarnation may have written its last file when the job had ended, and died before it
            // could delete that.
            self.uncommitted = Uncommitted::All;
            self.files.sweep(Place::Uncommitted, out);
        } else if matches!(&self.uncommitted, Uncommitted::Of(attempts) if !attempts.is_empty() && !is_known)
        {
            // The leader may have ended long ago, if this process stood still.
            self.files.sweep(Place::Uncommitted, out);
        }
        let all = self.partitions.release_all(out);
        self.drop_partitions(all, out);
        self.registrations.clear(out);
        self.connection.end(out);
        if std::mem::take(&mut self.unclean) {
            self.files.sweep(Place::Partitions, out);
            self.files.sweep(Place::Spills, out);
            out.set_timer(SWEEP, now + self.again);
        }
    }

    /// One that comes too late for the recovery comes as a new one, with nothing.
    fn rejected(&mut self, now: Time, message: &RegistrationRejected, out: &mut Outbox) {
        if let Some(leader) = self.connection.rejected(message, out) {
            let all = self.partitions.release_all(out);
            self.drop_partitions(all, out);
            self.connection.register(now, leader, false, out);
        }
    }

    fn claimed(&mut self, out: &mut Outbox) {
        let Some(leader) = self.connection.leader() else { return };
        out.note(Note::PartitionsClaimed { token: leader.token });
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
        if let Uncommitted::Of(attempts) = &mut self.uncommitted {
            attempts.push(attempt);
        }
        out.note(Note::TaskStarted { attempt });
        out.spawn(*task);
    }

    fn task_ended(&mut self, now: Time, message: TaskEnded, out: &mut Outbox) {
        let attempt = message.attempt;
        let Some(leader) = self.connection.leader().filter(|_| self.tasks.is_running(attempt)) else {
            return;
        };
        let failure = message.result.as_ref().err().map(|failure| failure.message.clone());
        let unfinished = match message.result {
            Ok(result) => {
                let keeper = self.tasks.keeper(attempt).unwrap_or(self.process);
                let mut partitions = Vec::new();
                for partition in &result.partitions {
                    let metrics = PartitionWithMetrics {
                        partition: partition.partition,
                        subpartition_bytes: partition.subpartition_bytes(),
                    };
                    if keeper == self.process {
                        let bytes = metrics.subpartition_bytes.iter().sum();
                        out.note(Note::PartitionFinished { partition: partition.partition, bytes });
                        self.partitions.track(leader.token, metrics.clone());
                    }
                    partitions.push(metrics);
                }
                // The JobMaster hears of it when readers will find it: they may come at once.
                if !result.partitions.is_empty() {
                    let shuffle = self.shuffle_of(keeper);
                    self.registrations.begin(now, attempt, shuffle, result.partitions, out);
                }
                out.note(Note::TaskMetrics { attempt, metrics: result.metrics });
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
        self.discard(unfinished.unwrap_or_default(), out);
        if failure.is_some() {
            self.remove_spills(out);
        }
        out.note(Note::TaskEnded { attempt, failure });
        self.report(attempt, out);
        out.stop(ActorId::Task(attempt));
    }

    fn cancel(&mut self, attempt: ExecutionAttemptId, out: &mut Outbox) {
        if self.tasks.is_running(attempt) {
            self.stop(attempt, TaskState::Canceled, "canceled", out);
            self.remove_spills(out);
        } else if self.tasks.final_state(attempt).is_none() {
            // Should it come later, it will not run.
            self.tasks.end(attempt, TaskState::Canceled);
        }
        self.report(attempt, out);
    }

    fn stop_all(&mut self, reason: &str, out: &mut Outbox) {
        let running = self.tasks.running();
        for &attempt in &running {
            self.stop(attempt, failed(attempt, reason), reason, out);
        }
        if !running.is_empty() {
            self.remove_spills(out);
        }
    }

    fn stop(&mut self, attempt: ExecutionAttemptId, state: TaskState, reason: &str, out: &mut Outbox) {
        out.stop(ActorId::Task(attempt));
        out.note(Note::TaskEnded { attempt, failure: Some(reason.to_owned()) });
        let unfinished = self.tasks.end(attempt, state).unwrap_or_default();
        self.unclean = true;
        self.discard(unfinished, out);
    }

    /// Deletes what sorts left of tasks that do not run any more, and again when the job ends: the last
    /// file may only come.
    fn remove_spills(&mut self, out: &mut Outbox) {
        self.unclean = true;
        self.files.sweep(Place::Spills, out);
    }

    /// Nobody will want these results: they are not complete.
    fn discard(&mut self, unfinished: Vec<ResultPartitionDescriptor>, out: &mut Outbox) {
        let mut elsewhere: BTreeMap<ProcessId, Vec<ResultPartitionId>> = BTreeMap::new();
        for ResultPartitionDescriptor { partition, location, .. } in unfinished {
            if location == self.process {
                self.files.delete(Place::Partitions, partition_path(partition), out);
            } else {
                elsewhere.entry(location).or_default().push(partition);
            }
        }
        for (service, partitions) in elsewhere {
            out.send(Address::worker(service), DropPartitions { partitions });
        }
    }

    /// Who is told that results are complete.
    fn shuffle_of(&self, keeper: ProcessId) -> Address {
        if keeper == self.process { Address::shuffle(keeper) } else { Address::worker(keeper) }
    }

    /// The results are not where they should be: the attempt has not finished after all.
    fn not_registered(
        &mut self,
        attempt: ExecutionAttemptId,
        shuffle: Address,
        reason: &str,
        out: &mut Outbox,
    ) {
        let Some(TaskState::Finished { partitions, .. }) = self.tasks.final_state(attempt) else { return };
        let partitions = partitions.iter().map(|partition| partition.partition).collect();
        out.send(shuffle, DropPartitions { partitions });
        self.tasks.end(attempt, failed(attempt, reason));
        self.report(attempt, out);
    }

    fn registration_fired(&mut self, now: Time, out: &mut Outbox) {
        for (attempt, shuffle) in self.registrations.fired(now, out) {
            let service = shuffle.process;
            let reason = format!("no answer from {service}, to which its results were pushed");
            self.not_registered(attempt, shuffle, &reason, out);
        }
    }

    /// Tells the leader the final state of an attempt.
    fn report(&self, attempt: ExecutionAttemptId, out: &mut Outbox) {
        if self.registrations.contains(attempt) {
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
        let expired = self.partitions.expire(now, self.connection.registered_token(), self.wipes);
        if !expired.is_empty() {
            out.note(Note::RetentionExpired { partitions: expired.clone() });
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
                    self.task_ended(now, message, out);
                }
            }
            Message::PartitionsRegistered(message) => {
                if self.registrations.answered(from, message.attempt) {
                    self.report(message.attempt, out);
                }
            }
            Message::PartitionsRefused(message) => {
                if self.registrations.answered(from, message.attempt) {
                    let reason = format!("{} did not take its results: {}", from.process, message.reason);
                    self.not_registered(message.attempt, from, &reason, out);
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
            // One for an incarnation that is dead is not for this one: nobody would count on it.
            Message::SubmitTask(message) if message.task.token == message.token => {
                (message.token, message.session)
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
            Message::JobTerminated(_) => self.job_ended(now, out),
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
            REGISTRATION => self.registration_fired(now, out),
            SWEEP => {
                for place in [Place::Uncommitted, Place::Partitions, Place::Spills] {
                    self.files.sweep(place, out);
                }
            }
            _ => {}
        }
    }
}

impl Actor for TaskExecutor {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => {
                // A TaskManager that is started again starts empty.
                self.files.sweep(Place::Partitions, out);
                self.files.sweep(Place::Spills, out);
                self.connection.search(now, out);
            }
            Event::Message { from, message } => self.receive(now, from, message, out),
            Event::Timer(timer) => self.timer(now, timer, out),
            Event::Disk { op, result } => {
                let needed = |place, path: &str| match place {
                    Place::Partitions => self.partitions.have_file(path) || self.tasks.writes(path),
                    Place::Spills => self.tasks.spills(path),
                    Place::Uncommitted => match &self.uncommitted {
                        Uncommitted::Of(attempts) => {
                            !attempts.iter().any(|&attempt| is_pending_of(attempt, path))
                        }
                        Uncommitted::All => false,
                    },
                };
                self.files.complete(op, result, needed, out);
            }
        }
    }

    fn contradiction(&self) -> Option<String> {
        let (running, slots) = (self.tasks.count(), self.slots);
        if running > slots {
            return Some(format!("{running} tasks run in {slots} slots"));
        }
        let both = self.tasks.runs_and_ended()?;
        Some(format!("{both} runs and has ended"))
    }
}
