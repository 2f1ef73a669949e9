//! The canaries: each way to break recovery that the engine can be given must be seen. A judge that
//! passes one of these is blind.

use std::collections::BTreeSet;
use std::path::Path;

use revenant::planted::PlantedBug;
use revenant_sim::explore::{ExploreOptions, Report, explore};
use revenant_sim::scenario::Scenario;

use super::{LINEITEM, explored, explored_seed, program};

/// Not every schedule gives a bug the chance to do harm; one of so many must.
const SEEDS: std::ops::Range<u64> = 1..7;

/// A TaskManager dies together with the JobManager, and its partitions with it.
const AND_A_TASK_MANAGER: &str = r#"
[[fault]]
at = "crash of job-manager/1"
do = "crash task-manager-1"
"#;

const SLOW_NETWORK: &str = r#"
[network]
latency = "5 ms..20 ms"
"#;

/// Explores with the bug; the failures must include one by one of these oracles.
fn seen_by(bug: PlantedBug, scenario: &str, oracles: &[&str]) {
    let mut seen = BTreeSet::new();
    for seed in SEEDS {
        let report = explored_seed(scenario, seed, Some(bug), None);
        seen.extend(report.failures.iter().map(|failure| failure.oracle));
        if oracles.iter().any(|oracle| seen.contains(oracle)) {
            assert!(!report.is_good(), "{report}");
            return;
        }
    }
    panic!("{bug:?} should be seen by one of {oracles:?}, it was seen by {seen:?}");
}

#[test]
fn a_replay_that_skips_the_last_record_is_seen() {
    seen_by(PlantedBug::SkipLastRecord, LINEITEM, &["S6", "E1"]);
}

/// On a fast network the partitions are reported before the log is replayed.
#[test]
fn a_recovery_that_does_not_wait_for_partitions_is_seen() {
    let scenario = format!("{LINEITEM}{SLOW_NETWORK}");
    seen_by(PlantedBug::ForgetPartitions, &scenario, &["S6", "E1"]);
}

#[test]
fn a_release_before_finishes_are_durable_is_seen() {
    seen_by(PlantedBug::ReleaseTooEarly, LINEITEM, &["S11"]);
}

#[test]
fn a_recovery_that_accepts_partitions_of_unrecorded_attempts_is_seen() {
    seen_by(PlantedBug::AcceptOlderAttempt, LINEITEM, &["S7"]);
}

#[test]
fn a_recovery_that_keeps_finishes_without_partitions_is_seen() {
    let scenario = format!("{LINEITEM}{AND_A_TASK_MANAGER}");
    seen_by(PlantedBug::FinishWithoutPartitions, &scenario, &["S6", "S1", "S3", "L1"]);
}

#[test]
fn a_reset_that_keeps_its_splits_is_seen() {
    seen_by(PlantedBug::KeepSplits, LINEITEM, &["S16"]);
}

/// The same scenarios without the bugs.
#[test]
fn the_engine_without_a_bug_survives_all_of_this() {
    for more in ["", SLOW_NETWORK] {
        let report = explored(&format!("{LINEITEM}{more}"), None, None);
        assert!(report.is_good(), "{report}");
    }
    // At the last points the TaskManager may have ended by itself before it can die.
    let report = explored(&format!("{LINEITEM}{AND_A_TASK_MANAGER}"), None, None);
    assert!(report.failures.is_empty() && report.vacuous * 20 < report.points, "{report}");
}

/// What the README promises: `cargo sim explore FILE --bug …` says that the bug was noticed.
#[test]
fn each_bug_is_noticed_in_the_scenario_that_is_named_for_it() {
    for (bug, name) in [
        (PlantedBug::SkipLastRecord, "lineitem.toml"),
        (PlantedBug::ForgetPartitions, "lineitem-slow-network.toml"),
        (PlantedBug::ReleaseTooEarly, "lineitem.toml"),
        (PlantedBug::AcceptOlderAttempt, "lineitem.toml"),
        (PlantedBug::FinishWithoutPartitions, "lineitem-task-manager-loss.toml"),
        (PlantedBug::KeepSplits, "lineitem.toml"),
    ] {
        let report = explored_file(name, bug);
        assert!(report.is_as_expected(), "{name}\n{report}");
    }
}

fn explored_file(name: &str, bug: PlantedBug) -> Report {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let scenario = Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"));
    let options = ExploreOptions { file, bug: Some(bug), ..ExploreOptions::default() };
    explore(&scenario, &program(), &options).expect("the job has a reference")
}
