//! Exploring the unbroken engine.

use super::{LINEITEM, explored};

#[test]
fn the_job_survives_a_crash_of_its_job_manager_at_every_point() {
    let report = explored(LINEITEM, None, None);
    assert!(report.is_good(), "{report}");
    assert!(report.points > 100, "{report}");
    assert!(report.reruns.max > 0, "{report}");
}

#[test]
fn totals_survive_too() {
    let totals = LINEITEM
        .replace("lineitem-by-ship-date", "lineitem-totals")
        .replace("map-parallelism = 3\nsort-parallelism = 2\n", "");
    let report = explored(&totals, None, None);
    assert!(report.is_good(), "{report}");
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
