//! Scenarios that follow from seeds: some hundreds of each profile keep all promises, nearly all have a
//! fault that takes effect, and the first are what they were.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use revenant::probe::Probe;
use revenant_sim::explore::available_threads;
use revenant_sim::generate::swarm::{Report, swarm};
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Profile, Scenario};

use super::{program, scenario_files};

const SEEDS: u64 = 250;
/// How many have their hashes in a file.
const GOLDEN: u64 = 20;

static RECOVERABLE: LazyLock<Report> = LazyLock::new(|| judged(Profile::Recoverable));
static HOSTILE: LazyLock<Report> = LazyLock::new(|| judged(Profile::Hostile));

fn judged(profile: Profile) -> Report {
    let report = swarm(0..SEEDS, profile, available_threads(), None, &AtomicBool::new(false), &program())
        .expect("nothing is kept");
    let failures = &report.failures;
    assert!(failures.is_empty(), "{profile:?}: {failures:#?}");
    assert!(!report.is_mostly_vacuous(), "{profile:?}: {} of {SEEDS} are vacuous", report.vacuous);
    report
}

/// `cargo sim swarm --seeds 0..20 --profile recoverable --hashes > sim/tests/testbed/golden/recoverable.txt`
/// writes the file again, after a change that is meant to change what happens.
fn same_as_before(report: &Report, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testbed/golden").join(format!("{name}.txt"));
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = String::new();
    for (seed, hash) in &report.hashes[..GOLDEN as usize] {
        let _ = writeln!(found, "{seed} {hash:016x}");
    }
    assert_eq!(
        found,
        golden,
        "runs are not what they were; if that is meant: cargo sim swarm --seeds 0..{GOLDEN} --profile {name} \
         --hashes > {}",
        path.display()
    );
}

#[test]
fn recoverable_scenarios_end_well_and_are_what_they_were() {
    let report = &RECOVERABLE;
    same_as_before(report, "recoverable");
}

#[test]
fn hostile_scenarios_never_have_wrong_output_and_are_what_they_were() {
    let report = &HOSTILE;
    same_as_before(report, "hostile");
    assert!(report.ends.contains_key("stuck"), "nothing was hostile: {:?}", report.ends);
}

/// A rare branch that no test takes is one of which nobody knows whether it works.
#[test]
fn every_rare_branch_of_recovery_is_taken() {
    let program = program();
    let mut taken: BTreeSet<Probe> =
        [&RECOVERABLE, &HOSTILE].iter().flat_map(|r| r.probes.keys().copied()).collect();
    for below in ["", "faults", "flink", "regressions"] {
        for file in scenario_files(below) {
            let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
            taken.extend(run(&scenario, &program, &RunOptions::default()).probes.into_keys());
        }
    }
    let missed: Vec<&str> =
        Probe::ALL.iter().filter(|probe| !taken.contains(probe)).map(|probe| probe.name()).collect();
    assert!(missed.is_empty(), "no scenario takes {missed:?}");
}
