//! A cancel at any time of a job's life, also while its JobManager dies and comes back.

use std::collections::BTreeSet;
use std::time::Duration;

use revenant::actor::Time;
use revenant::ids::ProcessId;
use revenant::message::JobStatus;
use revenant::note::Note;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Action, Fault, Trigger};
use revenant_sim::trace::{RunEnd, RunOutcome, TraceKind};

use super::{LINEITEM, program, scenario};

const fn at(time: Time, action: Action) -> Fault {
    Fault { at: Trigger::Time(time), action, restart_after: None }
}

fn after(millis: u64) -> Time {
    Time(0) + Duration::from_millis(millis)
}

/// Cancels at each time in a run of its own, and judges them all. What the job was when its leader was
/// told, and how runs ended.
fn cancels(text: &str, times: impl Iterator<Item = Time>, crash: impl Fn(Time) -> Option<Time>) -> Ended {
    let program = program();
    let mut ended = Ended::default();
    for time in times {
        let mut scenario = scenario(text);
        // The client asks again soon enough to meet every phase.
        scenario.config.set("cluster.registration.error-delay", "100 ms").expect("it is right");
        scenario.faults.push(at(time, Action::CancelJob));
        if let Some(crash) = crash(time) {
            scenario
                .faults
                .push(at(crash, Action::Crash { process: ProcessId::JOB_MANAGER, machine: false }));
        }
        scenario.check(&program).expect("it is right");
        let outcome = run(&scenario, &program, &RunOptions::default());
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        judge.judge(&outcome).unwrap_or_else(|violation| panic!("cancelled at {time}: {violation}"));
        assert!(outcome.vacuous.is_empty(), "at {time}: {:?}", outcome.vacuous);
        ended.met.extend(met(&outcome));
        match outcome.ended {
            RunEnd::Canceled => ended.canceled += 1,
            _ => ended.finished += 1,
        }
    }
    ended
}

#[derive(Debug, Default)]
struct Ended {
    met: BTreeSet<JobStatus>,
    canceled: u32,
    finished: u32,
}

/// What the job was each time when its leader was told.
fn met(outcome: &RunOutcome) -> BTreeSet<JobStatus> {
    let mut met = BTreeSet::new();
    let mut now = JobStatus::Created;
    for event in &outcome.trace {
        match &event.what {
            TraceKind::Note(Note::LeadershipAcquired { .. }) => now = JobStatus::Created,
            TraceKind::Note(Note::JobStatusChanged { status, .. }) => now = *status,
            TraceKind::CancelReached => {
                met.insert(now);
            }
            _ => {}
        }
    }
    met
}

/// A run without faults takes a little longer.
fn over_a_run() -> impl Iterator<Item = Time> {
    (1..=40).map(|step| Time(step * 1_850_000))
}

#[test]
fn l6_a_cancel_at_any_time_of_a_run_ends_the_job_and_leaves_nothing() {
    let ended = cancels(LINEITEM, over_a_run(), |_| None);
    assert!(ended.canceled > 20 && ended.met.contains(&JobStatus::Running), "{ended:?}");
}

#[test]
fn l6_a_cancel_together_with_a_crash_of_the_job_manager_is_not_forgotten() {
    let ended = cancels(LINEITEM, over_a_run(), Some);
    assert!(ended.canceled > 20, "{ended:?}");
}

#[test]
fn l6_a_cancel_during_recovery_ends_the_job() {
    // Messages take longer than the disk, so that the new leader waits for partitions.
    let text = format!("{LINEITEM}\n[network]\nlatency = '5 ms..20 ms'\n");
    // The JobManager is back after a second, and leads a little later.
    let times = (0..40).map(|step| after(1_251 + step * 3));
    let ended = cancels(&text, times, |_| Some(after(250)));
    assert!(ended.canceled > 30, "{ended:?}");
    assert!(
        ended.met.contains(&JobStatus::Created) && ended.met.contains(&JobStatus::Reconciling),
        "{ended:?}"
    );
}
