//! A cluster that cannot fail: it runs a job graph vertex by vertex, gives splits to whoever asks
//! next, serves partitions within their readers' credit, and renames committables at the end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use crate::actor::{Actor, Boot, DiskOpId, Effect, Event, Outbox, Time};
use crate::api::{Program, StreamExecutionEnvironment};
use crate::config::{Configuration, JobArguments, MemorySize};
use crate::coordinator::SplitEnumeratorFactory;
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput, Volume};
use crate::graph::{JobGraph, JobVertex};
use crate::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, ProcessId,
    ResultPartitionId, SessionId,
};
use crate::message::{
    AddSplit, Buffers, FetchedBuffer, FinishedPartition, IndexRange, InputGateDescriptor, JobRecord, Message,
    NoMoreSplits, OpenFetch, ResultPartitionDescriptor, ShuffleDescriptor, SourceSplit,
    TaskDeploymentDescriptor, TaskFailure, TaskResult,
};
use crate::scheduler::{Input, input_ranges, subpartition_count};
use crate::task::TaskActor;

const WORKER: ProcessId = ProcessId::TaskManager(1);

pub struct Cluster {
    graph: Arc<JobGraph>,
    arguments: Vec<(String, String)>,
    config: Configuration,
    parallelism: Vec<u32>,
    disk: BTreeMap<(Volume, String), Vec<u8>>,
    partitions: BTreeMap<(IntermediateDataSetId, u32), FinishedPartition>,
    outcome: Outcome,
    /// Called with each vertex's partitions before the next vertex runs.
    meddle: Option<fn(&mut Vec<u8>)>,
}

/// What a job left.
#[derive(Default)]
pub struct Outcome {
    /// Committed files by path.
    pub files: BTreeMap<String, String>,
    /// The same, for those that are no text.
    pub bytes: BTreeMap<String, Vec<u8>>,
    pub results: BTreeMap<ExecutionVertexId, TaskResult>,
    /// Streams that their readers closed before their end.
    pub closed_early: usize,
    /// Runs that sorts wrote.
    pub spills: usize,
    /// Paths of all pending files, in the order of their tasks' ends.
    pub pending: Vec<String>,
}

impl Outcome {
    /// The lines of `<directory>/part-<subtask>.csv` without the header.
    pub fn rows(&self, directory: &str, subtask: u32) -> Vec<String> {
        let path = format!("{directory}/part-{subtask:05}.csv");
        let text = self.files.get(&path).unwrap_or_else(|| panic!("no {path} in {:?}", self.files.keys()));
        text.lines().skip(1).map(ToOwned::to_owned).collect()
    }
}

struct Running {
    actor: TaskActor,
    inbox: VecDeque<Event>,
    streams: BTreeMap<u64, Stream>,
    ended: Option<Result<TaskResult, TaskFailure>>,
}

struct Stream {
    buffers: VecDeque<FetchedBuffer>,
    sent: u64,
}

impl Cluster {
    /// Runs what `describe` describes, with buffers of 64 bytes and parallelism 2 where none is said.
    pub fn run(describe: impl FnOnce(&mut StreamExecutionEnvironment)) -> Outcome {
        Self::new(describe).finish().unwrap_or_else(|failure| panic!("{}", failure.message))
    }

    pub fn new(describe: impl FnOnce(&mut StreamExecutionEnvironment)) -> Self {
        let mut env = StreamExecutionEnvironment::new();
        describe(&mut env);
        Self::of_graph(Arc::new(env.job_graph("test").unwrap()), vec![])
    }

    pub fn of_program(program: &Program, job: JobArguments) -> Self {
        Self::of_graph(program.build(&job).unwrap(), job.arguments)
    }

    fn of_graph(graph: Arc<JobGraph>, arguments: Vec<(String, String)>) -> Self {
        let parallelism = graph.vertices.iter().map(|vertex| vertex.parallelism.unwrap_or(2)).collect();
        let config = Configuration {
            segment_size: MemorySize(64),
            buffers_per_gate: 3,
            max_parallelism: 2,
            ..Configuration::default()
        };
        Self {
            graph,
            arguments,
            config,
            parallelism,
            disk: BTreeMap::new(),
            partitions: BTreeMap::new(),
            outcome: Outcome::default(),
            meddle: None,
        }
    }

    pub fn segment_size(mut self, bytes: u64) -> Self {
        self.config.segment_size = MemorySize(bytes);
        self
    }

    /// Sets an option of the cluster.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.config.set(key, value).unwrap();
        self
    }

    /// Changes the content of every partition's file between the vertices.
    pub fn meddle(mut self, meddle: fn(&mut Vec<u8>)) -> Self {
        self.meddle = Some(meddle);
        self
    }

    /// Puts a file on the input volume.
    pub fn with_input(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.disk.insert((Volume::Input, path.to_owned()), bytes.into());
        self
    }

    /// The splits of a source, from the files that it asks for.
    fn splits(&self, source: &dyn SplitEnumeratorFactory) -> Vec<SourceSplit> {
        let files = source.paths().into_iter().map(|path| DirectoryEntry {
            length: self.disk[&(Volume::Input, path.clone())].len() as u64,
            path,
        });
        let files: Vec<DirectoryEntry> = files.collect();
        if files.is_empty() { source.splits() } else { source.splits_of(&files) }
    }

    /// Runs the job to its end or to the first failure of a task.
    pub fn finish(mut self) -> Result<Outcome, TaskFailure> {
        let graph = Arc::clone(&self.graph);
        for vertex in &graph.vertices {
            self.run_vertex(vertex)?;
            if let Some(meddle) = self.meddle {
                let files = self.disk.iter_mut().filter(|((volume, _), _)| *volume == Volume::Local);
                files.for_each(|(_, file)| meddle(file));
            }
        }
        for result in self.outcome.results.values() {
            for committable in &result.committables {
                let pending = self.disk.remove(&(Volume::Output, committable.pending.clone())).unwrap();
                self.outcome.pending.push(committable.pending.clone());
                let file = String::from_utf8_lossy(&pending).into_owned();
                self.outcome.bytes.insert(committable.target.clone(), pending);
                let earlier = self.outcome.files.insert(committable.target.clone(), file);
                assert!(earlier.is_none(), "{} is written twice", committable.target);
            }
        }
        let left = self.disk.keys().filter(|(volume, _)| *volume == Volume::Scratch).count();
        assert_eq!(left, 0, "a sort leaves no file");
        Ok(self.outcome)
    }

    fn run_vertex(&mut self, vertex: &JobVertex) -> Result<(), TaskFailure> {
        let parallelism = self.parallelism[vertex.id.0 as usize];
        let mut splits: VecDeque<SourceSplit> =
            vertex.source.as_ref().map_or_else(Vec::new, |source| self.splits(source.as_ref())).into();
        let mut tasks: Vec<Running> = (0..parallelism).map(|subtask| self.deploy(vertex, subtask)).collect();
        // One event for each task in turn, so that they share the splits.
        while tasks.iter().any(|task| !task.inbox.is_empty()) {
            for task in &mut tasks {
                let Some(event) = task.inbox.pop_front() else { continue };
                let mut out = Outbox::new();
                task.actor.handle(Time(0), event, &mut out);
                for effect in out.take() {
                    self.carry_out(effect, task, &mut splits);
                }
            }
        }
        for (subtask, task) in (0..).zip(tasks) {
            let result = task.ended.unwrap_or_else(|| panic!("{} {subtask} hangs", vertex.name))?;
            for partition in &result.partitions {
                let key = (partition.partition.data_set, subtask);
                self.partitions.insert(key, partition.clone());
            }
            self.outcome.results.insert(ExecutionVertexId::new(vertex.id, subtask), result);
        }
        Ok(())
    }

    fn attempt(vertex: &JobVertex, subtask: u32) -> ExecutionAttemptId {
        let subtask = ExecutionVertexId::new(vertex.id, subtask);
        ExecutionAttemptId { subtask, epoch: FencingToken(3), number: 4 }
    }

    fn input(&self, data_set: IntermediateDataSetId) -> Input {
        let edge = self.graph.edge(data_set);
        let partitions = self.parallelism[edge.producer.0 as usize];
        let subpartitions = subpartition_count(&self.graph, data_set, partitions, &self.config);
        Input { partitioner: edge.partitioner, partitions, subpartitions }
    }

    fn deploy(&self, vertex: &JobVertex, subtask: u32) -> Running {
        let inputs: Vec<Input> = vertex.inputs.iter().map(|&data_set| self.input(data_set)).collect();
        let parallelism = self.parallelism[vertex.id.0 as usize];
        let ranges = &input_ranges(&inputs, parallelism).unwrap()[subtask as usize];
        let gate = |(&data_set, &(partitions, subpartitions)): (&IntermediateDataSetId, &(IndexRange, _))| {
            let at = |index| ShuffleDescriptor {
                partition: self.partitions[&(data_set, index)].partition,
                location: WORKER,
            };
            InputGateDescriptor {
                data_set,
                partitions: Arc::new(partitions.indices().map(at).collect()),
                subpartitions,
            }
        };
        let attempt = Self::attempt(vertex, subtask);
        let output = |&data_set: &IntermediateDataSetId| ResultPartitionDescriptor {
            partition: ResultPartitionId { data_set, producer: attempt },
            subpartitions: self.input(data_set).subpartitions,
            location: WORKER,
        };
        let task = TaskDeploymentDescriptor {
            token: FencingToken(3),
            job_manager: ProcessId::JOB_MANAGER,
            job: Arc::new(JobRecord {
                name: self.graph.name.clone(),
                arguments: self.arguments.clone(),
                fingerprint: self.graph.fingerprint,
            }),
            attempt,
            parallelism,
            inputs: vertex.inputs.iter().zip(ranges).map(gate).collect(),
            outputs: vertex.outputs.iter().map(output).collect(),
        };
        let boot =
            Boot { process: WORKER, session: SessionId(1), config: self.config.clone(), volumes: vec![] };
        Running {
            actor: TaskActor::with_graph(&boot, Arc::clone(&self.graph), task),
            inbox: VecDeque::from([Event::Start]),
            streams: BTreeMap::new(),
            ended: None,
        }
    }

    fn carry_out(&mut self, effect: Effect, task: &mut Running, splits: &mut VecDeque<SourceSplit>) {
        match effect {
            Effect::Disk { op, volume, action, .. } => self.disk(op, volume, action, task),
            Effect::Send { message, .. } => match message {
                Message::RequestSplit(request) => {
                    let attempt = request.attempt;
                    let message = match splits.pop_front() {
                        Some(split) => AddSplit { attempt, split }.into(),
                        None => NoMoreSplits { attempt }.into(),
                    };
                    task.inbox.push_back(Event::Message { from: Address::MASTER, message });
                }
                Message::OpenFetch(fetch) => self.open(&fetch, task),
                Message::AddCredit(credit) => serve(task, credit.fetch, credit.credit),
                Message::CloseFetch(close) => {
                    task.streams.remove(&close.fetch);
                    self.outcome.closed_early += 1;
                }
                Message::TaskEnded(ended) => task.ended = Some(ended.result),
                other => panic!("a task does not send {}", other.kind()),
            },
            Effect::SetTimer { .. } | Effect::CancelTimer { .. } | Effect::Note(_) => {}
            other => panic!("a task does not ask for {}", other.name()),
        }
    }

    fn disk(&mut self, op: DiskOpId, volume: Volume, action: DiskOp, task: &mut Running) {
        match action {
            DiskOp::CreateNew { path } => {
                self.outcome.spills += usize::from(volume == Volume::Scratch);
                let earlier = self.disk.insert((volume, path), Vec::new());
                assert!(earlier.is_none(), "a file is made once");
            }
            DiskOp::Append { path, bytes } => {
                self.disk.get_mut(&(volume, path)).unwrap().extend_from_slice(&bytes);
            }
            DiskOp::ReadRange { path, offset, length } => {
                let file = &self.disk[&(volume, path)];
                let end = file.len().min((offset + length) as usize);
                let bytes = Bytes::copy_from_slice(&file[end.min(offset as usize)..end]);
                let result = Ok(DiskOutput::Data(bytes));
                return task.inbox.push_back(Event::Disk { op, result });
            }
            DiskOp::Sync { .. } | DiskOp::SyncDirectory { .. } | DiskOp::Close { .. } => {}
            DiskOp::Delete { path } => {
                self.disk.remove(&(volume, path)).expect("a file is deleted once");
            }
            other => panic!("no body asks for {}", other.kind()),
        }
        task.inbox.push_back(Event::Disk { op, result: Ok(DiskOutput::Done) });
    }

    fn open(&self, fetch: &OpenFetch, task: &mut Running) {
        let mut buffers = VecDeque::new();
        for (range, ranges) in (0..).zip(&fetch.ranges) {
            let partition = &self.partitions[&(ranges.partition.data_set, ranges.partition.index())];
            let file = self.disk.get(&(Volume::Local, partition.path.clone()));
            for subpartition in ranges.subpartitions.indices() {
                for buffer in partition.buffers.iter().filter(|b| b.subpartition == subpartition) {
                    let start = buffer.offset as usize;
                    let bytes = &file.unwrap()[start..start + buffer.length as usize];
                    buffers.push_back(FetchedBuffer { range, bytes: Bytes::copy_from_slice(bytes) });
                }
            }
        }
        task.streams.insert(fetch.fetch, Stream { buffers, sent: 0 });
        serve(task, fetch.fetch, fetch.credit);
    }
}

fn serve(task: &mut Running, fetch: u64, credit: u32) {
    let Some(stream) = task.streams.get_mut(&fetch) else { return };
    let count = stream.buffers.len().min(credit as usize);
    let buffers: Vec<FetchedBuffer> = stream.buffers.drain(..count).collect();
    let (sequence, finished) = (stream.sent, stream.buffers.is_empty());
    stream.sent += count as u64;
    let message = Buffers { fetch, sequence, buffers, finished }.into();
    task.inbox.push_back(Event::Message { from: Address::shuffle(WORKER), message });
}
