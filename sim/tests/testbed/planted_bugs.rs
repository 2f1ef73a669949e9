//! The canaries: each way to break recovery that the engine can be given must be seen. A judge that
//! passes one of these is blind.

use revenant::planted::PlantedBug;

use super::{LINEITEM, explored};

/// A TaskManager's machine dies together with the JobManager, and its partitions with it.
const AND_A_TASK_MANAGER: &str = r#"
[[fault]]
at = "crash of job-manager/1"
do = "crash task-manager-1"
"#;

/// Explores with the bug; the failures must include one by one of these oracles.
fn seen_by(bug: PlantedBug, scenario: &str, oracles: &[&str]) {
    let report = explored(scenario, Some(bug), None);
    assert!(!report.is_good(), "nobody saw {bug:?}\n{report}");
    let seen: std::collections::BTreeSet<_> = report.failures.iter().map(|failure| failure.oracle).collect();
    assert!(oracles.iter().any(|oracle| seen.contains(oracle)), "{bug:?} was seen by {seen:?}\n{report}");
}

#[test]
fn a_replay_that_skips_the_last_record_is_seen() {
    seen_by(PlantedBug::SkipLastRecord, LINEITEM, &["E1"]);
}

#[test]
fn a_recovery_that_does_not_wait_for_partitions_is_seen() {
    seen_by(PlantedBug::ForgetPartitions, LINEITEM, &["E1"]);
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
    seen_by(PlantedBug::FinishWithoutPartitions, &scenario, &["S1", "S3", "L1"]);
}

#[test]
fn a_reset_that_keeps_its_splits_is_seen() {
    seen_by(PlantedBug::KeepSplits, LINEITEM, &["S1", "S2", "L1"]);
}

#[test]
fn the_engine_without_a_bug_also_survives_with_the_task_manager() {
    let report = explored(&format!("{LINEITEM}{AND_A_TASK_MANAGER}"), None, None);
    assert!(report.is_good(), "{report}");
}
