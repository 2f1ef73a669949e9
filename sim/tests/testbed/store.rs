//! The job event store on a disk that fails, is slow, or lies: the job goes on, and what a base
//! recorded survives the next crash.

use std::path::{Path, PathBuf};

use revenant::actor::Time;
use revenant::ids::{ExecutionAttemptId, ProcessId};
use revenant::note::Note;
use revenant_sim::explore::{ExploreOptions, explore};
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Action, Fault, Scenario, Trigger};
use revenant_sim::trace::{RunOutcome, TraceKind};

use super::program;

fn load(name: &str) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs the scenario, which must keep all promises and have every fault fire.
fn kept(scenario: &Scenario) -> RunOutcome {
    scenario.check(&program()).unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(scenario, &program(), &RunOptions::default());
    assert!(outcome.vacuous.is_empty(), "vacuous: {:?}", outcome.vacuous);
    let judge = Judge::new(scenario, &program()).expect("the job has a reference");
    judge.judge(&outcome).unwrap_or_else(|violation| panic!("{violation}"));
    outcome
}

fn notes(outcome: &RunOutcome) -> impl Iterator<Item = (Time, &Note)> {
    outcome.trace.iter().filter_map(|event| match &event.what {
        TraceKind::Note(note) => Some((event.time, note)),
        _ => None,
    })
}

fn warned(outcome: &RunOutcome, what: &str) -> Option<Time> {
    notes(outcome).find_map(|(time, note)| match note {
        Note::Warning { text } if text.contains(what) => Some(time),
        _ => None,
    })
}

/// When the client learnt the end.
fn end(outcome: &RunOutcome) -> Time {
    let exited = outcome
        .trace
        .iter()
        .find(|event| event.process == ProcessId::Client && matches!(event.what, TraceKind::Exited { .. }));
    exited.expect("the client ends").time
}

fn at(time: Time, action: &str) -> Fault {
    Fault { at: Trigger::Time(time), action: action.parse().expect("it is an action"), restart_after: None }
}

const CRASH: Action = Action::Crash { process: ProcessId::JOB_MANAGER, machine: false };

#[test]
fn both_scenarios_survive_a_crash_of_the_job_manager_at_points_of_every_part_of_the_run() {
    for name in ["lineitem-store-fails.toml", "lineitem-store-slow.toml"] {
        let file = PathBuf::from("scenarios").join(name);
        let options = ExploreOptions { file, limit: Some(40), ..ExploreOptions::default() };
        let report = explore(&load(name), &program(), &options).expect("the job has a reference");
        assert!(report.failures.is_empty() && report.vacuous == 0, "{name}\n{report}");
        assert!(report.tried == 40 && report.reruns.max > 0, "{name}\n{report}");
    }
}

#[test]
fn what_finished_while_the_store_failed_survives_a_crash_once_the_base_is_durable() {
    let mut scenario = load("lineitem-store-fails.toml");
    let outcome = kept(&scenario);
    let failed = warned(&outcome, "job event store: ").expect("the store fails");
    let works = warned(&outcome, "the job event store works again").expect("it works again");
    let meanwhile: Vec<ExecutionAttemptId> = notes(&outcome)
        .filter(|(time, _)| failed < *time && *time < works)
        .filter_map(|(_, note)| match note {
            Note::FinishAccepted { attempt, .. } => Some(*attempt),
            _ => None,
        })
        .collect();
    assert!(meanwhile.len() > 1, "{meanwhile:?}");
    scenario.faults.push(Fault { at: Trigger::Time(works), action: CRASH, restart_after: None });
    let outcome = kept(&scenario);
    let recovered = notes(&outcome).filter_map(|(_, note)| match note {
        Note::Recovered { kept, .. } => Some(kept),
        _ => None,
    });
    let recovered = recovered.last().expect("a leader follows");
    assert!(meanwhile.iter().all(|attempt| recovered.contains(attempt)), "{meanwhile:?} {recovered:?}");
}

#[test]
fn a_store_that_takes_a_minute_for_every_operation_does_not_make_the_job_longer() {
    let slow = kept(&load("lineitem-store-slow.toml"));
    let mut unrecorded = load("lineitem-store-slow.toml");
    unrecorded.faults.clear();
    unrecorded.config.set("execution.batch.job-recovery.enabled", "false").expect("it is an option");
    // Not judged: what nobody records is released before it is durable.
    let unrecorded = run(&unrecorded, &program(), &RunOptions::default());
    // Opening the store takes some syncs at the start.
    let (with, without) = (end(&slow).0, end(&unrecorded).0);
    assert!(with < without + without / 4, "{with} ns with a slow store, {without} ns without recording");
}

#[test]
fn a_store_that_never_works_lets_the_job_run_unrecorded_from_the_start_and_a_crash_begins_it_anew() {
    let mut scenario = load("lineitem-store-fails.toml");
    scenario.faults = vec![at(Time(0), "disk full job_event")];
    let outcome = kept(&scenario);
    assert!(warned(&outcome, "starts over without its job event store").is_some());
    scenario.faults.push(at(Time(10_080_000_000), "crash job-manager"));
    kept(&scenario);
}

#[test]
fn a_leader_that_cannot_read_the_log_in_time_starts_over_and_the_next_one_finds_it() {
    let mut scenario = load("lineitem-store-fails.toml");
    scenario.faults = vec![
        at(Time(80_000_000), "crash job-manager"),
        at(Time(80_000_001), "disk fail job_event"),
        at(Time(11_140_000_000), "disk heal job_event"),
    ];
    let outcome = kept(&scenario);
    assert!(warned(&outcome, "starts over without its job event store").is_some());
    scenario.faults.push(at(Time(11_139_000_000), "crash job-manager"));
    kept(&scenario);
}

#[test]
fn a_corrupted_log_lets_the_job_start_over_once_and_a_second_crash_does_not_bring_it_back() {
    let mut scenario = load("lineitem-store-fails.toml");
    scenario.faults =
        vec![at(Time(80_000_000), "crash job-manager"), at(Time(80_000_001), "disk corrupt job_event at 60")];
    let damaged = |outcome: &RunOutcome| {
        let replayed = notes(outcome).filter_map(|(_, note)| match note {
            Note::Replayed { damage, finished, .. } => Some((damage.is_some(), finished.is_empty())),
            _ => None,
        });
        replayed.collect::<Vec<_>>()
    };
    let outcome = kept(&scenario);
    assert_eq!(damaged(&outcome), [(false, true), (true, true)]);
    let again = notes(&outcome).filter(|(_, note)| matches!(note, Note::Replayed { .. })).last();
    let (again, _) = again.expect("it replays");
    scenario.faults.push(at(Time(again.0 + 1_000_000), "crash job-manager"));
    assert_eq!(damaged(&kept(&scenario)), [(false, true), (true, true), (false, true)]);
}

#[test]
fn a_byte_that_no_file_has_cannot_be_corrupted_and_the_run_is_vacuous() {
    let mut scenario = load("lineitem-store-fails.toml");
    scenario.faults = vec![at(Time(80_000_000), "disk corrupt job_event at 1000000")];
    assert_eq!(run(&scenario, &program(), &RunOptions::default()).vacuous, [0]);
}

#[test]
fn a_fault_of_the_disk_at_a_crash_point_meets_exactly_what_begins_there() {
    let mut scenario = load("lineitem-store-fails.toml");
    let point = "job-manager/1:job_event.append#3.before".parse().expect("it is a crash point");
    scenario.faults[0].at = Trigger::Point(point);
    let outcome = kept(&scenario);
    let appended = outcome.trace.iter().position(|event| matches!(event.what, TraceKind::DiskFault(_)));
    assert!(appended.is_some());
    let warning = notes(&outcome).find_map(|(_, note)| match note {
        Note::Warning { text } if text.contains("append of ha:") => Some(text.clone()),
        _ => None,
    });
    assert!(warning.is_some(), "the third append fails");
}
