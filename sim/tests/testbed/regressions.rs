//! Every situation in which the engine was once wrong, as a scenario and a test of its own. `docs/findings.md`
//! tells their stories.

use super::directory::judge_one;
use super::scenario_files;

macro_rules! regressions {
    ($($test:ident => $file:literal,)*) => {
        $(#[test]
        fn $test() {
            judge_one("regressions", $file);
        })*

        const TESTED: &[&str] = &[$($file),*];
    };
}

regressions! {
    crash_beyond_the_end => "crash-beyond-the-end.toml",
    deleted_log_comes_back => "deleted-log-comes-back.toml",
    deleted_output_comes_back => "deleted-output-comes-back.toml",
    event_file_begun_at_the_end => "event-file-begun-at-the-end.toml",
    exits_while_leases_are_lost => "exits-while-leases-are-lost.toml",
    finish_before_readable => "finish-before-readable.toml",
    finished_consumer_lost => "finished-consumer-lost.toml",
    header_before_creation => "header-before-creation.toml",
    high_availability_crash => "high-availability-crash.toml",
    log_deleted_by_a_leader_that_died => "log-deleted-by-a-leader-that-died.toml",
    pause_beyond_the_end => "pause-beyond-the-end.toml",
    registration_before_grant => "registration-before-grant.toml",
    released_by_a_replaced_leader => "released-by-a-replaced-leader.toml",
    rename_undone_before_sync => "rename-undone-before-sync.toml",
    replay_of_bytes_not_synced => "replay-of-bytes-not-synced.toml",
    shuffle_service_beyond_the_end => "shuffle-service-beyond-the-end.toml",
    stopped_before_the_end_is_heard => "stopped-before-the-end-is-heard.toml",
    task_for_a_dead_incarnation => "task-for-a-dead-incarnation.toml",
    zeros_within_header => "zeros-within-header.toml",
}

#[test]
fn every_file_has_a_test() {
    let files = scenario_files("regressions");
    let files: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    assert_eq!(
        files, TESTED,
        "the list in this file is to name the files of scenarios/regressions in their order"
    );
}
