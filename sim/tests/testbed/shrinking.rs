//! What shrinking makes of a failing scenario: it fails in the same way, and nothing more can be taken from it.

use std::time::Duration;

use proptest::prelude::*;
use revenant::planted::PlantedBug;
use revenant_sim::explore::bug_name;
use revenant_sim::run::{Collect, RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario};
use revenant_sim::shrink::{Limits, Shrunk, Size, failure_of, shrink, steps};

use super::properties::config_with;
use super::{LINEITEM, program, scenario};

/// What plays no part in any of the failures.
const NOISE: [&str; 6] = [
    "[[fault]]\nat = 't = 20 ms'\ndo = 'slow job-manager to any by 1 ms'\n[[fault]]\nat = 't = 40 ms'\ndo = 'heal network'\n",
    "[[fault]]\nat = 't = 30 ms'\ndo = 'pause task-manager-3'\n[[fault]]\nat = 't = 60 ms'\ndo = 'resume task-manager-3'\n",
    "[[fault]]\nat = 'message RequestSplit#1'\ndo = 'delay by 3 ms'\n",
    "[clock.task-manager-2]\nskew = '+5 s'\n",
    "[disk]\nlatency = '1 us..90 us'\nincomplete-at-crash = 'torn'\n",
    "[network]\nlatency = '100 us..3 ms'\n",
];

/// With a crash at the first point in whose run the bug shows.
fn failing(noise: u8) -> Scenario {
    let mut text = format!("planted-bug = '{}'\n{LINEITEM}", bug_name(PlantedBug::SkipLastRecord));
    for (_, more) in NOISE.iter().enumerate().filter(|(index, _)| noise & 1 << index != 0) {
        text.push_str(more);
    }
    let scenario = scenario(&text);
    let collecting = RunOptions { collect: Collect::JobManagers, ..RunOptions::default() };
    let points = run(&scenario, &program(), &collecting).detail.points;
    let crashes = points.into_iter().map(|found| {
        let mut crashed = scenario.clone();
        crashed.faults.insert(0, Fault::crash_at(found.point, true));
        crashed
    });
    let fails = |scenario: &Scenario| failure_of(scenario, &program()).is_ok_and(|fails| fails.is_some());
    crashes.into_iter().find(fails).expect("the bug shows somewhere")
}

fn shrunk(scenario: &Scenario, threads: usize) -> Shrunk {
    let limits = Limits { threads, budget: Duration::from_mins(5) };
    let mut kept = None;
    let shrunk = shrink(scenario, &program(), limits, |best| {
        kept = Some(best.clone());
        Ok(())
    });
    let shrunk = shrunk.unwrap_or_else(|error| panic!("{error}\n{}", scenario.to_toml()));
    assert_eq!(kept.as_ref(), Some(&shrunk.scenario), "the best is told");
    shrunk
}

proptest! {
    #![proptest_config(config_with(2))]

    #[test]
    fn no_single_step_of_a_shrunk_scenario_fails_in_the_same_way(noise in 0..64u8) {
        let program = program();
        let before = failing(noise);
        let fails = failure_of(&before, &program).expect("every fault fires").expect("it fails");
        let Shrunk { scenario, is_minimal, .. } = shrunk(&before, 2);
        prop_assert!(is_minimal);
        let again = failure_of(&scenario, &program).expect("every fault fires").expect("it fails");
        prop_assert_eq!(Some(&again.failure), scenario.failure.as_ref());
        prop_assert!(again.failure.is_like(&fails.failure));
        let size = Size::of(&scenario);
        prop_assert!(size.faults == 1 && size.lines < Size::of(&before).lines, "{}", size);
        for step in steps(&scenario, &program) {
            if let Ok(Some(fails)) = failure_of(&step, &program) {
                let same = fails.failure.is_like(&again.failure) && fails.work <= again.work;
                prop_assert!(!same, "one step more still fails:\n{}", step.to_toml());
            }
        }
    }
}

#[test]
fn shrinking_does_not_depend_on_the_number_of_threads() {
    let before = failing(0b1011);
    assert_eq!(shrunk(&before, 1).scenario, shrunk(&before, 3).scenario);
}

#[test]
fn a_scenario_that_keeps_all_promises_is_not_shrunk() {
    let limits = Limits { threads: 1, budget: Duration::from_mins(1) };
    let error = shrink(&scenario(LINEITEM), &program(), limits, |_| Ok(())).unwrap_err();
    assert!(error.contains("nothing to shrink"), "{error}");
}

#[test]
fn when_the_time_is_over_the_best_so_far_is_what_comes_out() {
    let before = failing(0b1111);
    let limits = Limits { threads: 1, budget: Duration::ZERO };
    let shrunk = shrink(&before, &program(), limits, |_| Ok(())).expect("it fails");
    assert!(!shrunk.is_minimal);
    assert_eq!(
        shrunk.scenario.failing(shrunk.scenario.failure.clone().expect("it has one")),
        shrunk.scenario
    );
    assert_eq!(Scenario { failure: None, ..shrunk.scenario }, before);
}
