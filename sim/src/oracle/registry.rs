//! The table of all oracles, from which runs are judged and `docs/oracles.md` is written. What an oracle
//! promises and how it is tested is read from its own file; here stand its place among the others, causes
//! before effects, and what it has to see.

use std::fmt::Write as _;

use super::{
    History, Violation, e1_rerun, e2_rerun, l1_termination, l2_reconciling, l3_progress, l4_leftovers,
    l5_store, l6_cancel, l7_claimed, p1_records, p2_empty, p3_sorted, p4_user_failure, s1_output, s2_splits,
    s3_attempts, s4_ranges, s5_stable_decisions, s6_recovered, s7_kept, s8_cut, s9_fencing, s10_complete,
    s11_release, s12_terminal, s13_attempts, s14_clean_start, s15_foreign, s16_state,
};
use crate::reference::Reference;
use crate::scenario::Profile;

/// One promise, and who judges it.
#[derive(Debug)]
pub struct Oracle {
    pub name: &'static str,
    /// What it goes by.
    pub sees: &'static str,
    check: Check,
    source: &'static str,
}

#[derive(Debug)]
enum Check {
    History(fn(&History) -> Result<(), Violation>),
    /// Where what breaks is made good, and nowhere else.
    MadeGood(fn(&History) -> Result<(), Violation>),
    /// Against what the job means.
    Output(fn(&History, &Reference) -> Result<(), Violation>),
}

impl Oracle {
    pub fn check(&self, history: &History, reference: &Reference) -> Result<(), Violation> {
        match self.check {
            Check::History(check) => check(history),
            Check::MadeGood(_) if history.patience.profile == Profile::Hostile => Ok(()),
            Check::MadeGood(check) => check(history),
            Check::Output(check) => check(history, reference),
        }
    }

    /// What it holds runs to: the first sentence of its file.
    pub fn promise(&self) -> String {
        let doc = self.source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
        let doc = doc.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let text = doc.split_once(": ").map_or(doc.as_str(), |(_, text)| text);
        let end = [". ", " ("].iter().filter_map(|stop| text.find(stop)).min().unwrap_or(text.len());
        text[..end].trim_end_matches('.').to_owned()
    }

    /// The names of its tests.
    pub fn tests(&self) -> Vec<&'static str> {
        let mut lines = self.source.lines().map(str::trim);
        let mut names = Vec::new();
        while lines.any(|line| line == "#[test]") {
            let name = lines.next().and_then(|line| line.strip_prefix("fn ")?.split('(').next());
            names.extend(name);
        }
        names
    }
}

macro_rules! oracle {
    ($name:literal, $file:ident, $check:ident, $sees:literal) => {
        Oracle {
            name: $name,
            sees: $sees,
            check: Check::$check($file::check),
            source: include_str!(concat!(stringify!($file), ".rs")),
        }
    };
}

/// Causes before effects: of violations by the same event the first of these is named.
pub static ORACLES: &[Oracle] = &[
    oracle!("S16", s16_state, History, "the state of the actor that handled the last event"),
    oracle!("S9", s9_fencing, History, "decisions with their tokens"),
    oracle!("S13", s13_attempts, History, "deployments and starts"),
    oracle!("S12", s12_terminal, History, "decisions, ends, deletions of log files"),
    oracle!("S4", s4_ranges, History, "initializations, the graph's shape"),
    oracle!("S5", s5_stable_decisions, History, "initializations, the log's bytes"),
    oracle!("S7", s7_kept, History, "what recovery keeps, the log's bytes"),
    oracle!("S8", s8_cut, History, "what recovery keeps, the log's bytes"),
    oracle!(
        "S6",
        s6_recovered,
        History,
        "what recovery keeps, the log's bytes, partitions that workers hold"
    ),
    oracle!("S14", s14_clean_start, History, "what recovery keeps, what finishes have read"),
    oracle!("S10", s10_complete, History, "deployments, finishes, complete partitions"),
    oracle!("L7", l7_claimed, History, "retention timers, claims, losses of leaders, clocks"),
    oracle!("S11", s11_release, History, "releases, finishes, the log's bytes"),
    oracle!("E1", e1_rerun, History, "deployments, the log's bytes, partitions that workers hold"),
    oracle!("L6", l6_cancel, MadeGood, "cancels as they are delivered, deployments, the end"),
    oracle!("L2", l2_reconciling, History, "the job's status, the leader's clock"),
    oracle!("L5", l5_store, History, "the job's status, finishes, the leader's clock"),
    oracle!("L3", l3_progress, History, "the job's status, deployments, registered workers"),
    oracle!("E2", e2_rerun, History, "deployments, the log's bytes, partitions that workers hold"),
    oracle!("P2", p2_empty, Output, "counts of records, the graph, the reference"),
    oracle!("S2", s2_splits, History, "assignments, finishes"),
    oracle!("S3", s3_attempts, History, "what finishes have read"),
    oracle!("P1", p1_records, Output, "counts of records, the graph, the reference"),
    oracle!("P4", p4_user_failure, History, "failures of tasks, ends of processes, panics"),
    oracle!("L1", l1_termination, History, "the end, faults, the length of a run without them"),
    oracle!("S15", s15_foreign, History, "files of another cluster"),
    oracle!("P3", p3_sorted, Output, "the committed output"),
    oracle!("S1", s1_output, Output, "the committed output, the reference and the run's witness"),
    oracle!("L4", l4_leftovers, MadeGood, "files that are left"),
];

/// The violation that came first, if there is one.
pub fn first_violation(history: &History, reference: &Reference) -> Result<(), Violation> {
    let broken = ORACLES.iter().filter_map(|oracle| oracle.check(history, reference).err());
    broken.min_by_key(|violation| violation.event).map_or(Ok(()), Err)
}

/// The table as a page.
pub fn page() -> String {
    let mut page = "# Oracles\n\n\
        What every run is held to. Each is one file of `sim/src/oracle/`; they share no code with what they judge. \
        A run is reported with the violation that came first, by the number of its trace event; of several by the \
        same event, with the one that stands first here. S are safety, E efficiency, L liveness, P the operations \
        of FLIP-380.\n\n\
        `cargo sim oracles > docs/oracles.md` writes this page.\n\n\
        | | promise | sees | tests |\n|---|---|---|---|\n"
        .to_owned();
    for oracle in ORACLES {
        let tests: Vec<String> = oracle.tests().iter().map(|name| format!("`{name}`")).collect();
        let (name, promise, sees) = (oracle.name, oracle.promise(), oracle.sees);
        let _ = writeln!(page, "| {name} | {promise} | {sees} | {} |", tests.join(", "));
    }
    page
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::oracle::planted::story;
    use crate::oracle::testing::{Story, test_reference, with_history};

    /// All that the protocol's page names, and one of the testbed's own.
    const ALL: [&str; 29] = [
        "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15",
        "S16", "E1", "E2", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "P1", "P2", "P3", "P4",
    ];

    fn judged(story: &Story) -> Result<(), Violation> {
        with_history(story, |history| first_violation(history, &test_reference()))
    }

    #[test]
    fn a_story_without_a_violation_passes_all_of_them() {
        judged(&Story::finished()).unwrap_or_else(|violation| panic!("{violation}"));
    }

    /// An oracle that is taken out of the table, or moved behind another that sees less, is missed here.
    #[test]
    fn of_each_planted_violation_all_of_them_together_name_the_oracle_that_it_is_planted_for() {
        let named = ALL.map(|name| judged(&story(name)).err().map(|violation| violation.oracle));
        assert_eq!(named, ALL.map(Some));
    }

    #[test]
    fn every_oracle_is_in_the_table_once_and_has_a_promise_and_tests() {
        let mut names: Vec<&str> = ORACLES.iter().map(|oracle| oracle.name).collect();
        names.sort_unstable();
        let mut all = ALL;
        all.sort_unstable();
        assert_eq!(names, all);
        for oracle in ORACLES {
            let head = format!("//! {}", oracle.name);
            assert!(oracle.source.starts_with(&head), "the file of {} begins otherwise", oracle.name);
            assert!(oracle.promise().len() > 30, "{}: {}", oracle.name, oracle.promise());
            assert!(!oracle.tests().is_empty(), "{} has no test", oracle.name);
        }
    }

    #[test]
    fn of_two_violations_the_one_that_came_first_is_named() {
        let mut story = story("L1");
        story.deploy(crate::oracle::testing::attempt(0, 0, 1, 0));
        let violation = judged(&story).expect_err("both are caught");
        assert_eq!((violation.oracle, violation.event), ("S13", story.trace().len() - 1));
    }

    #[test]
    fn the_page_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/oracles.md");
        let written = std::fs::read_to_string(file).unwrap_or_default();
        assert!(written == page(), "run `cargo sim oracles > docs/oracles.md`");
    }
}
