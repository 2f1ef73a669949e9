//! Plans of every operation and exchange, each run without a crash and with some, through all
//! oracles: engine and reference were written from the same words and nothing else. Then drawn plans.

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use revenant_sim::explore::{ExploreOptions, Report, explore};
use revenant_sim::generate::plan::{LINEAGES, OPERATIONS, PlanShape, SINKS, SourceShape, StageShape, WAYS};
use revenant_sim::scenario::Scenario;

use super::{program, scenario};

/// Tries so many of a plan's crash points.
const CRASHES: usize = 4;

const PLANS: [&str; 13] = [
    // A chain of one vertex, and its rows once more over an exchange.
    "a = source rows=60 splits=5; b = map a; c = filter b; o = sink c; p = sink b via rebalance",
    // Windows behind each other, with parallelisms set and decided.
    "a = source rows=80 splits=6 parallelism=3; b = group a via hash; c = sort b via rebalance order=descending
     o = sink c via rebalance parallelism=2",
    // An empty source, and splits without rows.
    "a = source rows=0 splits=3 parallelism=2; b = count a; o = sink b; c = reduce a via hash; p = sink c
     d = source rows=2 splits=6 assignment=static parallelism=3; q = sink d",
    // Both ways to join, with several consumers behind.
    "a = source rows=9 splits=2 keys=4 assignment=static; b = source rows=60 splits=4 keys=6
     c = join a b via broadcast,rescale parallelism=3; d = join a b via hash,hash parallelism=2; o = sink c
     p = sink d; e = count c; q = sink e",
    // A union of all exchanges.
    "a = source rows=40 splits=3 parallelism=3
     b = sort a a a a a via forward,hash,rebalance,rescale,broadcast parallelism=3; o = sink b",
    // Pointwise, uneven both ways, and decided.
    "a = source rows=50 splits=5 parallelism=5; b = map a via rescale parallelism=2
     c = map b via rescale parallelism=5; d = sort c via rescale; o = sink d; p = sink b via rescale",
    // Windows that end early: nobody reads the rest.
    "a = source rows=300 splits=4 parallelism=2; b = first 3 of a; c = first 0 of a via hash; o = sink b
     p = sink c; d = first 500 of a via rebalance; q = sink d",
    // Folds whose results depend on the order.
    "a = source rows=70 splits=7; b = reduce a; c = reduce b via broadcast parallelism=2; o = sink c
     d = group a via forward; p = sink d",
    // A diamond: both sides of a split come together again.
    "a = source rows=60 splits=4; b = map a via hash; c = filter a via rebalance
     d = group b c via hash,hash; o = sink d",
    // No snapshots, and two sources of one vertex each that differ in their assignment.
    "a = source rows=60 splits=6 snapshots=false parallelism=2
     b = source rows=60 splits=6 assignment=static parallelism=2; c = sort a b via hash,hash; o = sink c",
    // Forwarded windows in a row, and a decided parallelism with an upper bound.
    "a = source rows=80 splits=6; b = map a via hash max-parallelism=3; c = sort b; d = group c; e = count d
     o = sink d; p = sink e",
    // All four operators of each key, of a key that has most rows, and of none.
    "a = source rows=70 splits=5 keys=9; s = skew a; e = source rows=0
     b = sort s via hash by=value per=key; c = count s e via hash,hash per=key parallelism=4
     d = reduce b via hash per=key; f = first 2 of s via hash per=key; o = sink b; p = sink c; q = sink d; r = sink f
     g = sort e via hash per=key; t = sink g",
    // The exchanges that know nothing of keys, or too much.
    "a = source rows=60 splits=4 parallelism=3; b = map a via shuffle parallelism=2; c = group b via custom
     d = sort b a via shuffle,custom by=value order=descending; o = sink c; p = sink d",
];

/// Three TaskManagers with two slots, and so little data for a subtask that decided parallelisms
/// differ. Sorts have so much memory.
fn scenario_of(plan: &str, sort_memory: &str) -> Scenario {
    scenario(&format!(
        "[job]\nname = 'dataflow'\n[job.arguments]\nplan = '''{plan}'''\n\
         [config]\n'execution.batch.job-recovery.enabled' = true\n\
         'job-event.store.write-buffer.flush-interval' = '1 ms'\n\
         'taskmanager.numberOfTaskSlots' = 2\n\
         'taskmanager.memory.segment-size' = '256 b'\n\
         'execution.sort-partition.memory' = '{sort_memory}'\n\
         'execution.sort-keyed-partition.memory' = '{sort_memory}'\n\
         'execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task' = '200 b'\n\
         'execution.batch.adaptive.auto-parallelism.max-parallelism' = 5\n"
    ))
}

/// What holds a few rows, what holds one, and what holds all.
const SORT_MEMORIES: [&str; 3] = ["400 b", "64 b", "1 mb"];

fn explored(plan: &str, sort_memory: &str, seed: u64) -> Report {
    let options = ExploreOptions {
        file: PathBuf::from("plan.toml"),
        seed: Some(seed),
        limit: Some(CRASHES),
        ..ExploreOptions::default()
    };
    explore(&scenario_of(plan, sort_memory), &program(), &options)
        .unwrap_or_else(|error| panic!("{plan}\n{error}"))
}

#[test]
fn every_operation_and_exchange_does_what_the_reference_says_with_and_without_a_crash() {
    for (seed, plan) in (1..).zip(PLANS) {
        let plan = format!("lineage = {}\n{plan}", LINEAGES[seed as usize % 2]);
        let report = explored(&plan, SORT_MEMORIES[seed as usize % 3], seed);
        assert!(report.failures.is_empty() && report.vacuous == 0, "{plan}\n{report}");
        assert_eq!(report.tried, CRASHES, "{plan}\n{report}");
    }
}

fn stage() -> impl Strategy<Value = StageShape> {
    let operation = prop::sample::select(OPERATIONS.to_vec());
    let way = || prop::sample::select(WAYS.to_vec());
    let inputs = (any::<usize>(), any::<usize>(), any::<bool>());
    let sink = prop::sample::select(SINKS.to_vec());
    let flags = (any::<bool>(), any::<bool>(), sink);
    (operation, inputs, (way(), way()), prop::option::of(1..9_u32), flags).prop_map(
        |(operation, (first, second, both), (one, other), parallelism, (per_key, is_written, sink))| {
            let (inputs, ways) = ([first, second], [one, other]);
            StageShape { operation, inputs, both, per_key, ways, parallelism, is_written, sink }
        },
    )
}

fn source() -> impl Strategy<Value = SourceShape> {
    let kind = prop::sample::select(vec!["rows", "collection", "sequence"]);
    (kind, 0..60_u32, 1..7_u32, any::<bool>(), prop::option::of(1..9_u32)).prop_map(
        |(kind, rows, splits, is_static, parallelism)| {
            let words = format!("kind={kind} rows={rows} splits={splits} keys=7");
            SourceShape { words, is_static, parallelism }
        },
    )
}

/// The same cases everywhere, unless `PROPTEST_RNG_SEED` names others.
fn config() -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 100;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_plan_does_what_the_reference_says_with_and_without_a_crash(
        sources in prop::collection::vec(source(), 1..3),
        stages in prop::collection::vec(stage(), 1..6),
        sort_memory in prop::sample::select(SORT_MEMORIES.to_vec()),
        lineage in prop::sample::select(LINEAGES.to_vec()),
        seed in any::<u32>(),
    ) {
        let mut plan = PlanShape { lineage, sources, stages }.text();
        if program().build(&scenario_of(&plan, sort_memory).job()).is_err() {
            // Then a forward is between different parallelisms, and nothing else can be wrong.
            plan = plan.replace("forward", "rebalance");
        }
        let report = explored(&plan, sort_memory, seed.into());
        prop_assert!(report.failures.is_empty() && report.vacuous == 0, "{plan}\n{sort_memory}\n{report}");
    }
}
