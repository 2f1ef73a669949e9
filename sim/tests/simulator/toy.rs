//! A small cluster with the shape of the real one. The master has the TaskManagers write files in
//! rounds, has its writer log each round on the JobManager's own disk, and at the end renames a
//! result and tells the client. It survives any single crash.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use revenant::actor::{Actor, Boot, DiskOpId, Event, ExitStatus, Outbox, Purpose, Time, TimerId};
use revenant::api::{JobError, JobParameters, Program, StreamExecutionEnvironment};
use revenant::connectors::{CsvSink, NumberSequenceSource};
use revenant::disk::{DiskOp, DiskOutput, Volume};
use revenant::ids::{ActorId, Address, FencingToken, ProcessId};
use revenant::message::{
    FlushJobEvents, JobEventsDurable, JobOutcome, JobResult, JobStatus, JobStatusReport, LeaderChanged,
    Message, RecordingStatus, RequestJobStatus,
};
use revenant::note::Note;
use revenant_sim::run::{Engine, RunOptions};
use revenant_sim::scenario::Scenario;

const WORKERS: u32 = 3;
const LOG: &str = "job-events/log";

/// The toy's job is never run; it only stands for one.
pub fn program() -> Arc<Program> {
    fn toy(environment: &mut StreamExecutionEnvironment, parameters: &JobParameters) -> Result<(), JobError> {
        parameters.get_optional::<String>("mode", "how the toy behaves", |_| true)?;
        parameters.get_optional::<u64>("rounds", "a whole number", |_| true)?;
        let numbers = environment.from_source("numbers", NumberSequenceSource::new(0, 1, 1));
        numbers.map(|number| Row { number }).sink_to(CsvSink::new("toy"));
        Ok(())
    }

    Arc::new(Program::new().register("toy", "Stands for a job.", toy))
}

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Row {
    number: i64,
}

pub fn options() -> RunOptions {
    RunOptions { engine: Engine { actors, task_actor: |_, _, _| unreachable!() }, ..RunOptions::default() }
}

/// The toy's scenario with more of it.
pub fn scenario(more: &str) -> Scenario {
    let text = format!("[job]\nname = 'toy'\n{more}");
    let scenario = Scenario::parse("toy", &text).unwrap_or_else(|error| panic!("{error}"));
    scenario.check(&program()).unwrap_or_else(|error| panic!("{error}"));
    scenario
}

fn actors(boot: &Boot, _: &Arc<Program>) -> Vec<(ActorId, Box<dyn Actor>)> {
    let argument = |name| {
        let arguments = boot.config.job.iter().flat_map(|job| &job.arguments);
        arguments.filter(|(argument, _)| argument == name).map(|(_, value)| value.clone()).next()
    };
    let mode = argument("mode");
    let rounds = argument("rounds").map_or(8, |rounds| rounds.parse().unwrap());
    match boot.process {
        ProcessId::HighAvailability | ProcessId::ShuffleService(_) => vec![],
        ProcessId::Client => vec![(ActorId::Client, Box::new(Client))],
        ProcessId::JobManager(_) => vec![
            (ActorId::Master, Box::new(Master { rounds, mode, done: 0, waiting: 0, finishing: 0 })),
            (ActorId::Writer, Box::new(Writer)),
        ],
        ProcessId::TaskManager(number) => vec![(ActorId::Executor, Box::new(Executor { number }))],
    }
}

#[derive(Debug)]
struct Client;

impl Actor for Client {
    fn handle(&mut self, _: Time, event: Event, out: &mut Outbox) {
        if let Event::Message { message: Message::LeaderChanged(changed), .. } = event {
            out.exit(match changed.result {
                Some(JobResult::Clean(JobOutcome::Failed { reason })) => ExitStatus::Failure(reason),
                _ => ExitStatus::Success,
            });
        }
    }
}

#[derive(Debug)]
struct Executor {
    number: u32,
}

impl Actor for Executor {
    fn handle(&mut self, _: Time, event: Event, out: &mut Outbox) {
        let path = format!("part-{}", self.number);
        match event {
            Event::Message { message: Message::RequestJobStatus(_), .. } => {
                out.disk(DiskOpId(1), Volume::Output, Purpose::Sink, DiskOp::CreateNew { path });
            }
            Event::Disk { op: DiskOpId(1), .. } => {
                out.disk(DiskOpId(2), Volume::Output, Purpose::Sink, DiskOp::Sync { path });
            }
            Event::Disk { op: DiskOpId(2), .. } => {
                let report = JobStatusReport {
                    status: JobStatus::Running,
                    total: 1,
                    finished: 1,
                    running: 0,
                    recording: RecordingStatus::Off,
                };
                out.send(Address::MASTER, report);
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Writer;

impl Actor for Writer {
    fn handle(&mut self, _: Time, event: Event, out: &mut Outbox) {
        let disk =
            |out: &mut Outbox, op, action| out.disk(DiskOpId(op), Volume::Local, Purpose::JobEvent, action);
        let path = LOG.to_owned();
        match event {
            Event::Start => disk(out, 1, DiskOp::CreateNew { path }),
            Event::Disk { op: DiskOpId(1), .. } => {
                disk(out, 2, DiskOp::SyncDirectory { path: "job-events".to_owned() });
            }
            Event::Disk { op: DiskOpId(2), .. } => {
                disk(out, 3, DiskOp::ReadRange { path, offset: 0, length: 1000 });
            }
            Event::Disk { op: DiskOpId(3), result: Ok(DiskOutput::Data(bytes)) } => {
                out.send(
                    Address::MASTER,
                    JobEventsDurable { token: FencingToken::default(), sequence: bytes.len() as u64 },
                );
            }
            Event::Message { message: Message::FlushJobEvents(_), .. } => {
                disk(out, 4, DiskOp::Append { path, bytes: Bytes::from_static(b"x") });
            }
            Event::Disk { op: DiskOpId(4), .. } => disk(out, 5, DiskOp::Sync { path }),
            Event::Disk { op: DiskOpId(5), .. } => {
                disk(out, 3, DiskOp::ReadRange { path, offset: 0, length: 1000 });
            }
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Master {
    rounds: u64,
    mode: Option<String>,
    done: u64,
    waiting: u32,
    finishing: u64,
}

impl Master {
    fn round(&mut self, now: Time, out: &mut Outbox) {
        self.waiting = WORKERS;
        for worker in 1..=WORKERS {
            out.send(Address::executor(ProcessId::TaskManager(worker)), RequestJobStatus {});
        }
        out.set_timer(TimerId(1), now + Duration::from_secs(5));
    }

    fn finish(&mut self, out: &mut Outbox) {
        let (from, to) = ("pending/result".to_owned(), "result".to_owned());
        let steps = [
            DiskOp::Delete { path: from.clone() },
            DiskOp::CreateNew { path: from.clone() },
            DiskOp::Append { path: from.clone(), bytes: Bytes::from_static(b"done") },
            DiskOp::Sync { path: from.clone() },
            DiskOp::Rename { from, to },
            DiskOp::SyncDirectory { path: String::new() },
        ];
        if let Some(step) = steps.into_iter().nth(self.finishing as usize) {
            self.finishing += 1;
            out.disk(DiskOpId(10), Volume::Output, Purpose::Sink, step);
        } else {
            let outcome = match self.mode.as_deref() {
                Some("fail") => JobOutcome::Failed { reason: "as told".to_owned() },
                _ => JobOutcome::Finished { committed: 1, accumulators: [].into() },
            };
            let client = Address::new(ProcessId::Client, ActorId::Client);
            out.send(client, LeaderChanged { leader: None, result: Some(JobResult::Clean(outcome)) });
            if self.mode.as_deref() == Some("late panic") {
                return out.send(Address::executor(ProcessId::TaskManager(1)), RequestJobStatus {});
            }
            out.exit(ExitStatus::Success);
        }
    }
}

impl Actor for Master {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Message { message: Message::JobEventsDurable(durable), .. } => {
                self.done = durable.sequence;
                out.note(Note::Warning { text: format!("round {}", self.done) });
                match self.mode.as_deref() {
                    Some("panic") if self.done == 3 => panic!("round three"),
                    Some("exit") if self.done == 3 && now < Time(1_000_000_000) => {
                        out.exit(ExitStatus::Failure("once".to_owned()));
                    }
                    Some("stuck") if self.done == 3 => out.cancel_timer(TimerId(1)),
                    Some("idle") if self.done == 3 => {
                        out.set_timer(TimerId(1), now + Duration::from_secs(9999));
                    }
                    _ if self.done >= self.rounds => {
                        out.cancel_timer(TimerId(1));
                        self.finish(out);
                    }
                    _ => self.round(now, out),
                }
            }
            Event::Message { message: Message::JobStatusReport(_), .. } if self.finishing > 0 => {
                assert!(self.mode.as_deref() != Some("late panic"), "too late");
            }
            Event::Message { message: Message::JobStatusReport(_), .. } if self.waiting > 0 => {
                self.waiting -= 1;
                if self.waiting == 0 {
                    out.send(Address::WRITER, FlushJobEvents {});
                }
            }
            Event::Timer(_) => self.round(now, out),
            Event::Disk { op: DiskOpId(10), .. } => self.finish(out),
            _ => {}
        }
    }
}
