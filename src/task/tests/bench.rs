//! A task actor, what it did, and short names for what the tests say.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::actor::{Actor, Boot, DiskOpId, Effect, Event, Outbox, Time, TimerId};
use crate::config::{Configuration, MemorySize};
use crate::disk::{DiskOp, DiskOutput, DiskResult};
use crate::graph::{JobGraph, JobVertex};
use crate::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId,
    ProcessId, ResultPartitionId, SessionId,
};
use crate::message::{
    Buffers, FetchedBuffer, IndexRange, InputGateDescriptor, JobRecord, Message, ResultPartitionDescriptor,
    ShuffleDescriptor, TaskDeploymentDescriptor, TaskFailure, TaskResult,
};
use crate::task::{BodyError, TaskActor, TaskBody, TaskBodyFactory, TaskContext};

pub const TM1: ProcessId = ProcessId::TaskManager(1);
pub const TM2: ProcessId = ProcessId::TaskManager(2);

/// Makes bodies with a function.
struct Function<F>(F);

impl<F, B> TaskBodyFactory for Function<F>
where
    F: Fn(TaskContext) -> B + Send + Sync,
    B: Future<Output = Result<(), BodyError>> + 'static,
{
    fn start(&self, context: TaskContext) -> TaskBody {
        Box::pin((self.0)(context))
    }
}

pub struct Bench {
    pub actor: TaskActor,
    out: Outbox,
    pub now: Time,
}

pub fn attempt() -> ExecutionAttemptId {
    attempt_of(1, 0)
}

pub fn attempt_of(vertex: u32, subtask: u32) -> ExecutionAttemptId {
    ExecutionAttemptId {
        subtask: ExecutionVertexId::new(JobVertexId(vertex), subtask),
        epoch: FencingToken(1),
        number: 1,
    }
}

pub fn partition(data_set: u32, index: u32) -> ResultPartitionId {
    ResultPartitionId { data_set: IntermediateDataSetId(data_set), producer: attempt_of(0, index) }
}

/// A gate over the partitions at `locations`, reading subpartitions 0 and 1 of each.
pub fn gate(data_set: u32, locations: &[ProcessId]) -> InputGateDescriptor {
    let at = |(i, &location): (usize, &ProcessId)| ShuffleDescriptor {
        partition: partition(data_set, i as u32),
        location,
    };
    InputGateDescriptor {
        data_set: IntermediateDataSetId(data_set),
        partitions: Arc::new(locations.iter().enumerate().map(at).collect()),
        subpartitions: IndexRange::new(0, 1),
    }
}

pub fn output(data_set: u32, subpartitions: u32) -> ResultPartitionDescriptor {
    let partition = ResultPartitionId { data_set: IntermediateDataSetId(data_set), producer: attempt() };
    ResultPartitionDescriptor { partition, subpartitions, location: TM1 }
}

impl Bench {
    /// A started task on TM1 with 64-byte buffers and a credit of 4.
    pub fn start<F, B>(
        inputs: Vec<InputGateDescriptor>,
        outputs: Vec<ResultPartitionDescriptor>,
        body: F,
    ) -> Self
    where
        F: Fn(TaskContext) -> B + Send + Sync + 'static,
        B: Future<Output = Result<(), BodyError>> + 'static,
    {
        Self::start_with_fingerprint(7, inputs, outputs, body)
    }

    pub fn start_with_fingerprint<F, B>(
        fingerprint: u64,
        inputs: Vec<InputGateDescriptor>,
        outputs: Vec<ResultPartitionDescriptor>,
        body: F,
    ) -> Self
    where
        F: Fn(TaskContext) -> B + Send + Sync + 'static,
        B: Future<Output = Result<(), BodyError>> + 'static,
    {
        let body = Arc::new(Function(body));
        let vertex = |id: u32, inputs, outputs| JobVertex {
            id: JobVertexId(id),
            name: format!("Vertex {id}"),
            parallelism: Some(1),
            max_parallelism: None,
            inputs,
            outputs,
            source: None,
            uids: vec![],
            determinacy: crate::graph::Determinacy::Indeterminate,
            recovery_obstacles: vec![],
            body: Arc::clone(&body) as Arc<dyn TaskBodyFactory>,
        };
        let vertices = vec![
            vertex(0, vec![], vec![]),
            vertex(
                1,
                inputs.iter().map(|gate| gate.data_set).collect(),
                outputs.iter().map(|output| output.partition.data_set).collect(),
            ),
        ];
        let graph =
            JobGraph { name: "test".to_owned(), options: vec![], vertices, edges: vec![], fingerprint: 7 };
        let config = Configuration {
            segment_size: MemorySize(64),
            buffers_per_gate: 4,
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(50),
            ..Configuration::default()
        };
        let boot = Boot { process: TM1, session: SessionId(1), config, volumes: vec![] };
        let task = TaskDeploymentDescriptor {
            token: FencingToken(1),
            job_manager: ProcessId::JOB_MANAGER,
            job: Arc::new(JobRecord { name: "test".to_owned(), arguments: vec![], fingerprint }),
            attempt: attempt(),
            parallelism: 1,
            inputs,
            outputs,
        };
        let mut bench = Self {
            actor: TaskActor::with_graph(&boot, Arc::new(graph), task),
            out: Outbox::new(),
            now: Time(0),
        };
        bench.event(Event::Start);
        bench
    }

    pub fn event(&mut self, event: Event) {
        self.actor.handle(self.now, event, &mut self.out);
    }

    pub fn message(&mut self, from: Address, message: impl Into<Message>) {
        self.event(Event::Message { from, message: message.into() });
    }

    /// Buffers of stream `fetch` from the shuffle of `from`.
    pub fn buffers(
        &mut self,
        from: ProcessId,
        fetch: u64,
        sequence: u64,
        buffers: &[(u32, &str)],
        finished: bool,
    ) {
        let buffers = buffers
            .iter()
            .map(|(range, text)| FetchedBuffer { range: *range, bytes: Bytes::from((*text).to_owned()) })
            .collect();
        self.message(Address::shuffle(from), Buffers { fetch, sequence, buffers, finished });
    }

    pub fn disk(&mut self, op: DiskOpId, result: DiskResult) {
        self.event(Event::Disk { op, result });
    }

    /// Lets time pass and the timer fire.
    pub fn timer(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.event(Event::Timer(TimerId(1)));
    }

    pub fn effects(&mut self) -> Vec<Effect> {
        self.out.take()
    }

    /// The messages among the effects since the last look.
    pub fn sent(&mut self) -> Vec<(Address, Message)> {
        let message = |effect| match effect {
            Effect::Send { to, message } => Some((to, message)),
            _ => None,
        };
        self.effects().into_iter().filter_map(message).collect()
    }

    /// The disk operations among the effects since the last look.
    pub fn operations(&mut self) -> Vec<(DiskOpId, DiskOp)> {
        let operation = |effect| match effect {
            Effect::Disk { op, action, .. } => Some((op, action)),
            _ => None,
        };
        self.effects().into_iter().filter_map(operation).collect()
    }

    /// The one disk operation since the last look, completed.
    pub fn complete_one(&mut self) -> DiskOp {
        let mut operations = self.operations();
        assert_eq!(operations.len(), 1, "{operations:?}");
        let (op, action) = operations.remove(0);
        self.disk(op, Ok(DiskOutput::Done));
        action
    }

    /// How the task ended, if it has since the last look.
    pub fn ended(&mut self) -> Option<Result<TaskResult, TaskFailure>> {
        let mut ended = self.sent().into_iter().filter_map(|(to, message)| match message {
            Message::TaskEnded(ended) => {
                assert_eq!((to, ended.attempt), (Address::executor(TM1), attempt()));
                Some(ended.result)
            }
            _ => None,
        });
        let first = ended.next();
        assert!(ended.next().is_none(), "a task ends once");
        first
    }

    pub fn failure(&mut self) -> TaskFailure {
        self.ended().expect("the task should have ended").expect_err("the task should have failed")
    }

    pub fn result(&mut self) -> TaskResult {
        self.ended().expect("the task should have ended").expect("the task should not have failed")
    }
}
