//! The actor of one subtask. It builds the body, polls it whenever something that it may wait for
//! has happened, carries out what it asked for, writes its output, and tells the executor once how
//! it ended. It never decides what happens after that, and it outlives nothing: an executor that
//! wants it gone stops it. (Flink's Task and StreamTask.)

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::actor::{Actor, Boot, DiskOpId, Event, Outbox, Time, TimerId};
use crate::api::Program;
use crate::config::{Configuration, JobArguments, MAX_PARALLELISM};
use crate::disk::DiskResult;
use crate::graph::JobGraph;
use crate::ids::{Address, ProcessId, ResultPartitionId};
use crate::message::{
    Message, PushRefused, ResultPartitionDescriptor, TaskDeploymentDescriptor, TaskEnded, TaskFailure,
    TaskResult,
};

use super::shared::{Shared, SortMemory};
use super::silence::{Awaited, Silence, Verdict};
use super::{TaskBody, TaskContext, guarded};

pub struct TaskActor {
    process: ProcessId,
    task: TaskDeploymentDescriptor,
    config: Configuration,
    graph: GraphSource,
    /// Of the job vertex, once it is known.
    vertex_name: String,
    shared: Rc<RefCell<Shared>>,
    phase: Phase,
    silence: Silence,
}

enum GraphSource {
    Program(Arc<Program>),
    Graph(Arc<JobGraph>),
}

enum Phase {
    NotStarted,
    Running(TaskBody),
    /// The body ran to its end; the rest of its output is being written.
    Flushing,
    /// Waits for writes under way, so that the executor can delete the files for good.
    Failing(TaskFailure),
    Ended,
}

impl TaskActor {
    /// The actor of `task`, whose job `program` has.
    pub fn new(boot: &Boot, program: &Arc<Program>, task: TaskDeploymentDescriptor) -> Self {
        Self::with_source(boot, GraphSource::Program(Arc::clone(program)), task)
    }

    /// The actor of a task of this very graph.
    pub fn with_graph(boot: &Boot, graph: Arc<JobGraph>, task: TaskDeploymentDescriptor) -> Self {
        Self::with_source(boot, GraphSource::Graph(graph), task)
    }

    fn with_source(boot: &Boot, graph: GraphSource, task: TaskDeploymentDescriptor) -> Self {
        let config = boot.config.clone();
        let shared = Shared::new(boot.process, &task, &config);
        Self {
            process: boot.process,
            vertex_name: task.attempt.subtask.vertex.to_string(),
            task,
            graph,
            shared: Rc::new(RefCell::new(shared)),
            phase: Phase::NotStarted,
            silence: Silence::new(config.heartbeat_interval, config.heartbeat_timeout),
            config,
        }
    }

    fn start(&mut self) {
        match self.make_body() {
            Ok(body) => self.phase = Phase::Running(body),
            Err(message) => self.fail(&message, None),
        }
    }

    fn make_body(&mut self) -> Result<TaskBody, String> {
        let job = &self.task.job;
        let graph = match &self.graph {
            GraphSource::Graph(graph) => Arc::clone(graph),
            GraphSource::Program(program) => {
                let arguments = JobArguments { name: job.name.clone(), arguments: job.arguments.clone() };
                guarded(|| program.build(&arguments))
                    .map_err(|panic| format!("building job '{}' panicked: {panic}", job.name))?
                    .map_err(|error| format!("job '{}' cannot be built: {error}", job.name))?
            }
        };
        if graph.fingerprint != job.fingerprint {
            return Err(format!(
                "this process builds job '{}' as graph {:016x}, the JobManager as {:016x}: start all \
                 processes from the same program",
                job.name, graph.fingerprint, job.fingerprint
            ));
        }
        let id = self.task.attempt.subtask.vertex;
        let vertex =
            graph.vertices.get(id.0 as usize).ok_or_else(|| format!("the job has no vertex {id}"))?;
        self.vertex_name.clone_from(&vertex.name);
        if (self.task.inputs.len(), self.task.outputs.len()) != (vertex.inputs.len(), vertex.outputs.len()) {
            return Err(format!(
                "deployed with {} inputs and {} outputs, but the vertex has {} and {}",
                self.task.inputs.len(),
                self.task.outputs.len(),
                vertex.inputs.len(),
                vertex.outputs.len()
            ));
        }
        if let Some(output) = self.task.outputs.iter().find(|output| output.subpartitions > MAX_PARALLELISM) {
            let ResultPartitionDescriptor { partition, subpartitions, .. } = output;
            return Err(format!(
                "partition {partition} has {subpartitions} subpartitions, more than {MAX_PARALLELISM}"
            ));
        }
        self.shared.borrow_mut().sort_memory = SortMemory::of(&graph.configured(&self.config));
        let context = TaskContext::new(Rc::clone(&self.shared));
        guarded(|| vertex.body.start(context)).map_err(|panic| format!("panicked: {panic}"))
    }

    /// Takes in a message; whether the body may have waited for it.
    fn receive(&mut self, from: Address, message: Message) -> bool {
        let attempt = self.task.attempt;
        let mut shared = self.shared.borrow_mut();
        match message {
            Message::Buffers(buffers) => {
                let received = shared.inputs.receive(from, buffers);
                drop(shared);
                if let Err(violation) = received {
                    self.fail(&violation, None);
                }
            }
            Message::PartitionNotFound(answer) if shared.inputs.is_missing(from, answer.fetch) => {
                drop(shared);
                let message = format!("partition {} is not on {}", answer.partition, from.process);
                self.fail(&message, Some(answer.partition));
            }
            Message::DataPushed(answer) => return shared.outputs.pushed(from, answer),
            Message::PushRefused(answer) if shared.outputs.is_refused(from, &answer) => {
                drop(shared);
                let PushRefused { partition, reason, .. } = answer;
                self.fail(&format!("cannot push result partition {partition}: {reason}"), None);
            }
            Message::AddSplit(answer) if answer.attempt == attempt => shared.splits.add(answer.split),
            Message::NoMoreSplits(answer) if answer.attempt == attempt => shared.splits.no_more(),
            _ => return false,
        }
        true
    }

    /// Takes in a finished disk operation; whether the body may have waited for it.
    fn complete(&mut self, op: DiskOpId, result: DiskResult) -> bool {
        let mut shared = self.shared.borrow_mut();
        match shared.outputs.complete(op, &result) {
            Some(written) => {
                drop(shared);
                if let Err(error) = written {
                    self.fail(&format!("cannot write a result partition: {error}"), None);
                }
                true
            }
            None => match shared.operations.get_mut(&op) {
                Some(waiting) => {
                    *waiting = Some(result);
                    true
                }
                None => false,
            },
        }
    }

    /// Lets the body run as far as it can, then carries out what it asked for.
    fn advance(&mut self, now: Time, out: &mut Outbox) {
        if let Phase::Running(body) = &mut self.phase {
            let mut context = Context::from_waker(Waker::noop());
            match guarded(|| body.as_mut().poll(&mut context)) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(()))) => self.finish_body(),
                Ok(Poll::Ready(Err(error))) => {
                    self.fail(&format!("operator '{}': {}", error.operator, error.message), None);
                }
                Err(panic) => self.fail(&format!("panicked: {panic}"), None),
            }
        }
        let shared = Rc::clone(&self.shared);
        let shared = &mut *shared.borrow_mut();
        out.append(&mut shared.out);
        match &self.phase {
            Phase::Running(_) => {
                shared.outputs.start_writes(&mut shared.ids, out);
                self.silence.watch(now, shared.awaited(), out);
            }
            Phase::Flushing => {
                shared.outputs.start_writes(&mut shared.ids, out);
                if shared.outputs.is_written() {
                    self.end(shared, None, out);
                } else {
                    self.silence.watch(now, shared.awaited_of_outputs(), out);
                }
            }
            Phase::Failing(failure) if shared.outputs.is_idle() => {
                let failure = failure.clone();
                self.end(shared, Some(failure), out);
            }
            Phase::NotStarted | Phase::Failing(_) | Phase::Ended => {}
        }
    }

    fn end(&mut self, shared: &mut Shared, failure: Option<TaskFailure>, out: &mut Outbox) {
        self.phase = Phase::Ended;
        self.silence.stop(out);
        shared.outputs.close(&mut shared.ids, out);
        let result = match failure {
            Some(failure) => Err(failure),
            None => Ok(TaskResult {
                metrics: shared.metrics(),
                partitions: shared.outputs.take_partitions(),
                committables: std::mem::take(&mut shared.committables),
                accumulators: shared.take_accumulators(),
            }),
        };
        let attempt = self.task.attempt;
        out.send(Address::executor(self.process), TaskEnded { attempt, result });
    }

    fn finish_body(&mut self) {
        match self.drop_body(Phase::Flushing) {
            Ok(()) => {
                let shared = &mut *self.shared.borrow_mut();
                shared.inputs.close(&mut shared.out);
                shared.outputs.seal_all();
            }
            Err(panic) => self.fail(&format!("panicked at its end: {panic}"), None),
        }
    }

    fn fail(&mut self, message: &str, missing: Option<ResultPartitionId>) {
        if matches!(self.phase, Phase::Failing(_) | Phase::Ended) {
            return;
        }
        let attempt = self.task.attempt;
        let message = format!(
            "{} (subtask {}, attempt {attempt}): {message}",
            self.vertex_name, attempt.subtask.subtask
        );
        // A destructor that panics, too, has nothing to add.
        let _ = self.drop_body(Phase::Failing(TaskFailure { message, missing }));
        let shared = &mut *self.shared.borrow_mut();
        shared.inputs.close(&mut shared.out);
        shared.outputs.abandon();
    }

    fn drop_body(&mut self, next: Phase) -> Result<(), String> {
        let before = std::mem::replace(&mut self.phase, next);
        guarded(move || drop(before))
    }

    fn silence_fired(&mut self, now: Time, timer: TimerId, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Running(_) | Phase::Flushing) {
            // Nobody waits any more, and a stream that was closed must not be opened again.
            return;
        }
        let Some(verdict) = self.silence.fired(now, timer, out) else { return };
        let mut shared = self.shared.borrow_mut();
        let Shared { inputs, outputs, splits, attempt, .. } = &mut *shared;
        match verdict {
            Verdict::Repeat(Awaited::Buffer { stream, .. }) => inputs.reopen(stream, out),
            Verdict::Repeat(Awaited::Push { output, .. }) => outputs.repeat(output, out),
            // A lost JobManager is the executor's business.
            Verdict::Repeat(Awaited::Split { .. }) | Verdict::Lost(Awaited::Split { .. }) => {
                splits.request(*attempt, out);
            }
            Verdict::Lost(Awaited::Buffer { .. }) => {
                let awaited = inputs.awaited();
                drop(shared);
                if let Some((partition, location)) = awaited {
                    let message = format!("no answer from {location}, which holds partition {partition}");
                    self.fail(&message, Some(partition));
                }
            }
            Verdict::Lost(Awaited::Push { output, .. }) => {
                let keeper = outputs.keeper(output);
                drop(shared);
                if let Some((partition, service)) = keeper {
                    let message =
                        format!("no answer from {service}, to which partition {partition} is pushed");
                    self.fail(&message, None);
                }
            }
        }
    }
}

impl Drop for TaskActor {
    fn drop(&mut self) {
        // A body that is stopped may panic in a destructor; that must not end the process.
        let _ = self.drop_body(Phase::Ended);
    }
}

/// Without the job's code and what all tasks of a job have in common.
impl fmt::Debug for TaskActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match &self.phase {
            Phase::NotStarted => "not started",
            Phase::Running(_) => "running",
            Phase::Flushing => "flushing",
            Phase::Failing(_) => "failing",
            Phase::Ended => "ended",
        };
        f.debug_struct("TaskActor")
            .field("process", &self.process)
            .field("vertex", &self.vertex_name)
            .field("task", &self.task)
            .field("phase", &phase)
            .field("silence", &self.silence)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl Actor for TaskActor {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        let started = !matches!(self.phase, Phase::NotStarted);
        let may_go_on = match event {
            Event::Start if !started => {
                self.start();
                true
            }
            Event::Start => false,
            _ if !started || matches!(self.phase, Phase::Ended) => false,
            Event::Message { from, message } => self.receive(from, message),
            Event::Timer(timer) => {
                self.silence_fired(now, timer, out);
                matches!(self.phase, Phase::Failing(_))
            }
            Event::Disk { op, result } => self.complete(op, result),
        };
        if may_go_on {
            self.advance(now, out);
        }
    }
}
