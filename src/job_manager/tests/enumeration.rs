//! Sources of files: listed once, before the job is stored, and never again.

use super::*;
use crate::actor::Purpose;
use crate::disk::{DiskError, DiskErrorKind, Volume};
use crate::message::{JobEventStoreOpened, JobRecorded};

/// Reads all of `logs` and `users.csv`; a split for each byte of each file.
struct Files;

impl SplitEnumeratorFactory for Files {
    fn splits(&self) -> Vec<SourceSplit> {
        vec![]
    }

    fn paths(&self) -> Vec<String> {
        vec!["logs".to_owned(), "users.csv".to_owned()]
    }

    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<SourceSplit> {
        let paths = files.iter().flat_map(|file| (0..file.length).map(|_| Bytes::from(file.path.clone())));
        paths.zip(0..).map(|(payload, id)| SourceSplit { id, payload }).collect()
    }
}

pub(super) fn leader(options: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::with_source(options, Arc::new(Files));
    fixture.event(Event::Start);
    fixture
}

/// The lists that were asked for: operation and path.
fn lists(fixture: &Fixture) -> Vec<(DiskOpId, String)> {
    let list = |effect: &Effect| match effect {
        Effect::Disk {
            op,
            volume: Volume::Input,
            action: DiskOp::List { path },
            purpose: Purpose::Source,
        } => Some((*op, path.clone())),
        Effect::Disk { .. } => panic!("{effect:?}"),
        _ => None,
    };
    fixture.effects.iter().filter_map(list).collect()
}

fn entries(files: &[(&str, u64)]) -> DiskOutput {
    let entry = |&(path, length): &(&str, u64)| DirectoryEntry { path: path.to_owned(), length };
    DiskOutput::Entries(files.iter().map(entry).collect())
}

fn answer(fixture: &mut Fixture, path: &str, result: DiskResult) {
    let (op, _) = lists(fixture).into_iter().find(|(_, listed)| listed == path).expect("it is listed");
    fixture.event(Event::Disk { op, result });
}

fn recorded(fixture: &Fixture) -> Vec<RecordedJob> {
    fixture.sent(|_, message| match message {
        Message::RecordJob(message) => Some(message.job.clone()),
        _ => None,
    })
}

/// As stored by the first leader.
fn paths(job: &RecordedJob) -> Vec<&str> {
    let splits = job.splits[&SOURCE].iter();
    splits.map(|split| std::str::from_utf8(&split.payload).unwrap()).collect()
}

fn enumerated(options: &[(&str, &str)]) -> (Fixture, RecordedJob) {
    let mut fixture = leader(options);
    fixture.grant(false, None);
    answer(&mut fixture, "users.csv", Ok(entries(&[("users.csv", 1)])));
    answer(&mut fixture, "logs", Ok(entries(&[("logs/_SUCCESS", 9), ("logs/a", 1), ("logs/b/c", 2)])));
    let job = recorded(&fixture).pop().expect("the job is recorded");
    (fixture, job)
}

/// What a reader that asks again and again is given.
fn assigned(fixture: &mut Fixture) -> Vec<String> {
    let attempt = attempt(SOURCE, 0, NOW);
    let from = Address::new(fixture.master.execution.deployed_at(attempt).unwrap(), ActorId::Task(attempt));
    for received in 0..5 {
        fixture.tell(from, RequestSplit { attempt, received });
        if fixture.kinds().contains(&"NoMoreSplits") {
            break;
        }
    }
    fixture.sent(|_, message| match message {
        Message::AddSplit(message) => Some(String::from_utf8(message.split.payload.to_vec()).unwrap()),
        _ => None,
    })
}

#[test]
fn a_source_of_files_is_listed_before_the_job_is_stored_and_nothing_runs_before_that_is_durable() {
    let mut fixture = leader(&[]);
    fixture.grant(false, None);
    let listed: Vec<String> = lists(&fixture).into_iter().map(|(_, path)| path).collect();
    assert_eq!(listed, ["logs", "users.csv"]);
    answer(&mut fixture, "users.csv", Ok(entries(&[("users.csv", 1)])));
    assert_eq!(recorded(&fixture), [], "one list is missing");
    answer(&mut fixture, "logs", Ok(entries(&[("logs/_SUCCESS", 9), ("logs/a", 1), ("logs/b/c", 2)])));
    let jobs = recorded(&fixture);
    assert_eq!(jobs.len(), 1);
    assert_eq!(paths(&jobs[0]), ["logs/a", "logs/b/c", "logs/b/c", "users.csv"], "in the order of the paths");

    fixture.register(TM1, 1, vec![]);
    assert_eq!(fixture.submitted(), []);
    assert!(!fixture.kinds().contains(&"OpenJobEventStore"));
    fixture.tell(Address::HIGH_AVAILABILITY, JobRecorded { token: NOW });
    fixture.tell(Address::WRITER, JobEventStoreOpened { token: NOW, replay: Arc::default() });
    assert_eq!(fixture.submitted().len(), 1);
    assert_eq!(assigned(&mut fixture), ["logs/a", "logs/b/c", "logs/b/c", "users.csv"]);
}

#[test]
fn every_later_leader_takes_the_stored_splits_with_and_without_recovery() {
    for recovery in ["true", "false"] {
        let options = [("execution.batch.job-recovery.enabled", recovery)];
        let (_, job) = enumerated(&options);
        let mut later = leader(&options);
        let granted = LeadershipGranted { token: NOW, session: SessionId(3), job: Some(job), result: None };
        later.tell(Address::HIGH_AVAILABILITY, granted);
        assert_eq!(lists(&later), [], "the directory may have changed");
        assert_eq!(recorded(&later), []);
        if recovery == "true" {
            later.tell(Address::WRITER, JobEventStoreOpened { token: NOW, replay: Arc::default() });
        }
        later.register(TM1, 1, vec![]);
        assert_eq!(assigned(&mut later), ["logs/a", "logs/b/c", "logs/b/c", "users.csv"]);
    }
}

#[test]
fn a_leader_that_dies_before_the_job_is_stored_leaves_the_next_one_to_list_again() {
    let mut next = leader(&[]);
    next.grant(false, None);
    assert_eq!(lists(&next).len(), 2);
}

#[test]
fn a_request_to_store_the_job_that_was_lost_is_repeated_with_the_same_splits() {
    let (mut fixture, job) = enumerated(&[]);
    fixture.event(Event::Timer(RENEW_LEASE));
    assert_eq!(recorded(&fixture), [job.clone(), job]);
}

#[test]
fn after_a_global_failure_the_source_begins_anew_with_the_stored_splits() {
    let (mut fixture, _) = enumerated(&[("restart-strategy.type", "fixed-delay")]);
    fixture.tell(Address::HIGH_AVAILABILITY, JobRecorded { token: NOW });
    fixture.tell(Address::WRITER, JobEventStoreOpened { token: NOW, replay: Arc::default() });
    fixture.register(TM1, 1, vec![]);
    assert_eq!(fixture.submitted().len(), 1);
    fixture.master.fail_globally(Time(0), "a test", &mut Outbox::new());
    let coordinator = &fixture.master.coordinators[&SOURCE];
    assert_eq!(coordinator.split_count(), 4);
}

#[test]
fn a_path_without_files_fails_the_job_and_says_where_it_was_looked_for() {
    for nothing in [&[][..], &[("logs/_SUCCESS", 9), ("logs/.crc/a", 1)]] {
        let mut fixture = leader(&[]);
        fixture.grant(false, None);
        answer(&mut fixture, "logs", Ok(entries(nothing)));
        let [JobOutcome::Failed { reason }] = &fixture.outcomes()[..] else {
            panic!("{:?}", fixture.effects)
        };
        for part in ["'v0'", "'logs'", "--input DIR", "MiniCluster::input", "patterns"] {
            assert!(reason.contains(part), "{reason}");
        }
        answer(&mut fixture, "users.csv", Ok(entries(&[("users.csv", 1)])));
        assert_eq!(recorded(&fixture), [], "the other list comes too late");
    }
}

#[test]
fn a_disk_that_cannot_be_read_fails_the_job_whatever_the_restart_strategy_says() {
    let mut fixture = leader(&[("restart-strategy.type", "fixed-delay")]);
    fixture.grant(false, None);
    let error = DiskError {
        kind: DiskErrorKind::Other,
        operation: "list".to_owned(),
        volume: Volume::Input,
        path: "logs".to_owned(),
        message: "permission denied".to_owned(),
    };
    answer(&mut fixture, "logs", Err(error));
    let [JobOutcome::Failed { reason }] = &fixture.outcomes()[..] else { panic!("{:?}", fixture.effects) };
    assert!(reason.contains("list of input:logs failed: permission denied"), "{reason}");
}

#[test]
fn splits_that_do_not_fit_into_the_jobs_record_are_refused_with_what_to_do() {
    let mut fixture = leader(&[]);
    fixture.grant(false, None);
    let long = "x".repeat(1 << 20);
    answer(&mut fixture, "logs", Ok(entries(&[(&format!("logs/{long}"), 17)])));
    answer(&mut fixture, "users.csv", Ok(entries(&[("users.csv", 1)])));
    let [JobOutcome::Failed { reason }] = &fixture.outcomes()[..] else { panic!("not failed") };
    assert!(reason.contains("18 splits") && reason.contains("make splits larger"), "{reason}");
}
