//! Toy processes over real sockets and files.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;
use crate::actor::{DiskOpId, Event, ExitStatus, Outbox, Purpose, Time, TimerId};
use crate::config::Configuration;
use crate::disk::{DiskOp, Volume};
use crate::ids::{Address, ProcessId, SessionId};
use crate::message::{AddCredit, Message};

/// The JobManager answers every number; the TaskManager sends the next one when it got an answer,
/// or the same one again when it got none, and ends after `ROUNDS`.
struct Toys;

const ROUNDS: u64 = 300;
const BURST: u64 = 20;

impl Engine for Toys {
    fn actors(&self, boot: &Boot) -> Vec<(ActorId, Box<dyn Actor>)> {
        match boot.process {
            ProcessId::JobManager => vec![(ActorId::Master, Box::new(Echo))],
            ProcessId::TaskManager(_) => vec![(ActorId::Executor, Box::new(Caller::default()))],
            _ => Vec::new(),
        }
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        Box::new(Echo)
    }
}

struct Echo;

impl Actor for Echo {
    fn handle(&mut self, _now: Time, event: Event, out: &mut Outbox) {
        if let Event::Message { from, message } = event {
            out.send(from, message);
        }
    }
}

#[derive(Default)]
struct Caller {
    round: u64,
    /// Answers of this round so far: they must come in order.
    answers: u64,
}

impl Caller {
    fn call(&mut self, now: Time, out: &mut Outbox) {
        self.answers = 0;
        for credit in 0..BURST {
            out.send(Address::MASTER, AddCredit { fetch: self.round, credit: credit as u32 });
        }
        out.set_timer(TimerId(1), now + Duration::from_millis(300));
    }
}

impl Actor for Caller {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            Event::Start => {
                let path = "toy".to_owned();
                out.disk(DiskOpId(1), Volume::Local, Purpose::Spill, DiskOp::CreateNew { path });
            }
            Event::Disk { result, .. } => {
                assert!(result.is_ok());
                self.call(now, out);
            }
            Event::Message { message: Message::AddCredit(answer), .. } if answer.fetch == self.round => {
                self.answers = if u64::from(answer.credit) == self.answers { self.answers + 1 } else { 0 };
                if self.answers == BURST {
                    self.round += 1;
                    if self.round == ROUNDS {
                        out.exit(ExitStatus::Success);
                    } else {
                        self.call(now, out);
                    }
                }
            }
            Event::Timer(_) => self.call(now, out),
            Event::Message { .. } => {}
        }
    }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("revenant-runtime-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(
    process: ProcessId,
    session: u64,
    directory: &Directory,
    high_availability: Option<SocketAddr>,
) -> ProcessOptions {
    let root = directory.0.join(format!("{process}-{session}"));
    ProcessOptions {
        boot: Boot {
            process,
            session: SessionId(session),
            config: Configuration::default(),
            volumes: Vec::new(),
        },
        engine: Arc::new(Toys),
        volumes: BTreeMap::from([(Volume::Local, root)]),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        high_availability,
        patience: Duration::from_secs(5),
        record: Some(directory.0.join("record")),
        observer: None,
    }
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_find_each_other_and_messages_survive_a_new_session() {
    let directory = Directory::new("toys");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    let at = Some(ha.endpoint());
    let first = RunningProcess::start(options(ProcessId::JobManager, 2, &directory, at)).await.unwrap();
    let caller = RunningProcess::start(options(ProcessId::TaskManager(1), 3, &directory, at)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(first);
    let second = RunningProcess::start(options(ProcessId::JobManager, 4, &directory, at)).await.unwrap();
    assert_eq!(timeout(LONG, caller.ended()).await.expect("must end"), ExitStatus::Success);
    caller.shut_down().await;
    second.shut_down().await;
    ha.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_replays_to_the_same_effects_even_if_its_tail_is_torn() {
    let directory = Directory::new("recording");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    let at = Some(ha.endpoint());
    let echo = RunningProcess::start(options(ProcessId::JobManager, 2, &directory, at)).await.unwrap();
    let caller = RunningProcess::start(options(ProcessId::TaskManager(1), 3, &directory, at)).await.unwrap();
    assert_eq!(timeout(LONG, caller.ended()).await.expect("must end"), ExitStatus::Success);
    let path = directory.0.join("record/task-manager-1-0000000000000003/executor.rec");
    let whole = recording::read(&path).unwrap();
    assert_eq!(whole.origin.actor, ActorId::Executor);
    assert!(whole.steps.len() as u64 > ROUNDS * BURST);
    whole.replay(&mut Caller::default()).unwrap();
    // Another actor has other effects.
    assert_eq!(whole.replay(&mut Echo).unwrap_err().step, 0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 3);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(recording::read(&path).unwrap().steps.len(), whole.steps.len() - 1);
    bytes[200] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(recording::read(&path).is_err());
    caller.shut_down().await;
    echo.shut_down().await;
    ha.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_at_the_port_is_turned_away_and_disturbs_nobody() {
    let directory = Directory::new("stranger");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0, 0, 0, 3, 1, 2, 3]] {
        let mut stream = tokio::net::TcpStream::connect(ha.endpoint()).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        let mut rest = Vec::new();
        let read = timeout(LONG, stream.read_to_end(&mut rest)).await.expect("must be closed");
        assert!(read.is_err() || rest.is_empty());
    }
    let at = Some(ha.endpoint());
    let echo = RunningProcess::start(options(ProcessId::JobManager, 2, &directory, at)).await.unwrap();
    echo.shut_down().await;
    ha.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses_are_errors_that_name_them() {
    let directory = Directory::new("addresses");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    let mut taken = options(ProcessId::JobManager, 2, &directory, Some(ha.endpoint()));
    taken.listen = ha.endpoint();
    let error = RunningProcess::start(taken).await.err().unwrap().to_string();
    assert!(error.contains(&format!("cannot listen on {}", ha.endpoint())), "{error}");
    // A process that is reached, but is not the high-availability process.
    let other = RunningProcess::start(options(ProcessId::JobManager, 3, &directory, Some(ha.endpoint())))
        .await
        .unwrap();
    let mut wrong = options(ProcessId::TaskManager(1), 4, &directory, Some(other.endpoint()));
    wrong.patience = Duration::ZERO;
    let error = RunningProcess::start(wrong).await.err().unwrap().to_string();
    assert!(error.contains("this is job-manager, not high-availability"), "{error}");
    other.shut_down().await;
    ha.shut_down().await;
}

struct Panics;

impl Engine for Panics {
    fn actors(&self, _boot: &Boot) -> Vec<(ActorId, Box<dyn Actor>)> {
        struct Panicking;
        impl Actor for Panicking {
            fn handle(&mut self, _now: Time, _event: Event, _out: &mut Outbox) {
                panic!("a bug");
            }
        }
        vec![(ActorId::Master, Box::new(Panicking))]
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        Box::new(Echo)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_an_actor_ends_the_process_with_its_message() {
    let directory = Directory::new("panic");
    let mut options = options(ProcessId::HighAvailability, 1, &directory, None);
    options.engine = Arc::new(Panics);
    let process = RunningProcess::start(options).await.unwrap();
    let end = timeout(LONG, process.ended()).await.expect("must end");
    assert_eq!(end, ExitStatus::Failure("actor master panicked: a bug".to_owned()));
}
