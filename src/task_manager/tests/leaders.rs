//! How a TaskManager finds, keeps and loses its JobManager.

use crate::actor::{DiskOpId, Effect, Event};
use crate::config::ShuffleServiceKind;
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput};
use crate::ids::{Address, SessionId};
use crate::message::{
    CancelTask, HeartbeatRequest, JobOutcome, JobResult, JobTerminated, LeaderChanged, Message,
    RegisterTaskManager, RegistrationRejected, RegistrationSuccess, TaskState, WatchLeader,
};
use crate::note::Note;
use crate::task::partition_path;

use super::bench::*;

fn watch() -> (Address, Message) {
    let watcher = Address::executor(HERE);
    (Address::HIGH_AVAILABILITY, WatchLeader { watcher, session: SESSION }.into())
}

fn registration(epoch: u64) -> (Address, Message) {
    let registration = RegisterTaskManager {
        token: token(epoch),
        process: HERE,
        session: SESSION,
        slots: 2,
        retains: true,
        holds: false,
        shuffle_service: ShuffleServiceKind::TaskManager,
    };
    (Address::MASTER, registration.into())
}

fn heartbeat(epoch: u64) -> HeartbeatRequest {
    HeartbeatRequest { token: token(epoch), attempts: vec![] }
}

#[test]
fn it_asks_for_the_leader_until_there_is_one_and_registers_until_that_answers() {
    let (mut bench, effects) = Bench::start(true);
    assert_eq!(sent(&effects), [watch()]);
    assert_eq!(sent(&bench.pass(25)), [watch(), watch()]);
    bench.leader_changed(None);
    assert_eq!(sent(&bench.pass(5)), [watch()]);
    assert_eq!(sent(&bench.leader_changed(Some(1))), [registration(1)]);
    assert_eq!(sent(&bench.pass(10)), [watch(), registration(1)]);
    let other_incarnation = RegistrationSuccess { token: token(1), session: SessionId(10) };
    bench.master(other_incarnation);
    assert_eq!(sent(&bench.pass(10)), [watch(), registration(1)]);
    bench.master(RegistrationSuccess { token: token(1), session: SESSION });
    assert_eq!(sent(&bench.pass(40)), []);
}

#[test]
fn b15_a_worker_that_is_too_late_gives_up_what_it_kept_and_comes_as_a_new_one() {
    let mut bench = Bench::registered();
    let kept = partition(bench.finish(1, 0));
    bench.leader_changed(None);
    let (to, message) = sent(&bench.leader_changed(Some(2))).remove(0);
    let Message::RegisterTaskManager(message) = message else { panic!("{to}: {message:?}") };
    assert!(message.holds);
    let reason = "too late".to_owned();
    let rejected = RegistrationRejected { token: token(2), session: SESSION, reason, too_late: true };
    let effects = bench.master(rejected);
    assert_eq!(dropped(&effects), [kept]);
    assert_eq!(sent(&effects).last(), Some(&registration(2)));
    // The answer to a repetition of the first registration changes nothing.
    bench.master(RegistrationSuccess { token: token(2), session: SESSION });
    bench.finish(2, 0);
    let reason = "too late".to_owned();
    let again = RegistrationRejected { token: token(2), session: SESSION, reason, too_late: true };
    assert_eq!(sent(&bench.master(again)), []);
}

#[test]
fn a_rejected_registration_is_repeated_after_a_pause() {
    let (mut bench, _) = Bench::start(true);
    bench.leader_changed(Some(1));
    let reason = "another job".to_owned();
    let rejected = RegistrationRejected { token: token(1), session: SESSION, reason, too_late: false };
    assert_eq!(bench.master(rejected), []);
    assert!(matches!(&bench.notes[..], [Note::Warning { text }] if text.contains("another job")));
    assert_eq!(sent(&bench.pass(10)), [watch(), registration(1)]);
}

#[test]
fn a_start_deletes_what_an_earlier_incarnation_left_but_not_what_is_new() {
    let (mut bench, effects) = Bench::start(true);
    let Effect::Disk { op, action: DiskOp::List { path }, .. } = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(path, "partitions");
    bench.lead(1);
    let finished = bench.finish(1, 0);
    bench.submit(1, attempt(1, 1));
    let paths = [
        partition_path(partition(finished)),
        partition_path(partition(attempt(1, 1))),
        "partitions/old".to_owned(),
    ];
    let entries = paths.into_iter().map(|path| DirectoryEntry { path, length: 1 }).collect();
    let effects = bench.event(Event::Disk { op: *op, result: Ok(DiskOutput::Entries(entries)) });
    assert_eq!(deleted(&effects), ["partitions/old"]);
    assert_eq!(bench.event(Event::Disk { op: DiskOpId(99), result: Ok(DiskOutput::Done) }), []);
}

#[test]
fn a_new_leader_ends_all_tasks_of_the_old_one() {
    let mut bench = Bench::registered();
    bench.submit(1, attempt(1, 0));
    let effects = bench.leader_changed(Some(2));
    assert_eq!(names(&effects), ["stop", "partition.delete", "spill.list", "RegisterTaskManager"]);
    assert!(bench.notes.contains(&Note::JobManagerLost { token: token(1) }));
    assert_eq!(bench.ended(attempt(1, 0), Ok(())), [], "the task was stopped before it ended");
    assert_eq!(bench.leader_changed(Some(2)), [], "no news");
}

#[test]
fn the_slots_of_a_lost_leaders_tasks_are_free_for_the_next_leader() {
    let mut bench = Bench::registered();
    bench.submit(1, attempt(1, 0));
    bench.submit(1, attempt(1, 1));
    bench.lead(2);
    for subtask in 0..2 {
        assert_eq!(names(&bench.submit(2, attempt(2, subtask))), ["spawn"]);
    }
}

#[test]
fn an_older_leader_and_its_messages_count_for_nothing() {
    let mut bench = Bench::registered();
    bench.lead(2);
    assert_eq!(bench.leader_changed(Some(1)), []);
    assert_eq!(bench.submit(1, attempt(1, 0)), []);
    assert_eq!(bench.master(heartbeat(1)), []);
    assert_eq!(bench.master(JobTerminated { token: token(1) }), []);
    assert_eq!(names(&bench.master(heartbeat(2))), ["HeartbeatResponse"]);
}

#[test]
fn a_leader_that_is_not_known_yet_is_not_obeyed() {
    let mut bench = Bench::registered();
    assert_eq!(bench.submit(2, attempt(2, 0)), []);
}

#[test]
fn a_silent_leader_is_lost_and_looked_for() {
    let mut bench = Bench::registered();
    bench.submit(1, attempt(1, 0));
    bench.pass(40);
    bench.master(heartbeat(1));
    assert_eq!(bench.pass(49), []);
    let effects = bench.pass(1);
    assert_eq!(names(&effects), ["stop", "partition.delete", "spill.list", "WatchLeader"]);
    assert_eq!(sent(&bench.leader_changed(Some(1))), [registration(1)], "it may still be there");
    bench.master(RegistrationSuccess { token: token(1), session: SESSION });
    let effects = bench.master(HeartbeatRequest { token: token(1), attempts: vec![attempt(1, 0)] });
    assert!(matches!(&reported(&effects)[..], [(_, TaskState::Failed(_))]), "{effects:?}");
}

#[test]
fn the_end_of_the_job_leaves_nothing_behind() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    bench.submit(1, attempt(1, 1));
    let effects = bench.master(JobTerminated { token: token(1) });
    assert_eq!(
        names(&effects),
        [
            "stop",
            "partition.delete",
            "spill.list",
            "UpdateTaskExecutionState",
            "sink.list",
            "DropPartitions",
            "partition.list",
            "spill.list"
        ]
    );
    assert_eq!(dropped(&effects), [partition(finished)]);
    let again = names(&bench.pass(10));
    assert_eq!(again, ["sink.list", "partition.list", "spill.list"], "the last file may only come");
    assert!(!bench.has_timers());
    assert_eq!(bench.leader_changed(Some(1)), []);
}

#[test]
fn what_sinks_of_all_tasks_left_that_ran_here_is_deleted_at_the_jobs_end_and_nothing_else() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    let running = attempt(1, 1);
    bench.submit(1, running);
    let effects = bench.master(JobTerminated { token: token(1) });
    // The leader may have given this process up before the task finished, and committed another's output.
    let own = [format!(".pending/out-{finished}.csv"), format!(".pending/out-{running}")];
    let others = [format!(".pending/out-{running}0.csv"), ".pending/out-v0.2.e1a1.csv".to_owned()];
    let all: Vec<&str> = own.iter().chain(&others).map(String::as_str).collect();
    assert_eq!(deleted_of(&mut bench, &effects, &all), Some(own.to_vec()));
}

/// What it then looks for among the pending files, and deletes of these.
fn deleted_of(bench: &mut Bench, effects: &[Effect], paths: &[&str]) -> Option<Vec<String>> {
    let op = effects.iter().find_map(|effect| match effect {
        Effect::Disk { op, action: DiskOp::List { path }, .. } if path == ".pending" => Some(*op),
        _ => None,
    })?;
    let entries = paths.iter().map(|path| DirectoryEntry { path: (*path).to_owned(), length: 1 });
    Some(deleted(&bench.event(Event::Disk { op, result: Ok(DiskOutput::Entries(entries.collect())) })))
}

#[test]
fn what_sinks_left_of_tasks_that_were_stopped_before_the_jobs_end_is_deleted_once() {
    let (cancelled, lost) = (attempt(1, 0), attempt(1, 1));
    let paths = [".pending/out-v0.0.e1a1.csv", ".pending/out-v0.1.e1a1.csv", ".pending/out-v0.0.e2a1.csv"];
    let mut bench = Bench::registered();
    bench.submit(1, cancelled);
    bench.master(CancelTask { token: token(1), attempt: cancelled });
    bench.submit(1, lost);
    bench.leader_changed(None);
    bench.leader_changed(Some(2));
    let result = Some(JobResult::Clean(JobOutcome::Canceled));
    let effects = bench.message(Address::HIGH_AVAILABILITY, LeaderChanged { leader: None, result });
    let of_both = Some(paths[..2].iter().map(|path| (*path).to_owned()).collect());
    assert_eq!(deleted_of(&mut bench, &effects, &paths), of_both);
    let effects = bench.master(JobTerminated { token: token(2) });
    assert_eq!(deleted_of(&mut bench, &effects, &paths), None);
}

#[test]
fn one_that_comes_after_the_jobs_end_deletes_all_that_was_not_committed() {
    let pending = |earlier: Option<u64>| {
        let (mut bench, _) = Bench::start(true);
        bench.leader_changed(earlier);
        let result = Some(JobResult::Clean(JobOutcome::Canceled));
        let effects = bench.message(Address::HIGH_AVAILABILITY, LeaderChanged { leader: None, result });
        deleted_of(&mut bench, &effects, &[".pending/out-v0.0.e1a1.csv"])
    };
    assert_eq!(pending(None), Some(vec![".pending/out-v0.0.e1a1.csv".to_owned()]));
    assert_eq!(pending(Some(1)), None, "the leader deletes what there is");
}

#[test]
fn a_clean_job_result_ends_the_job_though_its_leader_never_said_so() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    bench.leader_changed(None);
    let result = Some(JobResult::Clean(JobOutcome::Finished { committed: 1, accumulators: [].into() }));
    let effects = bench.message(Address::HIGH_AVAILABILITY, LeaderChanged { leader: None, result });
    assert_eq!(dropped(&effects), [partition(finished)]);
    assert!(!bench.has_timers());
}
