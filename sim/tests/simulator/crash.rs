//! Crashes hit exactly where they are told to, and nowhere else.

use std::collections::BTreeSet;

use revenant::ids::ProcessId;
use revenant_sim::point::{CrashPoint, PointAt};
use revenant_sim::run::{Collect, run};
use revenant_sim::scenario::{Action, Fault, RestartAfter, Scenario, Trigger};
use revenant_sim::trace::{FoundPoint, RunEnd, RunOutcome, TraceKind};

use crate::toy::{options, program, scenario};

fn points(scenario: &Scenario, process: ProcessId) -> Vec<FoundPoint> {
    let mut options = options();
    options.collect = Collect::Of(process);
    run(scenario, &program(), &options).detail.points
}

fn crash_at(scenario: &Scenario, point: &CrashPoint, machine: bool) -> RunOutcome {
    let mut scenario = scenario.clone();
    scenario.faults.push(Fault::crash_at(point.clone(), machine));
    let mut options = options();
    options.keep_text = true;
    run(&scenario, &program(), &options)
}

#[test]
fn the_toy_recovers_from_a_crash_at_every_point_of_every_process() {
    let scenario = scenario("");
    let clean = run(&scenario, &program(), &options());
    assert_eq!(clean.ended, RunEnd::Finished);
    assert_eq!(clean.output.len(), 4);
    for process in [ProcessId::JOB_MANAGER, ProcessId::TaskManager(2)] {
        let points = points(&scenario, process);
        assert!(points.len() > 40, "{}", points.len());
        for found in &points {
            for machine in [false, true] {
                let outcome = crash_at(&scenario, &found.point, machine);
                assert_eq!(outcome.ended, RunEnd::Finished, "{}", found.point);
                assert_eq!(outcome.vacuous, [0; 0], "{}", found.point);
                assert_eq!(outcome.output, clean.output, "{}", found.point);
            }
        }
    }
}

#[test]
fn a_crash_leaves_everything_before_it_as_it_was() {
    let scenario = scenario("");
    let mut watched = options();
    watched.keep_text = true;
    let clean = run(&scenario, &program(), &watched);
    for found in points(&scenario, ProcessId::JOB_MANAGER) {
        let crashed = crash_at(&scenario, &found.point, false);
        let until = found.event as usize;
        assert_eq!(crashed.detail.text[..until], clean.detail.text[..until], "{}", found.point);
        let PointAt::Number { actor, event, .. } = &found.point.at else { panic!("points are numbers") };
        let of_actor = format!(" job-manager/1:{actor} ");
        let events = crashed.detail.text.iter().filter(|line| line.contains(&of_actor)).count() as u64;
        assert_eq!(events, *event, "no event reaches the actor after {}", found.point);
        let of_process =
            crashed.detail.text.iter().rposition(|line| line.contains(" job-manager/1:")).unwrap();
        assert_eq!(of_process + 1, until, "nor any other actor of the process");
    }
}

#[test]
fn exactly_the_effects_before_the_point_leave() {
    let scenario = scenario("");
    // The round's three requests leave in one event, to one TaskManager after the other.
    let event = points(&scenario, ProcessId::JOB_MANAGER)
        .into_iter()
        .find_map(|found| match &found.point.at {
            PointAt::Number { actor, event, effect: 3 } => Some((*actor, *event)),
            _ => None,
        })
        .unwrap();
    for effect in 0..=3 {
        let at = PointAt::Number { actor: event.0, event: event.1, effect };
        let point = CrashPoint { process: ProcessId::JOB_MANAGER, incarnation: 1, at };
        let outcome = crash_at(&scenario, &point, false);
        let crash =
            outcome.trace.iter().find(|event| matches!(event.what, TraceKind::Crashed { .. })).unwrap().time;
        let restarted = format!("{}", crash + std::time::Duration::from_secs(1));
        let asked: BTreeSet<&str> = outcome
            .detail
            .text
            .iter()
            .filter(|line| line.contains("RequestJobStatus") && line.as_str() < restarted.as_str())
            .map(|line| line.split(' ').nth(1).unwrap())
            .collect();
        assert_eq!(asked.len(), effect as usize);
    }
}

#[test]
fn a_points_name_and_number_are_the_same_place() {
    let scenario = scenario("");
    let found = points(&scenario, ProcessId::JOB_MANAGER);
    assert!(found.iter().any(|found| found.names.len() == 2));
    for found in found.iter().step_by(3) {
        let by_number = crash_at(&scenario, &found.point, true);
        for name in &found.names {
            assert_eq!(crash_at(&scenario, name, true).hash, by_number.hash, "{name} {}", found.point);
        }
    }
}

#[test]
fn the_third_sync_is_the_third_round() {
    for (side, length) in [("before", 2), ("after", 2)] {
        let scenario = scenario(&format!(
            "[[fault]]\nat = 'job-manager/1:job_event.sync#3.{side}'\ndo = 'crash machine of job-manager'\n"
        ));
        let outcome = run(&scenario, &program(), &options());
        assert!(outcome.vacuous.is_empty());
        let left = outcome.trace.iter().find_map(|event| match event.what {
            TraceKind::LogAfterCrash { length, .. } => Some(length),
            _ => None,
        });
        assert_eq!(left, Some(length));
    }
}

fn left_of_log(disk: &str, side: &str, machine: bool) -> Option<u64> {
    let of = if machine { "machine of " } else { "" };
    let scenario = scenario(&format!(
        "[disk]\n{disk}\n[[fault]]\nat = 'job-manager/1:{side}'\ndo = 'crash {of}job-manager'\n"
    ));
    let outcome = run(&scenario, &program(), &options());
    assert!(outcome.vacuous.is_empty());
    // The second incarnation's first report says what it found.
    let mut second = outcome.trace.iter().filter(|event| event.incarnation == 2);
    second.find_map(|event| match &event.what {
        TraceKind::Note(revenant::note::Note::Warning { text }) => text.strip_prefix("round ")?.parse().ok(),
        _ => None,
    })
}

#[test]
fn the_plan_decides_what_is_left_of_the_log() {
    let written = "job_event.sync#3.before";
    assert_eq!(left_of_log("", written, false), Some(3), "a process crash keeps what was written");
    assert_eq!(left_of_log("", written, true), Some(2));
    assert_eq!(left_of_log("unsynced-at-machine-crash = 'kept'", written, true), Some(3));
    let appending = "job_event.append#3.after";
    assert_eq!(left_of_log("", appending, false), Some(2), "an append under way is not done");
    assert_eq!(left_of_log("incomplete-at-crash = 'done'", appending, false), Some(3));
    let syncing = "job_event.sync#3.after";
    assert_eq!(left_of_log("incomplete-at-crash = 'done'", syncing, true), Some(3), "the sync was done");
    assert_eq!(left_of_log("incomplete-at-crash = 'not-done'", syncing, true), Some(2));
}

#[test]
fn messages_under_way_die_with_their_sender_only_if_the_scenario_says_so() {
    let asked = |option: &str| {
        let scenario = scenario(&format!(
            "[network]\nin-flight-at-crash = '{option}'\n[cluster]\nrestart-after = 'never'\n\
             [expect]\noutcome = 'stuck'\n\
             [[fault]]\nat = 'job-manager/1:RequestJobStatus#6.after'\ndo = 'crash job-manager'\n"
        ));
        let mut options = options();
        options.keep_text = true;
        let outcome = run(&scenario, &program(), &options);
        outcome.detail.text.iter().filter(|line| line.contains("RequestJobStatus")).count()
    };
    assert_eq!((asked("delivered"), asked("lost")), (6, 3));
}

#[test]
fn a_message_to_a_dead_incarnation_never_reaches_the_next() {
    let mut scenario = scenario("");
    let at = "task-manager-1/1:executor@1.0".parse().unwrap();
    let action = Action::Crash { process: ProcessId::TaskManager(1), machine: false };
    // Back at once, so that what was sent to the first incarnation is still under way.
    let restart_after = Some(RestartAfter::After(std::time::Duration::ZERO));
    scenario.faults.push(Fault { at: Trigger::Point(at), action, restart_after });
    let at = "job-manager/1:RequestJobStatus#1.after".parse().unwrap();
    scenario.faults[0].at = Trigger::Point(at);
    let mut options = options();
    options.keep_text = true;
    let outcome = run(&scenario, &program(), &options);
    let first =
        outcome.detail.text.iter().find(|line| line.contains("task-manager-1/") && line.contains("Request"));
    // Only the retry after the timeout arrives.
    assert!(first.is_some_and(|line| line.starts_with("5.")), "{first:?}");
    assert_eq!(outcome.ended, RunEnd::Finished);
}

#[test]
fn faults_together_with_a_crash_and_at_a_time_fire() {
    let scenario = scenario(
        "[[fault]]\nat = 't = 9 ms'\ndo = 'crash job-manager'\n\
         [[fault]]\nat = 'crash of job-manager/1'\ndo = 'crash task-manager-3'\nrestart-after = '2 s'\n\
         [[fault]]\nat = 'crash of job-manager/2'\ndo = 'crash task-manager-1'\n",
    );
    let outcome = run(&scenario, &program(), &options());
    assert_eq!(outcome.vacuous, [2]);
    let at = |kind: &TraceKind, process| {
        outcome
            .trace
            .iter()
            .filter(|event| event.process == process && event.what == *kind)
            .map(|event| event.time.0)
            .next_back()
    };
    let crashed = TraceKind::Crashed { point: None, machine: false };
    assert_eq!(at(&crashed, ProcessId::JOB_MANAGER), Some(9_000_000));
    assert_eq!(at(&crashed, ProcessId::TaskManager(3)), Some(9_000_000));
    assert_eq!(at(&TraceKind::Started, ProcessId::JOB_MANAGER), Some(1_009_000_000));
    assert_eq!(at(&TraceKind::Started, ProcessId::TaskManager(3)), Some(2_009_000_000));
    assert_eq!(outcome.ended, RunEnd::Finished);
    assert_eq!(outcome.output["result"], "done");
}
