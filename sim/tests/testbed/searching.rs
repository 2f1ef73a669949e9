//! The search with all strategies: what it tries does not depend on the machine, it finds what is planted, and its
//! parts add up.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use revenant::planted::PlantedBug;
use revenant_sim::scenario::Scenario;
use revenant_sim::search::{Done, Kind, Limits, Outcome, Report, search};

use super::{LINEITEM, program, scenario};

const LONG: Duration = Duration::from_mins(10);

fn searched(scenario: &Scenario, limits: &Limits<'_>, told: impl Fn(&Done) + Sync) -> Report {
    search(scenario, &program(), limits, told).unwrap_or_else(|error| panic!("{error}"))
}

fn limits<'a>(strategies: &'a [Kind], stop: &'a AtomicBool) -> Limits<'a> {
    Limits { budget: LONG, threads: 2, strategies, shard: (0, 1), failures: None, stop }
}

#[test]
fn every_single_crash_is_tried_once_and_shards_do_so_together() {
    let scenario = scenario(LINEITEM);
    let stop = AtomicBool::new(false);
    let all = searched(&scenario, &limits(&[Kind::Once], &stop), |_| ());
    let share = all.shares[0];
    assert!(all.failures.is_empty() && share.vacuous == 0, "{all}");
    assert!(share.is_exhausted && share.run == share.cases && share.cases < share.points, "{all}");
    let mut run = 0;
    for part in 0..3 {
        let limits = Limits { shard: (part, 3), ..limits(&[Kind::Once], &stop) };
        let part = searched(&scenario, &limits, |_| ());
        assert_eq!(part.shares[0].cases, share.cases);
        run += part.shares[0].run;
    }
    assert_eq!(run, share.run);
}

/// The first cases of each strategy, and what came of them: a number of cases, not a time.
fn first(threads: usize, count: usize) -> Vec<(String, u64, u64)> {
    let stop = AtomicBool::new(false);
    let seen = Mutex::new(0);
    let told = |_: &Done| {
        let mut seen = seen.lock().expect("nobody panics with it");
        *seen += 1;
        stop.store(*seen >= count, std::sync::atomic::Ordering::Relaxed);
    };
    let strategies = [Kind::Twice, Kind::Weighted, Kind::Swarm];
    let limits = Limits { threads, ..limits(&strategies, &stop) };
    let text = format!(
        "{LINEITEM}\"restart-strategy.type\" = \"fixed-delay\"\n\"restart-strategy.fixed-delay.attempts\" = 10\n"
    );
    let report = searched(&scenario(&text), &limits, told);
    assert!(report.is_stopped && report.failures.is_empty(), "{report}");
    report.shares.iter().map(|share| (share.kind.name().to_owned(), share.points, share.cases)).collect()
}

#[test]
fn all_strategies_take_their_turns_whatever_the_number_of_threads() {
    let one = first(1, 480);
    assert!(one.iter().all(|(_, _, cases)| *cases > 0), "{one:?}");
    assert_eq!(one, first(3, 480));
}

#[test]
fn a_planted_bug_is_found_by_each_strategy_that_can_show_it() {
    let mut bugged = scenario(LINEITEM);
    bugged.planted_bug = Some(PlantedBug::SkipLastRecord);
    for kind in [Kind::Once, Kind::Twice, Kind::Weighted] {
        let stop = AtomicBool::new(false);
        let told = |done: &Done| {
            if matches!(done.outcome, Outcome::Failed { .. }) {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let report = searched(&bugged, &limits(&[kind], &stop), told);
        assert!(report.failures.iter().any(|found| found.oracle == "S6"), "{report}");
    }
}

#[test]
fn a_scenario_that_does_not_end_as_it_says_is_refused() {
    let stop = AtomicBool::new(false);
    let other = scenario(&format!("{LINEITEM}[expect]\noutcome = 'failed'\n"));
    let error = search(&other, &program(), &limits(&Kind::ALL, &stop), |_| ()).unwrap_err();
    assert!(error.contains("without further faults"), "{error}");
}

#[test]
fn a_promise_that_is_broken_without_more_faults_is_all_that_is_found() {
    let stop = AtomicBool::new(false);
    let mut bugged = scenario(LINEITEM);
    bugged.planted_bug = Some(PlantedBug::ReleaseTooEarly);
    let report = searched(&bugged, &limits(&Kind::ALL, &stop), |_| ());
    let [found] = report.failures.as_slice() else { panic!("{report}") };
    assert_eq!((found.oracle.as_str(), found.runs, report.why_idle()), ("S11", 1, None));
}
