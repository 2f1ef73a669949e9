//! The testbed as a whole: the engine on the simulator, judged by the oracles.

mod canary;
mod cancel;
mod dataflow;
mod directory;
mod exploration;
mod faults;
mod flink;
mod fuzz_corpus;
mod generated;
mod high_availability;
mod inspecting;
mod lineage;
mod merging;
mod network;
mod planted_bugs;
mod properties;
mod regressions;
mod searching;
mod shrinking;
mod snapshots;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use revenant::api::Program;
use revenant::planted::PlantedBug;
use revenant_sim::explore::{ExploreOptions, Report, explore};
use revenant_sim::scenario::Scenario;

/// Three stages on three TaskManagers, some hundreds of messages. Sources run in two waves and the
/// flush interval is short, so that crashes meet finishes in every state, also among the sources.
const LINEITEM: &str = r#"
[job]
name = "lineitem-by-ship-date"

[job.arguments]
scale-factor = 0.0001
splits = 8
source-parallelism = 5
map-parallelism = 3
sort-parallelism = 2

[cluster]
task-managers = 3

[config]
"execution.batch.job-recovery.enabled" = true
"job-event.store.write-buffer.flush-interval" = "1 ms"
"taskmanager.memory.segment-size" = "1 kb"
"#;

fn program() -> Arc<Program> {
    Arc::new(revenant::jobs::registry())
}

/// The files of a directory below `scenarios`, in the order of their names.
fn scenario_files(below: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(below);
    let entries = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", directory.display())).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no scenario", directory.display());
    files
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test", text).expect("a scenario of the tests is right")
}

fn explored(text: &str, bug: Option<PlantedBug>, threads: Option<usize>) -> Report {
    explored_seed(text, 3, bug, threads)
}

fn explored_seed(text: &str, seed: u64, bug: Option<PlantedBug>, threads: Option<usize>) -> Report {
    let mut scenario = scenario(text);
    scenario.schedule.seed = seed;
    let file = PathBuf::from("test.toml");
    let options = ExploreOptions { file, threads, bug, ..ExploreOptions::default() };
    explore(&scenario, &program(), &options).expect("the job has a reference")
}
