//! Exploring the unbroken engine: every crash point of every scenario of the project.
//!
//! `MADSIM_TEST_SEED` is the first seed, in place of each scenario's own, and `MADSIM_TEST_NUM` the
//! number of seeds, as for any test on madsim.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use revenant_sim::explore::{Blow, ExploreOptions, Report, explore};
use revenant_sim::scenario::{Outcome, Scenario};

use super::{LINEITEM, explored, program, scenario, scenario_files};

/// What these are about is what a machine's death leaves of the log.
const MACHINE_DIES: [&str; 1] = ["lineitem-local-log.toml"];

const STANDBY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/standby.toml");

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is '{value}', which is not a number")))
}

fn explored_file(file: &Path, blow: Blow) -> Report {
    let scenario = Scenario::load(file, &program()).unwrap_or_else(|error| panic!("{error}"));
    let options = ExploreOptions {
        file: PathBuf::from("scenarios").join(name(file)),
        blow,
        seed: variable("MADSIM_TEST_SEED"),
        seeds: variable("MADSIM_TEST_NUM").unwrap_or(1),
        ..ExploreOptions::default()
    };
    explore(&scenario, &program(), &options).expect("the job has a reference")
}

fn name(file: &Path) -> &str {
    file.file_name().and_then(|name| name.to_str()).expect("a plain name")
}

#[test]
fn every_scenario_survives_a_crash_of_its_job_manager_at_every_point() {
    for file in scenario_files("") {
        let report = explored_file(&file, Blow::Crash { machine: MACHINE_DIES.contains(&name(&file)) });
        let scenario = Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"));
        let canceled = scenario.expect.outcome == Outcome::Canceled;
        println!("{}\n{report}", file.display());
        assert!(report.failures.is_empty() && report.vacuous == 0, "{}\n{report}", file.display());
        assert!(report.points > 100 && report.tried == report.points, "{}\n{report}", file.display());
        if canceled {
            continue; // Nothing runs again, and what is finished then does not matter.
        }
        assert!(report.reruns.max > 0, "{}\n{report}", file.display());
        // The scenarios' own seeds are chosen so that crashes meet finishes in every state.
        let own = std::env::var_os("MADSIM_TEST_SEED").is_none();
        assert!(!own || report.is_good(), "{}\n{report}", file.display());
    }
}

#[test]
fn a_change_of_leader_at_every_point_of_every_job_manager_is_survived() {
    for notice in [true, false] {
        let blow = Blow::ChangeLeader { notice };
        let report = explored_file(Path::new(STANDBY), blow);
        assert!(report.is_good() && report.points > 100 && report.reruns.max > 0, "{report}");
    }
}

#[test]
fn points_of_the_standby_are_explored_and_only_with_one_can_the_leader_change() {
    let blow = Blow::ChangeLeader { notice: true };
    let scenario = scenario(LINEITEM);
    let options = ExploreOptions { blow, seed: Some(3), ..ExploreOptions::default() };
    let error = explore(&scenario, &program(), &options).expect_err("nobody stands by");
    assert_eq!(error, "change leader: nobody stands by; set job-managers = 2 in [cluster]");
    let alone = explored(LINEITEM, None, None).points;
    let mut with_standby = scenario;
    with_standby.cluster.job_managers = 2;
    let both = explore(&with_standby, &program(), &options).expect("the job has a reference");
    assert!(both.is_good() && both.points > alone, "{both}");
}

#[test]
fn what_does_not_end_as_expected_even_without_a_crash_is_not_explored() {
    let cancelled = format!("{LINEITEM}[[fault]]\nat = 't = 60 ms'\ndo = 'cancel job'\n");
    let explored = |text: &str| explore(&scenario(text), &program(), &ExploreOptions::default());
    let error = explored(&cancelled).expect_err("it is cancelled");
    assert!(error.contains("the run does not end as the scenario expects (Finished)"), "{error}");
    assert!(explored(&format!("{cancelled}[expect]\noutcome = 'canceled'\n")).is_ok());
}

#[test]
fn the_report_is_the_same_at_any_number_of_threads() {
    let facts = |threads| {
        let mut report = explored(LINEITEM, None, Some(threads));
        report.took = std::time::Duration::ZERO;
        report.busy = std::time::Duration::ZERO;
        report.threads = 0;
        format!("{report:?}")
    };
    assert_eq!(facts(1), facts(3));
}
