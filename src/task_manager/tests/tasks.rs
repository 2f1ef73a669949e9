//! How tasks are run and what the JobMaster is told of them.

use crate::actor::{Effect, Event};
use crate::ids::{ActorId, Address, ProcessId};
use crate::message::{CancelTask, HeartbeatRequest, IoMetrics, TaskEnded, TaskResult, TaskState};
use crate::note::Note;
use crate::task::partition_path;

use super::bench::*;

fn finished(attempt: crate::ids::ExecutionAttemptId) -> TaskState {
    let partitions = vec![metrics(attempt)];
    TaskState::Finished {
        partitions,
        committables: vec![],
        metrics: IoMetrics::default(),
        accumulators: [].into(),
    }
}

fn text(state: &TaskState) -> &str {
    match state {
        TaskState::Failed(failure) => &failure.message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_submitted_task_is_spawned_once() {
    let mut bench = Bench::registered();
    let effects = bench.submit(1, attempt(1, 0));
    assert!(matches!(&effects[..], [Effect::Spawn(task)] if task.attempt == attempt(1, 0)));
    assert_eq!(bench.notes, [Note::TaskStarted { attempt: attempt(1, 0) }]);
    assert_eq!(bench.submit(1, attempt(1, 0)), []);
}

#[test]
fn a_finish_is_reported_after_the_partitions_are_registered() {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    bench.submit(1, attempt);
    let effects = bench.ended(attempt, Ok(()));
    assert_eq!(names(&effects), ["RegisterPartitions", "stop", "UpdateTaskExecutionState"]);
    assert_eq!(reported(&effects), [(attempt, finished(attempt))]);
    let partition = partition(attempt);
    let TaskState::Finished { metrics, .. } = finished(attempt) else { panic!("it finished") };
    assert_eq!(
        bench.notes[1..],
        [
            Note::PartitionFinished { partition, bytes: 5 },
            Note::TaskMetrics { attempt, metrics },
            Note::TaskEnded { attempt, failure: None }
        ]
    );
    assert_eq!(bench.ended(attempt, Ok(())), [], "once");
}

#[test]
fn a_failed_task_leaves_no_file() {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    bench.submit(1, attempt);
    let effects = bench.ended(attempt, Err("boom"));
    assert_eq!(deleted(&effects), [partition_path(partition(attempt))]);
    assert_eq!(reported(&effects), [(attempt, TaskState::Failed(failure("boom")))]);
}

#[test]
fn only_the_task_itself_can_end() {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    bench.submit(1, attempt);
    let elsewhere = Address::new(ProcessId::TaskManager(2), ActorId::Task(attempt));
    assert_eq!(bench.message(elsewhere, TaskEnded { attempt, result: Ok(TaskResult::default()) }), []);
}

#[test]
fn a_task_beyond_the_slots_is_refused_and_a_slot_comes_free_at_an_end() {
    let mut bench = Bench::registered();
    bench.submit(1, attempt(1, 0));
    bench.submit(1, attempt(1, 1));
    let effects = bench.submit(1, attempt(1, 2));
    assert!(text(&reported(&effects)[0].1).contains("none of the 2 slots"), "{effects:?}");
    bench.ended(attempt(1, 0), Err("boom"));
    assert_eq!(names(&bench.submit(1, attempt(1, 3))), ["spawn"]);
}

#[test]
fn a_canceled_task_is_stopped_and_its_files_deleted() {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    bench.submit(1, attempt);
    let cancel = CancelTask { token: token(1), attempt };
    let effects = bench.master(cancel.clone());
    assert_eq!(names(&effects), ["stop", "partition.delete", "spill.list", "UpdateTaskExecutionState"]);
    assert_eq!(reported(&effects), [(attempt, TaskState::Canceled)]);
    assert_eq!(reported(&bench.master(cancel)), [(attempt, TaskState::Canceled)]);
    assert_eq!(bench.ended(attempt, Ok(())), []);
}

#[test]
fn a_task_that_is_canceled_before_it_comes_does_not_run() {
    let mut bench = Bench::registered();
    bench.master(CancelTask { token: token(1), attempt: attempt(1, 0) });
    assert_eq!(reported(&bench.submit(1, attempt(1, 0))), [(attempt(1, 0), TaskState::Canceled)]);
}

#[test]
fn a_heartbeat_that_lists_an_ended_attempt_gets_its_state_again() {
    let mut bench = Bench::registered();
    let ended = bench.finish(1, 0);
    bench.submit(1, attempt(1, 1));
    let attempts = vec![ended, attempt(1, 1), attempt(1, 2)];
    let effects = bench.master(HeartbeatRequest { token: token(1), attempts });
    let reported = reported(&effects);
    assert_eq!(reported[0], (ended, finished(ended)));
    assert_eq!(reported[1].0, attempt(1, 2));
    assert!(text(&reported[1].1).contains("unknown to task-manager-1"));
    assert_eq!(reported.len(), 2);
}

#[test]
fn a_task_that_was_reported_unknown_does_not_run_when_it_comes() {
    let mut bench = Bench::registered();
    bench.master(HeartbeatRequest { token: token(1), attempts: vec![attempt(1, 0)] });
    let effects = bench.submit(1, attempt(1, 0));
    assert_eq!(names(&effects), ["UpdateTaskExecutionState"]);
}

#[test]
fn foreign_events_change_nothing() {
    let mut bench = Bench::registered();
    assert_eq!(bench.event(Event::Timer(crate::actor::TimerId(77))), []);
    assert_eq!(bench.message(Address::MASTER, crate::message::JobEventsCleared {}), []);
}

#[test]
fn a_task_for_an_incarnation_that_is_dead_does_not_run() {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    let dead = crate::ids::SessionId(SESSION.0 + 1);
    assert_eq!(bench.submit_to(dead, HERE, 1, attempt), []);
    assert!(names(&bench.submit(1, attempt)).contains(&"spawn".to_owned()));
}
