//! Runs one task alone: its actor gets encoded records from memory, as fast as it takes them, and its
//! disk operations are carried out on the spot. What is measured is the operator with its decoding,
//! and neither network nor scheduling.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use revenant::actor::{Actor, Boot, Effect, Event, Outbox, Time};
use revenant::config::Configuration;
use revenant::disk::{DiskOp, DiskOutput};
use revenant::graph::JobGraph;
use revenant::ids::{
    Address, ExecutionAttemptId, ExecutionVertexId, FencingToken, IntermediateDataSetId, JobVertexId,
    ProcessId, ResultPartitionId, SessionId,
};
use revenant::message::{
    Buffers, FetchedBuffer, IndexRange, InputGateDescriptor, JobRecord, Message, ShuffleDescriptor,
    TaskDeploymentDescriptor,
};
use revenant::task::TaskActor;

use crate::operators::DIGEST;

const WORKER: ProcessId = ProcessId::TaskManager(1);

/// What the second vertex of the graph makes of these buffers: the digest of its sink.
pub fn run(graph: &Arc<JobGraph>, config: &Configuration, buffers: &[Bytes], directory: &Path) -> i64 {
    let attempt = |vertex: u32| ExecutionAttemptId {
        subtask: ExecutionVertexId::new(JobVertexId(vertex), 0),
        epoch: FencingToken(1),
        number: 1,
    };
    let partition = ResultPartitionId { data_set: IntermediateDataSetId(0), producer: attempt(0) };
    let task = TaskDeploymentDescriptor {
        token: FencingToken(1),
        job_manager: ProcessId::JOB_MANAGER,
        job: Arc::new(JobRecord {
            name: graph.name.clone(),
            arguments: vec![],
            fingerprint: graph.fingerprint,
        }),
        attempt: attempt(1),
        parallelism: 1,
        inputs: vec![InputGateDescriptor {
            data_set: partition.data_set,
            partitions: Arc::new(vec![ShuffleDescriptor { partition, location: WORKER }]),
            subpartitions: IndexRange::new(0, 0),
        }],
        outputs: vec![],
    };
    let boot = Boot { process: WORKER, session: SessionId(1), config: config.clone(), volumes: vec![] };
    let mut actor = TaskActor::with_graph(&boot, Arc::clone(graph), task);
    let mut world = World { buffers: buffers.iter(), sent: 0, files: BTreeMap::new(), directory };
    let mut inbox = VecDeque::from([Event::Start]);
    let mut out = Outbox::new();
    while let Some(event) = inbox.pop_front() {
        actor.handle(Time(0), event, &mut out);
        for effect in out.drain() {
            match effect {
                Effect::Send { message: Message::TaskEnded(ended), .. } => {
                    let result = ended.result.expect("a task of a benchmark does not fail");
                    return result.accumulators[DIGEST];
                }
                effect => inbox.extend(world.answer(effect)),
            }
        }
    }
    panic!("the task waits for what does not come");
}

struct World<'a> {
    buffers: std::slice::Iter<'a, Bytes>,
    sent: u64,
    files: BTreeMap<String, File>,
    directory: &'a Path,
}

impl World<'_> {
    fn answer(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Disk { op, action, .. } => {
                let output = self.disk(action).expect("the disk of a benchmark does not fail");
                Some(Event::Disk { op, result: Ok(output) })
            }
            Effect::Send { message: Message::OpenFetch(open), .. } => {
                Some(self.serve(open.fetch, open.credit))
            }
            Effect::Send { message: Message::AddCredit(add), .. } => Some(self.serve(add.fetch, add.credit)),
            _ => None,
        }
    }

    fn serve(&mut self, fetch: u64, credit: u32) -> Event {
        let next = self.buffers.by_ref().take(credit as usize).cloned();
        let buffers: Vec<FetchedBuffer> = next.map(|bytes| FetchedBuffer { range: 0, bytes }).collect();
        let (sequence, finished) = (self.sent, self.buffers.len() == 0);
        self.sent += buffers.len() as u64;
        let message = Buffers { fetch, sequence, buffers, finished }.into();
        Event::Message { from: Address::shuffle(WORKER), message }
    }

    fn disk(&mut self, action: DiskOp) -> std::io::Result<DiskOutput> {
        let place = |path: &str| self.directory.join(path.replace('/', "-"));
        match action {
            DiskOp::CreateNew { path } => {
                let options = File::options().read(true).write(true).create_new(true).open(place(&path));
                self.files.insert(path, options?);
            }
            DiskOp::Append { path, bytes } => (&self.files[&path]).write_all(&bytes)?,
            DiskOp::ReadRange { path, offset, length } => {
                let mut bytes = vec![0; length as usize];
                self.files[&path].read_exact_at(&mut bytes, offset)?;
                return Ok(DiskOutput::Data(bytes.into()));
            }
            DiskOp::Delete { path } => fs::remove_file(place(&path))?,
            DiskOp::Sync { .. } | DiskOp::SyncDirectory { .. } | DiskOp::Close { .. } => {}
            other => panic!("no operator asks for {}", other.kind()),
        }
        Ok(DiskOutput::Done)
    }
}
