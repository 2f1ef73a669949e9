//! Exploring the unbroken engine: every crash point of every scenario of the project.
//!
//! `MADSIM_TEST_SEED` is the first seed, in place of each scenario's own, and `MADSIM_TEST_NUM` the
//! number of seeds, as for any test on madsim.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use revenant_sim::explore::{ExploreOptions, Report, explore};
use revenant_sim::scenario::{Outcome, Scenario};

use super::{LINEITEM, explored, program, scenario_files};

/// What these are about is what a machine's death leaves of the log.
const MACHINE_DIES: [&str; 1] = ["lineitem-local-log.toml"];

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is '{value}', which is not a number")))
}

fn explored_file(file: &Path) -> Report {
    let scenario = Scenario::load(file, &program()).unwrap_or_else(|error| panic!("{error}"));
    let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
    let options = ExploreOptions {
        file: PathBuf::from("scenarios").join(name),
        machine: MACHINE_DIES.contains(&name),
        seed: variable("MADSIM_TEST_SEED"),
        seeds: variable("MADSIM_TEST_NUM").unwrap_or(1),
        ..ExploreOptions::default()
    };
    explore(&scenario, &program(), &options).expect("the job has a reference")
}

#[test]
fn every_scenario_survives_a_crash_of_its_job_manager_at_every_point() {
    for file in scenario_files("") {
        let report = explored_file(&file);
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
