//! Toy processes over real sockets and files.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::*;
use crate::actor::{DiskOpId, Event, ExitStatus, Outbox, Purpose, Time, TimerId};
use crate::config::Configuration;
use crate::disk::{DiskOp, Volume};
use crate::ids::{Address, ProcessId, SessionId};
use crate::message::{AddCredit, Message};
use crate::note::Note;

/// The JobManager answers every number; the TaskManager sends the next one when it got an answer,
/// or the same one again when it got none, and ends after `ROUNDS`.
struct Toys;

const ROUNDS: u64 = 300;
const BURST: u64 = 20;

impl Engine for Toys {
    fn actor_ids(&self, process: ProcessId) -> &'static [ActorId] {
        match process {
            ProcessId::JOB_MANAGER => &[ActorId::Master],
            ProcessId::TaskManager(_) => &[ActorId::Executor],
            _ => &[],
        }
    }

    fn actor(&self, _boot: &Boot, id: ActorId) -> Option<Box<dyn Actor>> {
        match id {
            ActorId::Master => Some(Box::new(Echo)),
            ActorId::Executor => Some(Box::new(Caller::default())),
            _ => None,
        }
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        Box::new(Echo)
    }
}

#[derive(Debug)]
struct Echo;

impl Actor for Echo {
    fn handle(&mut self, _now: Time, event: Event, out: &mut Outbox) {
        if let Event::Message { from, message } = event {
            out.send(from, message);
        }
    }
}

#[derive(Debug, Default)]
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
    let first = RunningProcess::start(options(ProcessId::JOB_MANAGER, 2, &directory, at)).await.unwrap();
    let caller = RunningProcess::start(options(ProcessId::TaskManager(1), 3, &directory, at)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(first);
    let second = RunningProcess::start(options(ProcessId::JOB_MANAGER, 4, &directory, at)).await.unwrap();
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
    let echo = RunningProcess::start(options(ProcessId::JOB_MANAGER, 2, &directory, at)).await.unwrap();
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
    let echo = RunningProcess::start(options(ProcessId::JOB_MANAGER, 2, &directory, at)).await.unwrap();
    echo.shut_down().await;
    ha.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses_are_errors_that_name_them() {
    let directory = Directory::new("addresses");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    let mut taken = options(ProcessId::JOB_MANAGER, 2, &directory, Some(ha.endpoint()));
    taken.listen = ha.endpoint();
    let error = RunningProcess::start(taken).await.err().unwrap().to_string();
    assert!(error.contains(&format!("cannot listen on {}", ha.endpoint())), "{error}");
    // A process that is reached, but is not the high-availability process.
    let other = RunningProcess::start(options(ProcessId::JOB_MANAGER, 3, &directory, Some(ha.endpoint())))
        .await
        .unwrap();
    let mut wrong = options(ProcessId::TaskManager(1), 4, &directory, Some(other.endpoint()));
    wrong.patience = Duration::ZERO;
    let error = RunningProcess::start(wrong).await.err().unwrap().to_string();
    assert!(error.contains("this is job-manager, not high-availability"), "{error}");
    other.shut_down().await;
    ha.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_of_a_name_is_refused_while_the_first_lives() {
    let directory = Directory::new("second");
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, &directory, None)).await.unwrap();
    let at = Some(ha.endpoint());
    let first = RunningProcess::start(options(ProcessId::JOB_MANAGER, 2, &directory, at)).await.unwrap();
    let second = RunningProcess::start(options(ProcessId::JOB_MANAGER, 3, &directory, at)).await;
    let error = second.err().expect("must be refused");
    let expected = format!("job-manager is already running at {} (session ", first.endpoint());
    assert!(matches!(error, StartError::Occupied(_)) && error.to_string().starts_with(&expected), "{error}");
    // Whoever asks for it still finds the first.
    let caller = RunningProcess::start(options(ProcessId::TaskManager(1), 4, &directory, at)).await.unwrap();
    assert_eq!(timeout(LONG, caller.ended()).await.expect("must end"), ExitStatus::Success);
    first.shut_down().await;
    let third = RunningProcess::start(options(ProcessId::JOB_MANAGER, 5, &directory, at)).await.unwrap();
    third.shut_down().await;
    caller.shut_down().await;
    ha.shut_down().await;
}

struct Panics;

impl Engine for Panics {
    fn actor_ids(&self, _process: ProcessId) -> &'static [ActorId] {
        &[ActorId::Master]
    }

    fn actor(&self, _boot: &Boot, _id: ActorId) -> Option<Box<dyn Actor>> {
        #[derive(Debug)]
        struct Panicking;
        impl Actor for Panicking {
            fn handle(&mut self, _now: Time, _event: Event, _out: &mut Outbox) {
                panic!("a bug");
            }
        }
        Some(Box::new(Panicking))
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

struct Leaves;

impl Engine for Leaves {
    fn actor_ids(&self, _process: ProcessId) -> &'static [ActorId] {
        &[ActorId::Master]
    }

    fn actor(&self, _boot: &Boot, _id: ActorId) -> Option<Box<dyn Actor>> {
        #[derive(Debug)]
        struct Leaving;
        impl Actor for Leaving {
            fn handle(&mut self, _now: Time, _event: Event, out: &mut Outbox) {
                out.note(Note::Warning { text: "before".to_owned() });
                out.exit(ExitStatus::Success);
                out.note(Note::Warning { text: "behind".to_owned() });
            }
        }
        Some(Box::new(Leaving))
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        Box::new(Echo)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_happens_behind_an_exit() {
    let directory = Directory::new("exit");
    let mut options = options(ProcessId::HighAvailability, 1, &directory, None);
    options.engine = Arc::new(Leaves);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    options.observer = Some(Arc::new(move |_, note: &Note| notes.lock().unwrap().push(note.clone())));
    let process = RunningProcess::start(options).await.unwrap();
    assert_eq!(timeout(LONG, process.ended()).await.expect("must end"), ExitStatus::Success);
    process.shut_down().await;
    assert_eq!(*seen.lock().unwrap(), [Note::Warning { text: "before".to_owned() }]);
}

/// The JobManager's Master is busy with its first message until the Writer has answered; the
/// TaskManager ends when it has.
#[derive(Debug)]
struct Busy(Arc<AtomicBool>);

impl Engine for Busy {
    fn actor_ids(&self, process: ProcessId) -> &'static [ActorId] {
        match process {
            ProcessId::JOB_MANAGER => &[ActorId::Master, ActorId::Writer],
            ProcessId::TaskManager(_) => &[ActorId::Executor],
            _ => &[],
        }
    }

    fn actor(&self, _boot: &Boot, id: ActorId) -> Option<Box<dyn Actor>> {
        match id {
            ActorId::Master => Some(Box::new(Busy(Arc::clone(&self.0)))),
            ActorId::Writer => Some(Box::new(Echo)),
            ActorId::Executor => Some(Box::new(Flood::default())),
            _ => None,
        }
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        Box::new(Echo)
    }
}

impl Actor for Busy {
    fn handle(&mut self, _now: Time, event: Event, _out: &mut Outbox) {
        while matches!(event, Event::Message { .. }) && !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends more to the Master than it has room for, and something to the Writer after each portion.
#[derive(Debug, Default)]
struct Flood {
    rounds: u64,
}

impl Flood {
    const ROUNDS: u64 = 24;

    fn portion(&mut self, out: &mut Outbox) {
        self.rounds += 1;
        for _ in 0..500 {
            out.send(Address::MASTER, AddCredit { fetch: self.rounds, credit: 0 });
        }
        out.send(Address::WRITER, AddCredit { fetch: self.rounds, credit: 0 });
    }
}

impl Actor for Flood {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        match event {
            // Until the JobManager is found.
            Event::Start | Event::Timer(_) if self.rounds <= 1 => {
                self.rounds = 0;
                self.portion(out);
                out.set_timer(TimerId(1), now + Duration::from_millis(300));
            }
            Event::Message { message: Message::AddCredit(answer), .. } if answer.fetch == self.rounds => {
                if self.rounds == Self::ROUNDS {
                    out.exit(ExitStatus::Success);
                } else {
                    self.portion(out);
                }
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_is_busy_takes_no_room_from_its_neighbours() {
    let directory = Directory::new("busy");
    let release = Arc::new(AtomicBool::new(false));
    let options = |process, session, at| ProcessOptions {
        engine: Arc::new(Busy(Arc::clone(&release))),
        record: None,
        ..options(process, session, &directory, at)
    };
    let ha = RunningProcess::start(options(ProcessId::HighAvailability, 1, None)).await.unwrap();
    let at = Some(ha.endpoint());
    let busy = RunningProcess::start(options(ProcessId::JOB_MANAGER, 2, at)).await.unwrap();
    let flood = RunningProcess::start(options(ProcessId::TaskManager(1), 3, at)).await.unwrap();
    let end = timeout(LONG, flood.ended()).await;
    release.store(true, Ordering::SeqCst);
    assert_eq!(end.expect("must end"), ExitStatus::Success);
    flood.shut_down().await;
    busy.shut_down().await;
    ha.shut_down().await;
}
