//! Processes that stand still, start again or find an old disk, and clocks that are wrong: each does what
//! it says, and its heal ends it.

use revenant::actor::Time;
use revenant::ids::ProcessId;
use revenant::note::Note;
use revenant_sim::run::{Collect, run};
use revenant_sim::scenario::Scenario;
use revenant_sim::trace::{RunEnd, RunOutcome, TraceEvent, TraceKind};

use crate::toy::{options, program, scenario};

fn watched(scenario: &Scenario) -> RunOutcome {
    let mut options = options();
    options.keep_text = true;
    run(scenario, &program(), &options)
}

fn find(outcome: &RunOutcome, what: &TraceKind) -> Option<Time> {
    outcome.trace.iter().find(|event| event.what == *what).map(|event| event.time)
}

/// When the master noted that so many rounds are done.
fn rounds(outcome: &RunOutcome) -> Vec<(Time, u64)> {
    let round = |event: &TraceEvent| match &event.what {
        TraceKind::Note(Note::Warning { text }) => {
            Some((event.time, text.strip_prefix("round ")?.parse().ok()?))
        }
        _ => None,
    };
    outcome.trace.iter().filter_map(round).collect()
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

#[test]
fn a_paused_process_handles_nothing_until_it_goes_on_and_misses_nothing() {
    let mut options = options();
    options.collect = Collect::Of(ProcessId::JOB_MANAGER);
    let calm = scenario("");
    let points = run(&calm, &program(), &options).detail.points;
    let clean = watched(&calm);
    for found in &points {
        let outcome = watched(&scenario(&format!(
            "[[fault]]\nat = '{}'\ndo = 'pause job-manager'\n[[fault]]\nat = 't = 3 s'\ndo = 'resume job-manager'\n",
            found.point
        )));
        let paused = find(&outcome, &TraceKind::Paused).unwrap_or_else(|| panic!("{}", found.point));
        assert_eq!(find(&outcome, &TraceKind::Resumed), Some(Time(3_000_000_000)), "{}", found.point);
        assert_eq!(
            (outcome.ended, outcome.output),
            (RunEnd::Finished, clean.output.clone()),
            "{}",
            found.point
        );
        let of_master = |line: &&String| line.contains(" job-manager/1:");
        let handled = outcome.detail.text.iter().filter(of_master);
        let meanwhile = handled.filter(|line| {
            let at: f64 = line.split('s').next().unwrap().parse().unwrap();
            seconds(paused) < at && at < 3.0
        });
        assert_eq!(meanwhile.count(), 0, "{}", found.point);
        assert_eq!(outcome.vacuous, [0; 0], "{}", found.point);
    }
}

#[test]
fn a_paused_process_can_die_and_one_that_never_goes_on_is_named() {
    let pause = "[[fault]]\nat = 't = 5 ms'\ndo = 'pause job-manager'\n";
    let outcome =
        watched(&scenario(&format!("{pause}[[fault]]\nat = 't = 1 s'\ndo = 'crash job-manager'\n")));
    assert_eq!((outcome.ended, &outcome.vacuous[..]), (RunEnd::Finished, &[][..]));
    let RunEnd::Stuck { why } = watched(&scenario(pause)).ended else { panic!("it is stuck") };
    assert!(why.contains("job-manager/1 paused"), "{why}");
}

#[test]
fn what_a_paused_process_had_asked_of_the_disk_is_done_meanwhile() {
    // The machine loses nothing of what was under way when its process stood still.
    let text = "[disk]\nsync-latency = '50 ms'\nlatency = '50 ms'\n\
                [[fault]]\nat = 'job-manager/1:job_event.append#1.after'\ndo = 'pause job-manager'\n\
                [[fault]]\nat = 't = 2 s'\ndo = 'crash job-manager'\n";
    let outcome = watched(&scenario(text));
    let appended =
        outcome.trace.iter().find(|event| matches!(event.what, TraceKind::LogAppended { .. })).unwrap();
    let paused = find(&outcome, &TraceKind::Paused).unwrap();
    assert_eq!(appended.time, Time(paused.0 + 50_000_000));
    assert_eq!(outcome.ended, RunEnd::Finished);
}

#[test]
fn a_process_that_should_stay_down_starts_when_it_is_told_to() {
    let crash = "[[fault]]\nat = 't = 5 ms'\ndo = 'crash job-manager'\nrestart-after = 'never'\n";
    assert!(matches!(watched(&scenario(crash)).ended, RunEnd::Stuck { .. }));
    let outcome =
        watched(&scenario(&format!("{crash}[[fault]]\nat = 't = 4 s'\ndo = 'start job-manager'\n")));
    let started =
        |event: &&TraceEvent| event.process == ProcessId::JOB_MANAGER && event.what == TraceKind::Started;
    let starts: Vec<Time> = outcome.trace.iter().filter(started).map(|event| event.time).collect();
    assert_eq!((starts.len(), starts[1]), (2, Time(4_000_000_000)));
    assert_eq!((outcome.ended, &outcome.vacuous[..]), (RunEnd::Finished, &[][..]));
}

#[test]
fn a_process_that_is_started_before_its_time_starts_once() {
    let text = "[[fault]]\nat = 't = 5 ms'\ndo = 'crash job-manager'\nrestart-after = '2 s'\n\
                [[fault]]\nat = 't = 1 s'\ndo = 'start job-manager'\n\
                [cluster]\nrestart-after = 'never'\n";
    let outcome = watched(&scenario(text));
    let starts = outcome
        .trace
        .iter()
        .filter(|event| event.process == ProcessId::JOB_MANAGER && event.what == TraceKind::Started);
    assert_eq!((starts.count(), outcome.ended), (2, RunEnd::Finished));
}

#[test]
fn an_old_disk_knows_only_what_was_durable_when_it_was_remembered() {
    let text = "[[fault]]\nat = 'job-manager/1:job_event.sync#3.after'\ndo = 'snapshot disk of job-manager'\n\
                [[fault]]\nat = 'job-manager/1:job_event.sync#6.after'\ndo = 'crash machine of job-manager'\n\
                [[fault]]\nat = 'crash of job-manager/1'\ndo = 'restore disk of job-manager'\n";
    let outcome = watched(&scenario(text));
    let done: Vec<u64> = rounds(&outcome).into_iter().map(|(_, done)| done).collect();
    assert_eq!(done, [0, 1, 2, 3, 4, 5, 2, 3, 4, 5, 6, 7, 8], "the sync of the third round was under way");
    let left = outcome.trace.iter().rev().find_map(|event| match event.what {
        TraceKind::LogAfterCrash { length, .. } => Some(length),
        _ => None,
    });
    assert_eq!((left, outcome.ended), (Some(2), RunEnd::Finished));
}

/// When the master notices that an answer is missing, which it does after 5 s by its clock.
fn noticed(more: &str) -> f64 {
    let text = format!("[[fault]]\nat = 't = 10 ms'\ndo = 'crash task-manager-2'\n{more}");
    let outcome = watched(&scenario(&text));
    assert_eq!((&outcome.ended, &outcome.vacuous[..]), (&RunEnd::Finished, &[][..]), "{more}");
    let rounds = rounds(&outcome);
    let gap = rounds.windows(2).map(|pair| (pair[1].0.0 - pair[0].0.0, pair[1].0)).max().unwrap();
    seconds(gap.1)
}

#[test]
fn timers_go_by_the_clock_of_their_process() {
    let near = |more: &str, expected: f64| {
        let at = noticed(more);
        assert!((at - expected).abs() < 0.05, "{more}: {at}");
    };
    let fault = |at: &str, what: &str| format!("[[fault]]\nat = 't = {at}'\ndo = '{what}'\n");
    near("", 5.0);
    near(&fault("1 s", "clock of job-manager jump +3 s"), 2.0);
    near(&fault("1500 ms", "clock of job-manager jump +9 s"), 1.5);
    near(&fault("1 s", "clock of job-manager jump -2 s"), 7.0);
    near(&fault("1 s", "clock of job-manager drift +500000 ppm"), 1.0 + 4.0 / 1.5);
    near(&fault("1 s", "clock of job-manager drift -500000 ppm"), 9.0);
    near(&fault("1 s", "clock of task-manager-1 jump +3 s"), 5.0);
    near("[clock.job-manager]\ndrift = '-500000 ppm'\n", 10.0);
    near("[clock.job-manager]\nskew = '+1 h'\n", 5.0);
    let heal = fault("1 s", "heal clock of job-manager");
    near(&format!("{heal}[clock.job-manager]\nskew = '+2 s'\n"), 7.0);
    near(&format!("{heal}[clock.job-manager]\nskew = '-2 s'\n"), 3.0);
    let healed = [fault("1 s", "clock of job-manager jump -2 s"), fault("3 s", "heal clock of job-manager")];
    near(&healed.concat(), 5.0);
    let healed =
        [fault("1 s", "clock of job-manager drift -500000 ppm"), fault("3 s", "heal clock of job-manager")];
    near(&healed.concat(), 5.0);
}

#[test]
fn a_changed_clock_is_told() {
    let text = "[[fault]]\nat = 't = 1 s'\ndo = 'clock of client jump -2 s'\n";
    let outcome =
        watched(&scenario(&format!("{text}[[fault]]\nat = 't = 10 ms'\ndo = 'crash task-manager-2'\n")));
    let told: Vec<String> = outcome
        .trace
        .iter()
        .filter_map(|event| match &event.what {
            TraceKind::ClockChanged { fault: Some(fault), .. } => Some(fault.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["clock of client jump -2 s"]);
    // One that is wrong from the beginning is told of each incarnation.
    let crash = "[[fault]]\nat = 't = 10 ms'\ndo = 'crash task-manager-2'\n";
    let outcome = watched(&scenario(&format!("{crash}[clock.task-manager-2]\nskew = '+3 s'\n")));
    let told = outcome.trace.iter().filter_map(|event| match &event.what {
        TraceKind::ClockChanged { clock, fault: None } => Some((
            event.process,
            event.incarnation,
            clock.shows(event.time).0 % 60_000_000_000 - event.time.0,
        )),
        _ => None,
    });
    let worker = ProcessId::TaskManager(2);
    assert_eq!(told.collect::<Vec<_>>(), [(worker, 1, 3_000_000_000), (worker, 2, 3_000_000_000)]);
}

#[test]
fn a_fault_that_waits_for_an_operation_fires_when_it_meets_it() {
    let fault = |operation: &str| {
        let text = format!("[[fault]]\nat = 't = 1 ms'\ndo = 'disk fail sink on {operation}'\n");
        watched(&scenario(&text))
    };
    let outcome = fault("rename#1");
    let refused =
        outcome.trace.iter().position(|event| matches!(event.what, TraceKind::DiskRefused { .. })).unwrap();
    let fired =
        outcome.trace.iter().position(|event| event.what == TraceKind::FaultFired { fault: 0 }).unwrap();
    assert!(fired < refused && outcome.vacuous.is_empty());
    assert_eq!(fault("rename#9").vacuous, [0], "there is no such rename");
}
