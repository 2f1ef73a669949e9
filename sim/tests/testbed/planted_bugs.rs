//! The canaries: each way to break recovery that the engine can be given must be seen. A judge that
//! passes one of these is blind.

use std::collections::BTreeSet;
use std::path::Path;

use revenant::planted::PlantedBug;
use revenant_sim::explore::{ExploreOptions, Pairs, Report, bug_name, explore};
use revenant_sim::failure::Failure;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::Scenario;
use revenant_sim::trace::RunEnd;

use super::{LINEITEM, explored, explored_seed, program, scenario_files};

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

/// What the README and docs/planted-bugs.md promise: `cargo sim explore FILE --bug …` says that the bug was noticed.
#[test]
fn each_bug_is_noticed_in_the_scenario_that_is_named_for_it() {
    for (bug, name) in [
        (PlantedBug::SkipLastRecord, "lineitem.toml"),
        (PlantedBug::ForgetPartitions, "lineitem-slow-network.toml"),
        (PlantedBug::ReleaseTooEarly, "lineitem.toml"),
        (PlantedBug::AcceptOlderAttempt, "lineitem.toml"),
        (PlantedBug::FinishWithoutPartitions, "lineitem-task-manager-loss.toml"),
        (PlantedBug::KeepSplits, "lineitem.toml"),
        (PlantedBug::SkipInitializeScan, "lineitem.toml"),
        (PlantedBug::SkipCompletionCheck, "lineitem-commit-request-lost.toml"),
        (PlantedBug::WipeNewPartitions, "lineitem-unclaimed.toml"),
        (PlantedBug::FinishVacuously, "single-source.toml"),
        (PlantedBug::DuplicateSplits, "lineitem.toml"),
        (PlantedBug::TellNoMoreSplitsOnce, "lineitem.toml"),
        (PlantedBug::AcknowledgeBeforeSync, "lineitem.toml"),
        (PlantedBug::ForgetOlderFiles, "lineitem.toml"),
    ] {
        let report = explored_file(name, Some(bug), None);
        assert!(report.is_as_expected(), "{name}\n{report}");
    }
    let pairs = Some(Pairs::Drawn(1000));
    let report = explored_file("readers-in-waves.toml", Some(PlantedBug::ForgetRecoveryResets), pairs);
    assert!(report.is_as_expected(), "{report}");
}

#[test]
fn the_scenarios_that_were_made_for_bugs_are_good_without_one() {
    for name in ["lineitem-commit-request-lost.toml", "lineitem-unclaimed.toml", "readers-in-waves.toml"] {
        let report = explored_file(name, None, None);
        assert!(report.is_as_expected(), "{name}\n{report}");
    }
}

/// For each bug a scenario so small that one sees why it fails: it fails as it did when it was shrunk, and only with the
/// bug.
#[test]
fn the_shrunk_scenario_of_each_bug_fails_as_it_did_and_only_with_the_bug() {
    let program = program();
    let mut bugs = Vec::new();
    for file in scenario_files("planted") {
        let shown = file.display();
        let mut scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
        let bug = scenario.planted_bug.unwrap_or_else(|| panic!("{shown} has no planted bug"));
        assert_eq!(file.file_stem().and_then(|stem| stem.to_str()), Some(bug_name(bug)));
        bugs.push(bug);
        assert!(scenario.faults.len() <= 3, "{shown} has more than three faults");
        let expected = scenario.failure.take().unwrap_or_else(|| panic!("{shown} has no [failure]"));

        let with = run(&scenario, &program, &RunOptions::default());
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        let violation = judge.judge(&with).err().unwrap_or_else(|| panic!("{shown} keeps all promises"));
        assert_eq!(
            Failure::of(&with, &violation),
            expected,
            "{shown} fails in another way; if that should be, shrink it anew as docs/planted-bugs.md says"
        );
        assert!(with.vacuous.is_empty(), "{shown}: the faults {:?} never fired", with.vacuous);

        scenario.planted_bug = None;
        let without = run(&scenario, &program, &RunOptions::default());
        judge.judge(&without).unwrap_or_else(|violation| panic!("{shown} without the bug: {violation}"));
        assert!(without.vacuous.is_empty(), "{shown}: without the bug {:?} never fired", without.vacuous);
        assert_eq!(without.ended, RunEnd::Finished, "{shown}");
    }
    bugs.sort_unstable();
    assert_eq!(bugs, PlantedBug::ALL);
}

fn explored_file(name: &str, bug: Option<PlantedBug>, pairs: Option<Pairs>) -> Report {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    let scenario = Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"));
    let options = ExploreOptions { file, bug, pairs, ..ExploreOptions::default() };
    explore(&scenario, &program(), &options).expect("the job has a reference")
}
