//! A TaskExecutor with a clock and its timers, and short names for what the tests say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::{Actor, Boot, Effect, Event, Outbox, Time, TimerId};
use crate::config::Configuration;
use crate::disk::{DiskOp, Volume};
use crate::ids::{
    ActorId, Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId,
    JobVertexId, ProcessId, ResultPartitionId, SessionId,
};
use crate::message::{
    BufferLocation, FinishedPartition, JobRecord, LeaderChanged, LeaderInfo, Message, PartitionWithMetrics,
    PartitionsRegistered, RegistrationSuccess, ResultPartitionDescriptor, SubmitTask,
    TaskDeploymentDescriptor, TaskEnded, TaskFailure, TaskResult, TaskState,
};
use crate::note::Note;
use crate::task::partition_path;
use crate::task_manager::TaskExecutor;

pub const HERE: ProcessId = ProcessId::TaskManager(1);
pub const SESSION: SessionId = SessionId(11);

pub struct Bench {
    executor: TaskExecutor,
    pub now: Time,
    timers: BTreeMap<TimerId, Time>,
    pub notes: Vec<Note>,
}

pub fn token(epoch: u64) -> FencingToken {
    FencingToken(epoch)
}

/// Attempt of subtask `subtask` made by the leader of `epoch`.
pub fn attempt(epoch: u64, subtask: u32) -> ExecutionAttemptId {
    let subtask = ExecutionVertexId::new(JobVertexId(0), subtask);
    ExecutionAttemptId { subtask, epoch: token(epoch), number: 1 }
}

pub fn partition(attempt: ExecutionAttemptId) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(0), producer: attempt }
}

/// What the partition of an attempt that ended well has: five bytes.
pub fn metrics(attempt: ExecutionAttemptId) -> PartitionWithMetrics {
    PartitionWithMetrics { partition: partition(attempt), subpartition_bytes: vec![5] }
}

pub fn failure(text: &str) -> TaskFailure {
    TaskFailure { message: text.to_owned(), missing: None }
}

impl Bench {
    /// An executor with two slots that was just started.
    pub fn start(recovery: bool) -> (Self, Vec<Effect>) {
        let config = Configuration {
            job_recovery_enabled: recovery,
            task_slots: 2,
            registration_timeout: Duration::from_mins(5),
            registration_retry: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(50),
            ..Configuration::default()
        };
        let boot = Boot { process: HERE, session: SESSION, config, volumes: vec![Volume::Local] };
        let mut bench = Self {
            executor: TaskExecutor::new(&boot),
            now: Time(0),
            timers: BTreeMap::new(),
            notes: Vec::new(),
        };
        let effects = bench.event(Event::Start);
        (bench, effects)
    }

    /// One that is registered with the leader of epoch 1.
    pub fn registered() -> Self {
        let (mut bench, _) = Self::start(true);
        bench.lead(1);
        bench
    }

    /// The effects of an event but for timers, which are kept, and notes, which are collected.
    pub fn event(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Outbox::new();
        self.executor.handle(self.now, event, &mut out);
        assert_eq!(self.executor.contradiction(), None);
        let mut effects = out.take();
        effects.retain(|effect| match effect {
            Effect::SetTimer { timer, at } => {
                self.timers.insert(*timer, *at);
                false
            }
            Effect::CancelTimer { timer } => {
                self.timers.remove(timer);
                false
            }
            Effect::Note(note) => {
                self.notes.push(note.clone());
                false
            }
            _ => true,
        });
        effects
    }

    pub fn message(&mut self, from: Address, message: impl Into<Message>) -> Vec<Effect> {
        self.event(Event::Message { from, message: message.into() })
    }

    /// A message of the JobMaster.
    pub fn master(&mut self, message: impl Into<Message>) -> Vec<Effect> {
        self.message(Address::MASTER, message)
    }

    pub fn leader_changed(&mut self, epoch: Option<u64>) -> Vec<Effect> {
        let info = |epoch| LeaderInfo { process: ProcessId::JOB_MANAGER, token: token(epoch) };
        self.message(Address::HIGH_AVAILABILITY, LeaderChanged { leader: epoch.map(info), result: None })
    }

    /// The leader of `epoch` is announced and takes the TaskManager in.
    pub fn lead(&mut self, epoch: u64) -> Vec<Effect> {
        let effects = self.leader_changed(Some(epoch));
        self.master(RegistrationSuccess { token: token(epoch), session: SESSION });
        effects
    }

    pub fn submit(&mut self, epoch: u64, attempt: ExecutionAttemptId) -> Vec<Effect> {
        self.submit_with_results_at(HERE, epoch, attempt)
    }

    pub fn submit_with_results_at(
        &mut self,
        location: ProcessId,
        epoch: u64,
        attempt: ExecutionAttemptId,
    ) -> Vec<Effect> {
        self.submit_to(SESSION, location, epoch, attempt)
    }

    /// A task for the incarnation of this session.
    pub fn submit_to(
        &mut self,
        session: SessionId,
        location: ProcessId,
        epoch: u64,
        attempt: ExecutionAttemptId,
    ) -> Vec<Effect> {
        let task = TaskDeploymentDescriptor {
            token: token(epoch),
            job_manager: ProcessId::JOB_MANAGER,
            job: Arc::new(JobRecord { name: "test".to_owned(), arguments: vec![], fingerprint: 7 }),
            attempt,
            parallelism: 1,
            inputs: vec![],
            outputs: vec![ResultPartitionDescriptor {
                partition: partition(attempt),
                subpartitions: 1,
                location,
            }],
        };
        self.master(SubmitTask { token: token(epoch), session, task: Box::new(task) })
    }

    pub fn ended(&mut self, attempt: ExecutionAttemptId, result: Result<(), &str>) -> Vec<Effect> {
        let finished = FinishedPartition {
            partition: partition(attempt),
            path: partition_path(partition(attempt)),
            subpartitions: 1,
            buffers: vec![BufferLocation { subpartition: 0, offset: 0, length: 5 }],
        };
        let result = result
            .map(|()| TaskResult { partitions: vec![finished], ..TaskResult::default() })
            .map_err(failure);
        let mut effects =
            self.message(Address::new(HERE, ActorId::Task(attempt)), TaskEnded { attempt, result });
        let here = Address::shuffle(HERE);
        let asked =
            |(to, message): &(Address, Message)| *to == here && message.kind() == "RegisterPartitions";
        if sent(&effects).iter().any(asked) {
            let registered = PartitionsRegistered { attempt };
            effects.extend(self.message(Address::shuffle(HERE), registered));
        }
        effects
    }

    /// Runs a task to its good end.
    pub fn finish(&mut self, epoch: u64, subtask: u32) -> ExecutionAttemptId {
        let attempt = attempt(epoch, subtask);
        self.submit(epoch, attempt);
        self.ended(attempt, Ok(()));
        attempt
    }

    /// Lets time pass; timers that are due fire, in order. Their effects.
    pub fn pass(&mut self, seconds: u64) -> Vec<Effect> {
        let end = self.now + Duration::from_secs(seconds);
        let mut effects = Vec::new();
        while let Some((&timer, &at)) =
            self.timers.iter().filter(|(_, at)| **at <= end).min_by_key(|(_, at)| **at)
        {
            self.timers.remove(&timer);
            self.now = at;
            effects.extend(self.event(Event::Timer(timer)));
        }
        self.now = end;
        effects
    }

    pub fn has_timers(&self) -> bool {
        !self.timers.is_empty()
    }

    /// When each timer is due.
    pub const fn timers(&self) -> &BTreeMap<TimerId, Time> {
        &self.timers
    }
}

/// The messages among effects.
pub fn sent(effects: &[Effect]) -> Vec<(Address, Message)> {
    let message = |effect: &Effect| match effect {
        Effect::Send { to, message } => Some((*to, message.clone())),
        _ => None,
    };
    effects.iter().filter_map(message).collect()
}

/// The states that effects report to the JobMaster.
pub fn reported(effects: &[Effect]) -> Vec<(ExecutionAttemptId, TaskState)> {
    let state = |(to, message)| match message {
        Message::UpdateTaskExecutionState(update) => {
            assert_eq!((to, update.session), (Address::MASTER, SESSION));
            Some((update.attempt, update.state))
        }
        _ => None,
    };
    sent(effects).into_iter().filter_map(state).collect()
}

/// The partitions that effects drop.
pub fn dropped(effects: &[Effect]) -> Vec<ResultPartitionId> {
    let drop = |(to, message)| match message {
        Message::DropPartitions(drop) => {
            assert_eq!(to, Address::shuffle(HERE));
            Some(drop.partitions)
        }
        _ => None,
    };
    sent(effects).into_iter().filter_map(drop).flatten().collect()
}

/// The files that effects delete.
pub fn deleted(effects: &[Effect]) -> Vec<String> {
    let delete = |effect: &Effect| match effect {
        Effect::Disk { action: DiskOp::Delete { path }, .. } => Some(path.clone()),
        _ => None,
    };
    effects.iter().filter_map(delete).collect()
}

/// Names of effects, for tests about their order.
pub fn names(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(Effect::name).collect()
}
