//! Recovery is right whatever the schedule, the cluster, the timing and the place of the crash.
//!
//! `PROPTEST_CASES` sets how many cases are tried. A failure prints its scenario and the line that
//! runs it, and is kept in `properties.proptest-regressions`, which later runs try first.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use revenant::api::Program;
use revenant::ids::ProcessId;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{Collect, RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario};

use super::{program, scenario};

/// Graphs of jobs are kept in it.
static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(program);

/// Times are in microseconds.
#[allow(clippy::struct_excessive_bools, reason = "each is a dimension of its own")]
#[derive(Clone, Debug)]
struct Plan {
    totals: bool,
    seed: u64,
    splits: u32,
    source_parallelism: u32,
    sort_parallelism: Option<u32>,
    task_managers: u32,
    slots: u32,
    flush_interval: u32,
    latency: (u32, u32),
    disk_latency: (u32, u32),
    local_log: bool,
    machine: bool,
    torn: bool,
    /// Which of the schedule's crash points.
    crash: prop::sample::Index,
}

fn range(max: u32) -> impl Strategy<Value = (u32, u32)> {
    (1..max, 1..max).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn plan() -> impl Strategy<Value = Plan> {
    let job = (any::<bool>(), 1..12u32, 1..7u32, prop::option::of(1..5u32));
    let cluster = (1..5u32, 1..4u32);
    let times = (100..60_000u32, range(20_000), range(10_000));
    let crash = (any::<bool>(), any::<bool>(), any::<bool>(), any::<prop::sample::Index>());
    (any::<u64>(), job, cluster, times, crash).prop_map(|(seed, job, cluster, times, crash)| Plan {
        totals: job.0,
        seed,
        splits: job.1,
        source_parallelism: job.2,
        sort_parallelism: job.3,
        task_managers: cluster.0,
        slots: cluster.1,
        flush_interval: times.0,
        latency: times.1,
        disk_latency: times.2,
        local_log: crash.0,
        machine: crash.1,
        torn: crash.2,
        crash: crash.3,
    })
}

impl Plan {
    /// Without the crash.
    fn scenario(&self) -> Scenario {
        let mut text = String::new();
        let job = if self.totals { "lineitem-totals" } else { "lineitem-by-ship-date" };
        let _ = write!(
            text,
            "[job]\nname = '{job}'\n[job.arguments]\nscale-factor = 0.0001\nsplits = {}\n\
             source-parallelism = {}\n",
            self.splits, self.source_parallelism
        );
        if let (false, Some(parallelism)) = (self.totals, self.sort_parallelism) {
            let _ = writeln!(text, "sort-parallelism = {parallelism}");
        }
        let volume = if self.local_log { "local" } else { "ha" };
        let torn =
            if self.torn { "incomplete-at-crash = 'torn'\nunsynced-at-machine-crash = 'torn'\n" } else { "" };
        let _ = write!(
            text,
            "[cluster]\ntask-managers = {}\n\
             [config]\n'execution.batch.job-recovery.enabled' = true\n\
             'job-event.store.volume' = '{volume}'\n\
             'job-event.store.write-buffer.flush-interval' = '{} us'\n\
             'taskmanager.numberOfTaskSlots' = {}\n\
             'taskmanager.memory.segment-size' = '1 kb'\n\
             [schedule]\nseed = {}\n\
             [network]\nlatency = '{} us..{} us'\n\
             [disk]\nlatency = '{} us..{} us'\n{torn}",
            self.task_managers,
            self.flush_interval,
            self.slots,
            self.seed,
            self.latency.0,
            self.latency.1,
            self.disk_latency.0,
            self.disk_latency.1,
        );
        scenario(&text)
    }
}

/// For the replay line. While a failure is shrunk, each failing case is smaller than the one before:
/// what stays is the smallest.
fn keep(scenario: &Scenario) -> PathBuf {
    let file = std::env::temp_dir().join(format!("revenant-property-{}.toml", std::process::id()));
    let _ = std::fs::write(&file, scenario.to_toml());
    file
}

/// The same cases everywhere, unless `PROPTEST_RNG_SEED` names others; so many, unless `PROPTEST_CASES` says.
pub fn config_with(cases: u32) -> Config {
    let failures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/properties.proptest-regressions");
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config.failure_persistence = Some(Box::new(FileFailurePersistence::Direct(failures)));
    config
}

proptest! {
    #![proptest_config(config_with(24))]

    #[test]
    fn a_job_survives_a_crash_of_its_job_manager(plan in plan()) {
        let mut scenario = plan.scenario();
        let judge = Judge::new(&scenario, &PROGRAM).expect("the job has a reference");
        let collecting = RunOptions { collect: Collect::Of(ProcessId::JOB_MANAGER), ..RunOptions::default() };
        let calm = run(&scenario, &PROGRAM, &collecting);
        let mut verdict = judge.judge(&calm);
        let points = &calm.detail.points;
        if verdict.is_ok() && !points.is_empty() {
            let point = points[plan.crash.index(points.len())].point.clone();
            scenario.faults.push(Fault::crash_at(point, plan.machine));
            let crashed = run(&scenario, &PROGRAM, &RunOptions::default());
            prop_assert!(crashed.vacuous.is_empty(), "the crash did not happen\n{}", scenario.to_toml());
            verdict = judge.judge(&crashed);
        }
        if let Err(violation) = verdict {
            let file = keep(&scenario);
            prop_assert!(false, "{violation}\n{}\n  cargo sim run {}", scenario.to_toml(), file.display());
        }
    }
}
