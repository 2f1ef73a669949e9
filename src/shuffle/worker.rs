//! The actor of a shuffle service that obeys the leader: the part that the TaskExecutor plays for
//! the partitions of a TaskManager. It decides how long a partition is kept, by the same rules: what
//! is finished outlives its leader, goes to the next that claims it, and is dropped when none does.
//! It never reads or writes a partition, and runs no task.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actor::{Actor, Boot, Event, Outbox, Time, TimerId};
use crate::config::MAX_PARALLELISM;
use crate::ids::{Address, ExecutionAttemptId, FencingToken, ProcessId, ResultPartitionId, SessionId};
use crate::message::{
    AcceptPushes, DropPartitions, FinishedPartition, HeartbeatResponse, JobResult, LeaderChanged, Message,
    PartitionReport, PartitionWithMetrics, PartitionsRefused, PartitionsRegistered, RegisterPartitions,
    RegistrationRejected,
};
use crate::note::Note;
use crate::planted::{PlantedBug, is_planted};
use crate::task::partition_path;
use crate::worker::{Connection, Files, HEARTBEAT, Place, RETENTION, RETRY, TrackedPartitions};

/// A worker without slots.
#[derive(Debug)]
pub struct ShuffleWorker {
    process: ProcessId,
    session: SessionId,
    /// Whether partitions outlive their leader at all: both sides must go by the same option.
    recovery_enabled: bool,
    retention: Duration,
    /// [`PlantedBug::WipeNewPartitions`].
    wipes: bool,
    connection: Connection,
    partitions: TrackedPartitions,
    files: Files,
    /// What an earlier incarnation left is still being deleted.
    sweeping: bool,
    /// Attempts whose partitions the shuffle is about to know: who asked, and what they are.
    registering: BTreeMap<ExecutionAttemptId, (Address, Vec<PartitionWithMetrics>)>,
}

impl ShuffleWorker {
    pub fn new(boot: &Boot) -> Self {
        Self {
            process: boot.process,
            session: boot.session,
            recovery_enabled: boot.config.job_recovery_enabled,
            retention: boot.config.registration_timeout,
            wipes: is_planted(&boot.config, PlantedBug::WipeNewPartitions),
            connection: Connection::new(boot),
            partitions: TrackedPartitions::default(),
            files: Files::default(),
            sweeping: false,
            registering: BTreeMap::new(),
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
                // Nothing is placed here before the registration below.
                self.accept_pushes(Some(leader.token), out);
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

    /// Keeps what is finished (FLIP-383). Whether there was a leader.
    fn lose_leader(&mut self, now: Time, out: &mut Outbox) -> bool {
        let Some(token) = self.connection.lose(out) else { return false };
        out.note(Note::JobManagerLost { token });
        if self.recovery_enabled {
            self.partitions.retain(now, self.retention, out);
        } else {
            let all = self.partitions.release_all(out);
            self.drop_partitions(all, out);
            self.accept_pushes(None, out);
        }
        true
    }

    fn job_ended(&mut self, out: &mut Outbox) {
        let all = self.partitions.release_all(out);
        self.drop_partitions(all, out);
        self.accept_pushes(None, out);
        self.connection.end(out);
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

    // ---- partitions ----

    fn accept_pushes(&self, token: Option<FencingToken>, out: &mut Outbox) {
        out.send(Address::shuffle(self.process), AcceptPushes { token });
    }

    fn drop_partitions(&self, partitions: Vec<ResultPartitionId>, out: &mut Outbox) {
        if !partitions.is_empty() {
            out.send(Address::shuffle(self.process), DropPartitions { partitions });
        }
    }

    /// A TaskManager says that its task pushed all of these.
    fn register(&mut self, from: Address, message: RegisterPartitions, out: &mut Outbox) {
        let RegisterPartitions { attempt, mut partitions } = message;
        if let Some(broken) = partitions.iter().find(|partition| !is_sound(attempt, partition)) {
            let reason = format!("partition {} of {attempt} is not laid out as it must be", broken.partition);
            return out.send(from, PartitionsRefused { attempt, reason });
        }
        for partition in &mut partitions {
            partition.path = partition_path(partition.partition);
        }
        let metrics = |partition: &FinishedPartition| PartitionWithMetrics {
            partition: partition.partition,
            subpartition_bytes: partition.subpartition_bytes(),
        };
        let metrics = partitions.iter().map(metrics).collect();
        self.registering.insert(attempt, (from, metrics));
        out.send(Address::shuffle(self.process), RegisterPartitions { attempt, partitions });
    }

    /// The shuffle serves them from now on.
    fn registered(&mut self, now: Time, attempt: ExecutionAttemptId, out: &mut Outbox) {
        let Some((executor, partitions)) = self.registering.remove(&attempt) else { return };
        if self.connection.is_over() {
            // A process that stood still may hear of the end before the shuffle has answered.
            self.drop_partitions(partitions.iter().map(|partition| partition.partition).collect(), out);
            let reason = "the job has ended".to_owned();
            return out.send(executor, PartitionsRefused { attempt, reason });
        }
        for partition in partitions {
            if self.partitions.contains(partition.partition) {
                continue; // a repetition
            }
            let bytes = partition.subpartition_bytes.iter().sum();
            out.note(Note::PartitionFinished { partition: partition.partition, bytes });
            self.partitions.track(attempt.epoch, partition);
        }
        if self.connection.leader().is_none() {
            self.partitions.retain(now, self.retention, out);
        }
        out.send(executor, PartitionsRegistered { attempt });
    }

    fn refused(&mut self, message: PartitionsRefused, out: &mut Outbox) {
        if let Some((executor, _)) = self.registering.remove(&message.attempt) {
            out.send(executor, message);
        }
    }

    /// A TaskManager says that nobody will want these: their attempts did not finish.
    fn abandoned(&mut self, partitions: Vec<ResultPartitionId>, out: &mut Outbox) {
        self.partitions.release(partitions.clone());
        self.drop_partitions(partitions, out);
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
        let from_shuffle = from == Address::shuffle(self.process);
        match message {
            Message::LeaderChanged(message) => self.leader_changed(now, message, out),
            Message::RegisterPartitions(message) => self.register(from, message, out),
            Message::DropPartitions(message) => self.abandoned(message.partitions, out),
            Message::PartitionsRegistered(message) if from_shuffle => {
                self.registered(now, message.attempt, out);
            }
            Message::PartitionsRefused(message) if from_shuffle => self.refused(message, out),
            message => self.receive_from_leader(now, message, out),
        }
    }

    fn receive_from_leader(&mut self, now: Time, message: Message, out: &mut Outbox) {
        let (token, session) = match &message {
            Message::RegistrationSuccess(message) => (message.token, message.session),
            Message::RegistrationRejected(message) => (message.token, message.session),
            Message::GetAndRetainPartitionWithMetrics(message) => (message.token, self.session),
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
            Message::ReleasePartitions(message) => {
                let released = self.partitions.release(message.partitions);
                self.drop_partitions(released, out);
            }
            Message::HeartbeatRequest(_) => {
                let response = HeartbeatResponse { token, session, attempts: Vec::new() };
                self.connection.send(response, out);
            }
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

impl Actor for ShuffleWorker {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => {
                self.sweeping = true;
                self.files.sweep(Place::Partitions, out);
            }
            Event::Message { from, message } => self.receive(now, from, message, out),
            Event::Timer(timer) => self.timer(now, timer, out),
            Event::Disk { op, result } => {
                // It begins empty, and only then looks for a leader: nothing is pushed before that.
                self.files.complete(op, result, |_, _| false, out);
                if self.sweeping && self.files.is_idle() {
                    self.sweeping = false;
                    self.connection.search(now, out);
                }
            }
        }
    }
}

/// Whether it is a partition of the attempt whose buffers lie one behind the other.
fn is_sound(attempt: ExecutionAttemptId, partition: &FinishedPartition) -> bool {
    let mut end = 0;
    partition.partition.producer == attempt
        && partition.subpartitions <= MAX_PARALLELISM
        && partition.buffers.iter().all(|buffer| {
            let follows = buffer.offset == end && buffer.subpartition < partition.subpartitions;
            end += u64::from(buffer.length);
            follows
        })
}

#[cfg(test)]
mod tests;
