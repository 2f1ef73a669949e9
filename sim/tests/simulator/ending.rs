//! How runs end, and what is said about it.

use revenant::ids::{ActorId, ProcessId};
use revenant_sim::run::run;
use revenant_sim::trace::{RunEnd, RunOutcome, TraceKind};

use crate::toy::{options, program, scenario};

fn run_mode(mode: &str) -> RunOutcome {
    run(&scenario(&format!("[job.arguments]\nmode = '{mode}'\n")), &program(), &options())
}

#[test]
fn a_panic_of_an_actor_ends_the_run_and_names_it() {
    let outcome = run_mode("panic");
    let (process, actor) = (ProcessId::JOB_MANAGER, ActorId::Master);
    assert_eq!(outcome.ended, RunEnd::Panicked { process, actor, message: "round three".to_owned() });
}

#[test]
fn a_panic_after_the_jobs_end_is_not_hidden() {
    // The master panics at the answer to what it asks when it tells the client: after a sync.
    let scenario = scenario("[job.arguments]\nmode = 'late panic'\n[disk]\nsync-latency = '5 ms'\n");
    let outcome = run(&scenario, &program(), &options());
    let RunEnd::Panicked { message, .. } = outcome.ended else { panic!("it panics") };
    let client = outcome.trace.iter().find(|event| {
        event.process == ProcessId::Client && event.what == TraceKind::Exited { failure: None }
    });
    assert!(client.is_some_and(|exit| exit.time < outcome.end));
    assert_eq!(message, "too late");
}

#[test]
fn a_run_in_which_nothing_can_happen_is_stuck_and_says_who_waits() {
    let RunEnd::Stuck { why } = run_mode("stuck").ended else { panic!("it is stuck") };
    assert!(why.contains("nothing is left that could happen"), "{why}");
    assert!(why.contains("job-manager/1 alive; last said at 0."), "{why}");
    assert!(why.contains("round 3"), "{why}");
}

#[test]
fn a_run_that_outlives_its_time_limit_is_stuck_with_its_timers() {
    let outcome = run_mode("idle");
    let RunEnd::Stuck { why } = outcome.ended else { panic!("it is stuck") };
    assert!(why.contains("the time limit of 20 min is reached"), "{why}");
    assert!(why.contains("waits for master's timer 1 at 9999.0"), "{why}");
    assert!(outcome.end.0 < 1_000_000_000);
}

#[test]
fn a_run_of_too_many_events_is_stuck() {
    let outcome = run(&scenario("[cluster]\nevent-limit = 5\n"), &program(), &options());
    let RunEnd::Stuck { why } = outcome.ended else { panic!("it is stuck") };
    assert!(why.contains("the limit of 5 events is reached"), "{why}");
    assert_eq!(outcome.events, 5);
}

#[test]
fn a_job_that_fails_ends_as_failed() {
    assert_eq!(run_mode("fail").ended, RunEnd::Failed { reason: "as told".to_owned() });
}

#[test]
fn a_job_manager_that_exits_with_a_failure_is_started_again() {
    let outcome = run_mode("exit");
    assert_eq!(outcome.ended, RunEnd::Finished);
    let exited = TraceKind::Exited { failure: Some("once".to_owned()) };
    assert_eq!(outcome.trace.iter().filter(|event| event.what == exited).count(), 1);
}

#[test]
fn a_fault_that_never_fires_is_reported() {
    let scenario = scenario("[[fault]]\nat = 'job-manager/1:master@999.0'\ndo = 'crash job-manager'\n");
    assert_eq!(run(&scenario, &program(), &options()).vacuous, [0]);
}

#[test]
fn what_is_left_on_the_disks_is_listed_by_volume_and_owner() {
    let outcome = run_mode("");
    assert_eq!(outcome.output.keys().collect::<Vec<_>>(), ["part-1", "part-2", "part-3", "result"]);
    let log = (Some(ProcessId::JOB_MANAGER), revenant::disk::Volume::Local, "job-events/log".to_owned());
    assert_eq!(outcome.leftovers, [log]);
}
