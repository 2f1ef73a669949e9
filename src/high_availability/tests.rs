//! The actor, driven by hand over a small disk.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::*;
use crate::actor::Effect;
use crate::config::Configuration;
use crate::disk::{DirectoryEntry, DiskErrorKind, DiskOp, DiskOutput, Volume};
use crate::ids::JobVertexId;
use crate::message::{
    CommitDecision, Committable, Contend, DecideCommit, JobOutcome, JobRecord, JobResult, LeaderInfo,
    RecordJob, RecordJobResult, RecordedJob, RenewLease, SourceSplit, WatchLeader,
};

const MASTER: Address = Address::MASTER;
const OTHER: ProcessId = ProcessId::TaskManager(9);
const WATCHER: Address = Address::executor(ProcessId::TaskManager(1));

/// One incarnation of the service, with the files that outlive it.
struct Bench {
    actor: HighAvailability,
    files: BTreeMap<String, Vec<u8>>,
    now: Time,
    timers: BTreeMap<TimerId, Time>,
    exit: Option<ExitStatus>,
    /// What the disk answers to the next operation of a kind instead of doing it.
    break_next: Option<&'static str>,
    /// Effects of which nothing was carried out yet: the disk stands still.
    stopped: bool,
    held: Vec<Effect>,
}

impl Bench {
    fn start(files: BTreeMap<String, Vec<u8>>) -> Self {
        let boot = Boot {
            process: ProcessId::HighAvailability,
            session: SessionId(1),
            config: Configuration { job_event_volume: Volume::Local, ..Configuration::default() },
            volumes: vec![Volume::Ha],
        };
        let mut bench = Self {
            actor: HighAvailability::new(&boot),
            files,
            now: Time(0),
            timers: BTreeMap::new(),
            exit: None,
            break_next: None,
            stopped: false,
            held: Vec::new(),
        };
        assert!(bench.feed(Event::Start).is_empty());
        bench
    }

    fn restart(self) -> Self {
        Self::start(self.files)
    }

    /// Handles an event and all that its disk operations lead to; the messages that were sent.
    fn feed(&mut self, event: Event) -> Vec<(Address, Message)> {
        let mut sent = Vec::new();
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let mut out = Outbox::new();
            self.actor.handle(self.now, event, &mut out);
            for effect in out.take() {
                match effect {
                    Effect::Send { to, message } => sent.push((to, message)),
                    Effect::SetTimer { timer, at } => drop(self.timers.insert(timer, at)),
                    Effect::Exit(status) => self.exit = Some(status),
                    effect @ Effect::Disk { .. } if self.stopped => self.held.push(effect),
                    Effect::Disk { op, action, .. } => {
                        events.push_back(Event::Disk { op, result: self.disk(&action) });
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    fn disk(&mut self, action: &DiskOp) -> DiskResult {
        if self.break_next == Some(action.kind()) {
            self.break_next = None;
            return Err(DiskError {
                kind: DiskErrorKind::Full,
                operation: action.kind().to_owned(),
                volume: Volume::Ha,
                path: action.path().to_owned(),
                message: "no space".to_owned(),
            });
        }
        match action {
            DiskOp::CreateNew { path } => assert!(self.files.insert(path.clone(), Vec::new()).is_none()),
            DiskOp::Append { path, bytes } => self.files.get_mut(path).unwrap().extend_from_slice(bytes),
            DiskOp::Delete { path } => drop(self.files.remove(path)),
            DiskOp::ReadRange { path, .. } => return Ok(DiskOutput::Data(self.files[path].clone().into())),
            DiskOp::List { .. } => {
                let entry = |(path, bytes): (&String, &Vec<u8>)| DirectoryEntry {
                    path: path.clone(),
                    length: bytes.len() as u64,
                };
                return Ok(DiskOutput::Entries(self.files.iter().map(entry).collect()));
            }
            _ => {}
        }
        Ok(DiskOutput::Done)
    }

    fn tell(&mut self, from: Address, message: impl Into<Message>) -> Vec<(Address, Message)> {
        self.feed(Event::Message { from, message: message.into() })
    }

    /// Lets time pass, with the timers that fall due in it.
    fn pass(&mut self, seconds: u64) -> Vec<(Address, Message)> {
        let end = self.now + Duration::from_secs(seconds);
        let mut sent = Vec::new();
        while let Some((timer, at)) = self.timers.iter().map(|(&t, &at)| (t, at)).min_by_key(|&(_, at)| at)
            && at <= end
        {
            self.timers.remove(&timer);
            self.now = at;
            sent.extend(self.feed(Event::Timer(timer)));
        }
        self.now = end;
        sent
    }

    fn contend(&mut self, session: u64) -> Vec<(Address, Message)> {
        self.tell(MASTER, Contend { session: SessionId(session), process: ProcessId::JOB_MANAGER })
    }

    fn token(&mut self, session: u64) -> u64 {
        let sent = self.contend(session);
        let [(_, Message::LeadershipGranted(granted))] = sent.as_slice() else { panic!("{sent:?}") };
        assert_eq!(granted.session, SessionId(session));
        granted.token.0
    }

    fn newest(&self) -> String {
        self.files.keys().next_back().unwrap().clone()
    }
}

fn fresh() -> Bench {
    Bench::start(BTreeMap::new())
}

fn decision(name: &str) -> CommitDecision {
    CommitDecision { committables: committables(name), accumulators: [("rows".to_owned(), 3)].into() }
}

fn committables(name: &str) -> Vec<Committable> {
    vec![Committable { pending: format!(".pending/{name}"), target: name.to_owned() }]
}

fn job() -> RecordedJob {
    let record = JobRecord { name: "job".to_owned(), arguments: Vec::new(), fingerprint: 7 };
    let split = SourceSplit { id: 0, payload: Bytes::from_static(b"a file") };
    RecordedJob { record, splits: [(JobVertexId(0), vec![split])].into() }
}

fn changed(leader: Option<(ProcessId, u64)>, result: Option<JobResult>) -> Message {
    let leader = leader.map(|(process, token)| LeaderInfo { process, token: FencingToken(token) });
    LeaderChanged { leader, result }.into()
}

#[test]
fn the_token_rises_with_each_session_and_over_restarts_of_the_service() {
    let mut bench = fresh();
    assert_eq!(bench.token(10), 1);
    assert_eq!(bench.token(11), 2);
    let mut bench = bench.restart();
    assert_eq!(bench.token(12), 3);
    let mut bench = bench.restart().restart();
    assert_eq!(bench.token(13), 4);
}

#[test]
fn a_repeated_contend_is_granted_the_same_token_also_after_a_restart_of_the_service() {
    let mut bench = fresh();
    assert_eq!(bench.token(10), 1);
    assert_eq!(bench.token(10), 1);
    assert_eq!(bench.restart().token(10), 1);
}

#[test]
fn a_late_contend_of_a_replaced_session_does_not_depose_its_successor() {
    let mut bench = fresh();
    bench.token(10);
    bench.token(11);
    assert_eq!(bench.contend(10), []);
    let mut bench = bench.restart();
    assert_eq!(bench.contend(10), []);
    assert_eq!(bench.token(11), 2);
}

#[test]
fn nothing_is_answered_before_it_is_durable() {
    let mut bench = fresh();
    bench.stopped = true;
    assert_eq!(bench.contend(10), []);
    assert_eq!(bench.tell(WATCHER, WatchLeader { watcher: WATCHER, session: SessionId(5) }), []);
    let held = std::mem::take(&mut bench.held);
    let [Effect::Disk { op: append, action: DiskOp::Append { .. }, .. }] = held.as_slice() else {
        panic!("{held:?}")
    };
    assert_eq!(bench.feed(Event::Disk { op: *append, result: Ok(DiskOutput::Done) }), []);
    let held = std::mem::take(&mut bench.held);
    let [Effect::Disk { op: sync, action: DiskOp::Sync { .. }, .. }] = held.as_slice() else {
        panic!("{held:?}")
    };
    let sent = bench.feed(Event::Disk { op: *sync, result: Ok(DiskOutput::Done) });
    assert!(matches!(sent.as_slice(), [(MASTER, Message::LeadershipGranted(_))]), "{sent:?}");
}

#[test]
fn watchers_hear_of_each_leader_after_the_leader_itself_also_over_a_restart() {
    let mut bench = fresh();
    let watch = WatchLeader { watcher: WATCHER, session: SessionId(5) };
    assert_eq!(bench.tell(WATCHER, watch.clone()), [(WATCHER, changed(None, None))]);
    let sent = bench.contend(10);
    assert!(matches!(sent[0], (MASTER, Message::LeadershipGranted(_))), "{sent:?}");
    let jm = ProcessId::JOB_MANAGER;
    assert_eq!(sent[1..], [(WATCHER, changed(Some((jm, 1)), None))]);
    assert_eq!(bench.tell(WATCHER, watch), [(WATCHER, changed(Some((jm, 1)), None))]);
    let mut bench = bench.restart();
    assert_eq!(bench.contend(11)[1..], [(WATCHER, changed(Some((jm, 2)), None))]);
}

#[test]
fn another_process_waits_until_the_lease_of_the_leader_ends() {
    let mut bench = fresh();
    bench.tell(WATCHER, WatchLeader { watcher: WATCHER, session: SessionId(5) });
    bench.contend(10);
    let other = Address::new(OTHER, crate::ids::ActorId::Master);
    assert_eq!(bench.tell(other, Contend { session: SessionId(20), process: OTHER }), []);
    // The leader renews twice, then is silent for the session timeout of 60 s.
    assert_eq!(bench.pass(40), []);
    assert_eq!(bench.tell(MASTER, RenewLease { token: FencingToken(1) }), []);
    assert_eq!(bench.pass(40), []);
    assert_eq!(bench.tell(MASTER, RenewLease { token: FencingToken(1) }), []);
    assert_eq!(bench.pass(59), []);
    let sent = bench.pass(1);
    assert_eq!(sent[0], (MASTER, LeadershipRevoked { token: FencingToken(1) }.into()));
    assert_eq!(sent[1], (WATCHER, changed(None, None)));
    assert!(
        matches!(&sent[2], (to, Message::LeadershipGranted(g)) if *to == other && g.token.0 == 2),
        "{sent:?}"
    );
    assert_eq!(sent[3], (WATCHER, changed(Some((OTHER, 2)), None)));
    assert_eq!(
        bench.tell(MASTER, RenewLease { token: FencingToken(1) }),
        [(MASTER, LeadershipRevoked { token: FencingToken(1) }.into())]
    );
}

#[test]
fn a_leader_whose_lease_ended_gets_a_new_token_when_it_comes_back() {
    let mut bench = fresh();
    assert_eq!(bench.token(10), 1);
    bench.pass(61);
    let stale = bench.tell(MASTER, RecordJob { token: FencingToken(1), job: job() });
    assert!(matches!(stale.as_slice(), [(MASTER, Message::Fenced(_))]), "{stale:?}");
    assert_eq!(bench.restart().token(10), 2);
}

#[test]
fn a_late_contend_of_a_session_whose_lease_ended_does_not_depose_its_successor() {
    let mut bench = fresh();
    bench.token(10);
    bench.pass(61);
    assert_eq!(bench.token(11), 2);
    assert_eq!(bench.contend(10), []);
    let mut bench = bench.restart();
    assert_eq!(bench.contend(10), []);
    assert_eq!(bench.token(11), 2);
}

#[test]
fn the_first_commit_decision_wins_for_every_leader() {
    let mut bench = fresh();
    bench.contend(10);
    let decide = |token, name| DecideCommit { token: FencingToken(token), decision: decision(name) };
    let decided = |token, name| -> [(Address, Message); 1] {
        [(MASTER, CommitDecided { token: FencingToken(token), decision: decision(name) }.into())]
    };
    assert_eq!(bench.tell(MASTER, decide(1, "first")), decided(1, "first"));
    assert_eq!(bench.tell(MASTER, decide(1, "second")), decided(1, "first"));
    let mut bench = bench.restart();
    let sent = bench.contend(11);
    let [(_, Message::LeadershipGranted(granted))] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(granted.result, Some(JobResult::Dirty(decision("first"))));
    assert_eq!(bench.tell(MASTER, decide(2, "third")), decided(2, "first"));
}

#[test]
fn once_a_commit_is_decided_the_job_neither_fails_nor_is_cancelled() {
    let mut bench = fresh();
    bench.contend(10);
    let token = FencingToken(1);
    bench.tell(MASTER, DecideCommit { token, decision: decision("first") });
    let decided = [(MASTER, CommitDecided { token, decision: decision("first") }.into())];
    for outcome in [JobOutcome::Failed { reason: "boom".to_owned() }, JobOutcome::Canceled] {
        assert_eq!(bench.tell(MASTER, RecordJobResult { token, outcome }), decided);
    }
    let outcome = JobOutcome::Finished { committed: 1, accumulators: [].into() };
    let recorded: Message = JobResultRecorded { token, outcome: outcome.clone() }.into();
    assert_eq!(bench.tell(MASTER, RecordJobResult { token, outcome })[0], (MASTER, recorded));
}

#[test]
fn once_a_job_was_cancelled_there_is_no_commit_to_decide() {
    let mut bench = fresh();
    bench.contend(10);
    let token = FencingToken(1);
    let recorded = [(MASTER, JobResultRecorded { token, outcome: JobOutcome::Canceled }.into())];
    assert_eq!(bench.tell(MASTER, RecordJobResult { token, outcome: JobOutcome::Canceled }), recorded);
    assert_eq!(bench.tell(MASTER, DecideCommit { token, decision: decision("late") }), recorded);
}

#[test]
fn writes_under_a_stale_token_change_nothing() {
    let mut bench = fresh();
    bench.contend(10);
    bench.contend(11);
    let token = FencingToken(1);
    let fenced: Message = Fenced { token, current: FencingToken(2) }.into();
    let outcome = JobOutcome::Finished { committed: 1, accumulators: [].into() };
    assert_eq!(bench.tell(MASTER, RecordJob { token, job: job() }), [(MASTER, fenced.clone())]);
    let decide = DecideCommit { token, decision: decision("late") };
    assert_eq!(bench.tell(MASTER, decide), [(MASTER, fenced.clone())]);
    assert_eq!(bench.tell(MASTER, RecordJobResult { token, outcome }), [(MASTER, fenced)]);
    let sent = bench.contend(11);
    let [(_, Message::LeadershipGranted(granted))] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((&granted.job, &granted.result), (&None, &None));
}

#[test]
fn the_result_is_told_to_watchers_and_to_later_contenders() {
    let mut bench = fresh();
    bench.tell(WATCHER, WatchLeader { watcher: WATCHER, session: SessionId(5) });
    bench.contend(10);
    let token = FencingToken(1);
    bench.tell(MASTER, RecordJob { token, job: job() });
    let outcome = JobOutcome::Finished { committed: 3, accumulators: [].into() };
    let clean = Some(JobResult::Clean(outcome.clone()));
    let sent = bench.tell(MASTER, RecordJobResult { token, outcome: outcome.clone() });
    assert_eq!(
        sent,
        [
            (MASTER, JobResultRecorded { token, outcome }.into()),
            (WATCHER, changed(Some((ProcessId::JOB_MANAGER, 1)), clean.clone()))
        ]
    );
    // The first outcome is final.
    let late = JobOutcome::Failed { reason: "late".to_owned() };
    let sent = bench.tell(MASTER, RecordJobResult { token, outcome: late });
    assert!(
        matches!(&sent[0].1, Message::JobResultRecorded(r) if clean == Some(JobResult::Clean(r.outcome.clone())))
    );
    let sent = bench.restart().contend(11);
    let (_, Message::LeadershipGranted(granted)) = &sent[0] else { panic!("{sent:?}") };
    assert_eq!((&granted.job, &granted.result), (&Some(job()), &clean));
}

#[test]
fn a_file_torn_at_any_byte_gives_a_state_that_was_never_denied() {
    let mut bench = fresh();
    bench.contend(10);
    let newest = bench.newest();
    let durable = bench.files[&newest].len();
    bench.contend(11);
    for length in durable..bench.files[&newest].len() {
        let mut files = bench.files.clone();
        files.get_mut(&newest).unwrap().truncate(length);
        let mut after = Bench::start(files);
        assert_eq!(after.token(10), 1, "cut at {length}");
        assert_eq!(after.files.len(), 1, "the torn file is replaced");
        assert_ne!(after.newest(), newest);
    }
}

#[test]
fn a_new_file_that_was_not_completed_is_passed_over() {
    let mut bench = fresh();
    bench.token(10);
    let mut files = bench.files.clone();
    files.insert("default/ha/journal.2".to_owned(), b"RVNTHAJL\x03".to_vec());
    let mut bench = Bench::start(files);
    assert_eq!(bench.token(11), 2);
    assert_eq!(bench.newest(), "default/ha/journal.3");
}

#[test]
fn damage_ends_the_process_with_the_files_name_and_the_offset() {
    let mut bench = fresh();
    bench.contend(10);
    bench.contend(11);
    let mut files = bench.files.clone();
    files.get_mut(&bench.newest()).unwrap()[30] ^= 1;
    let mut bench = Bench::start(files);
    let Some(ExitStatus::Failure(message)) = &bench.exit else { panic!("{:?}", bench.exit) };
    assert!(message.contains("ha:default/ha/journal.1 is damaged at byte 12"), "{message}");
    for part in ["'default' on the volumes ha and local", "restart the TaskManagers"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(bench.contend(12), []);
}

#[test]
fn a_lone_file_that_lost_its_records_is_damage_unless_it_is_the_first() {
    let start = |name: &str| Bench::start(BTreeMap::from([(name.to_owned(), Vec::new())]));
    assert_eq!(start("default/ha/journal.1").token(10), 1);
    assert!(start("default/ha/journal.2").exit.is_some());
}

#[test]
fn after_a_failed_write_the_request_is_served_from_a_new_file() {
    for broken in ["append", "sync", "create", "sync-directory"] {
        let mut bench = fresh();
        bench.token(10);
        let in_reopening = matches!(broken, "create" | "sync-directory");
        bench.break_next = Some(if in_reopening { "append" } else { broken });
        assert_eq!(bench.contend(11), [], "{broken}");
        if in_reopening {
            bench.break_next = Some(broken);
            assert_eq!(bench.pass(10), [], "{broken}");
        }
        let sent = bench.pass(10);
        assert!(matches!(&sent[0].1, Message::LeadershipGranted(g) if g.token.0 == 2), "{broken}: {sent:?}");
        assert_eq!(bench.restart().token(12), 3, "{broken}");
    }
}

/// A second JobManager that wants to lead while the first one does.
fn with_standby() -> Bench {
    let mut bench = Bench::start(BTreeMap::new());
    assert_eq!(bench.token(1), 1);
    bench.tell(WATCHER, WatchLeader { watcher: WATCHER, session: SessionId(5) });
    let standby = ProcessId::JobManager(2);
    let contend = Contend { session: SessionId(2), process: standby };
    assert!(bench.tell(Address::master(standby), contend).is_empty());
    bench
}

/// What is said of leaders: to the old one, to the new one, and to whoever watches.
fn said(sent: &[(Address, Message)]) -> Vec<String> {
    let line = |(to, message): &(Address, Message)| match message {
        Message::LeadershipRevoked(revoked) => format!("{to}: not {}", revoked.token),
        Message::LeadershipGranted(granted) => format!("{to}: {}", granted.token),
        Message::LeaderChanged(changed) => {
            let leader =
                changed.leader.map_or_else(|| "nobody".to_owned(), |leader| leader.token.to_string());
            format!("{to}: {leader} leads")
        }
        other => panic!("{other:?}"),
    };
    sent.iter().map(line).collect()
}

#[test]
fn a_leadership_that_is_revoked_goes_to_the_standby_after_nobody_led() {
    let sent = with_standby().tell(WATCHER, RevokeLeadership { successor: false, notice: true });
    assert_eq!(
        said(&sent),
        [
            "job-manager:master: not 1",
            "task-manager-1:executor: nobody leads",
            "job-manager-2:master: 2",
            "task-manager-1:executor: 2 leads"
        ]
    );
}

#[test]
fn a_leader_is_changed_at_once_and_the_old_one_is_told_or_not() {
    let change = |notice| said(&with_standby().tell(WATCHER, RevokeLeadership { successor: true, notice }));
    let new = ["job-manager-2:master: 2", "task-manager-1:executor: 2 leads"];
    assert_eq!(change(false), new);
    assert_eq!(change(true), [&["job-manager:master: not 1"], &new[..]].concat());
}

#[test]
fn an_old_leader_that_was_not_told_learns_of_it_when_it_renews_its_lease() {
    let mut bench = with_standby();
    bench.tell(WATCHER, RevokeLeadership { successor: true, notice: false });
    let sent = bench.tell(MASTER, RenewLease { token: FencingToken(1) });
    assert_eq!(said(&sent), ["job-manager:master: not 1"]);
    assert!(bench.tell(WATCHER, RenewLease { token: FencingToken(2) }).is_empty());
}

#[test]
fn without_a_leader_there_is_nothing_to_revoke() {
    let mut bench = Bench::start(BTreeMap::new());
    assert!(bench.tell(WATCHER, RevokeLeadership { successor: true, notice: true }).is_empty());
    assert_eq!(bench.token(1), 1);
}
