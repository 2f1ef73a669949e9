//! Tasks whose results are with a shuffle service.

use crate::actor::Effect;
use crate::ids::{Address, ExecutionAttemptId, ProcessId};
use crate::message::{
    CancelTask, DropPartitions, GetAndRetainPartitionWithMetrics, HeartbeatRequest, JobTerminated, Message,
    PartitionsRefused, PartitionsRegistered, TaskState,
};
use crate::note::Note;

use super::bench::*;

const SERVICE: ProcessId = ProcessId::ShuffleService(2);
const WORKER: Address = Address::worker(SERVICE);

/// A task whose result went to the service has ended well.
fn ended() -> (Bench, ExecutionAttemptId, Vec<Effect>) {
    let mut bench = Bench::registered();
    let attempt = attempt(1, 0);
    bench.submit_with_results_at(SERVICE, 1, attempt);
    let effects = bench.ended(attempt, Ok(()));
    (bench, attempt, effects)
}

/// What was told to the service.
fn told(effects: &[Effect]) -> Vec<&'static str> {
    sent(effects).iter().filter(|(to, _)| *to == WORKER).map(|(_, message)| message.kind()).collect()
}

fn drop(attempt: ExecutionAttemptId) -> (Address, Message) {
    (WORKER, DropPartitions { partitions: vec![partition(attempt)] }.into())
}

#[test]
fn a_finish_is_reported_when_the_service_has_registered_the_results() {
    let (mut bench, attempt, effects) = ended();
    assert_eq!(names(&effects), ["RegisterPartitions", "stop"]);
    assert_eq!(told(&effects), ["RegisterPartitions"]);
    let answer = PartitionsRegistered { attempt };
    assert_eq!(bench.message(Address::shuffle(HERE), answer.clone()), [], "not this shuffle");
    let effects = bench.message(WORKER, answer.clone());
    assert!(matches!(&reported(&effects)[..], [(_, TaskState::Finished { .. })]), "{effects:?}");
    assert_eq!(bench.message(WORKER, answer), []);
}

#[test]
fn results_with_a_service_are_neither_kept_nor_reported_by_the_task_manager() {
    let (mut bench, attempt, _) = ended();
    bench.message(WORKER, PartitionsRegistered { attempt });
    let kept = |note: &Note| matches!(note, Note::PartitionFinished { .. });
    assert!(!bench.notes.iter().any(kept), "the service says so");
    bench.lead(2);
    let claim = GetAndRetainPartitionWithMetrics { token: token(2) };
    let report = sent(&bench.master(claim)).remove(0).1;
    let Message::PartitionReport(report) = report else { panic!("{report:?}") };
    assert_eq!(report.partitions, []);
}

#[test]
fn a_silent_service_is_asked_again_and_then_the_attempt_has_failed() {
    let (mut bench, attempt, _) = ended();
    for _ in 0..6 {
        let effects = bench.pass(10);
        assert_eq!((told(&effects), reported(&effects)), (vec!["RegisterPartitions"], vec![]));
        bench.master(HeartbeatRequest { token: token(1), attempts: vec![attempt] });
    }
    let effects = bench.pass(10);
    assert_eq!(told(&effects), ["DropPartitions"]);
    let [(_, TaskState::Failed(failure))] = &reported(&effects)[..] else { panic!("{effects:?}") };
    assert!(failure.message.contains("no answer from shuffle-service-2"), "{failure:?}");
    let effects = bench.message(WORKER, PartitionsRegistered { attempt });
    assert_eq!(effects, [], "too late");
}

#[test]
fn b40_an_attempt_whose_results_the_service_does_not_have_has_failed() {
    let (mut bench, attempt, _) = ended();
    let reason = "it has 0 of the 5 bytes".to_owned();
    let effects = bench.message(WORKER, PartitionsRefused { attempt, reason });
    assert_eq!(sent(&effects)[0], drop(attempt));
    let [(_, TaskState::Failed(failure))] = &reported(&effects)[..] else { panic!("{effects:?}") };
    assert!(failure.message.ends_with("did not take its results: it has 0 of the 5 bytes"), "{failure:?}");
}

#[test]
fn b40_results_of_attempts_that_do_not_finish_are_dropped_at_the_service() {
    let mut bench = Bench::registered();
    let (failed, cancelled) = (attempt(1, 0), attempt(1, 1));
    bench.submit_with_results_at(SERVICE, 1, failed);
    bench.submit_with_results_at(SERVICE, 1, cancelled);
    let effects = bench.ended(failed, Err("boom"));
    assert!(sent(&effects).contains(&drop(failed)) && deleted(&effects).is_empty(), "{effects:?}");
    let effects = bench.master(CancelTask { token: token(1), attempt: cancelled });
    assert!(sent(&effects).contains(&drop(cancelled)) && deleted(&effects).is_empty(), "{effects:?}");
}

#[test]
fn b40_results_of_attempts_that_a_lost_leader_began_are_dropped_at_the_service() {
    let mut bench = Bench::registered();
    bench.submit_with_results_at(SERVICE, 1, attempt(1, 0));
    assert!(sent(&bench.leader_changed(None)).contains(&drop(attempt(1, 0))));
}

#[test]
fn the_jobs_end_ends_the_waiting_for_a_service() {
    let (mut bench, ..) = ended();
    bench.master(JobTerminated { token: token(1) });
    assert!(!bench.has_timers());
}
