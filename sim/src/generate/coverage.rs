//! What occurs in a scenario: operators, exchanges, kinds of sources and sinks, options, the world. Read
//! from the scenario itself, so that what a generator no longer makes is seen to be missing.

use std::collections::BTreeSet;

use super::options::OPTIONS;
use super::plan::{LINEAGES, OPERATIONS, SINKS, WAYS};
use crate::scenario::Scenario;

const SOURCES: [&str; 6] = ["rows", "collection", "sequence", "csv", "json-lines", "text"];
const JOBS: [&str; 4] = ["dataflow", "word-count", "lineitem-by-ship-date", "lineitem-totals"];
const STRATEGIES: [&str; 3] = ["fixed-delay", "failure-rate", "exponential-delay"];

fn operation(words: &str) -> String {
    format!("operator {}", words.split(' ').next().unwrap_or_default())
}

/// All that a generated scenario may have.
pub fn known_features() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = BTreeSet::new();
    all.extend(JOBS.map(|job| format!("job {job}")));
    all.extend(OPERATIONS.map(operation));
    all.extend(WAYS.map(|way| format!("exchange {way}")));
    all.extend(SOURCES.map(|kind| format!("source {kind}")));
    all.extend(SINKS.map(|kind| format!("sink {kind}")));
    all.extend(LINEAGES.map(|kept| format!("lineage {kept}")));
    all.extend(
        ["operator per key", "source static", "source without snapshots", "source without rows"]
            .map(String::from),
    );
    for (key, values) in OPTIONS {
        all.extend(values.iter().map(|value| format!("option {key} = {value}")));
    }
    all.extend(STRATEGIES.map(|strategy| format!("option restart-strategy.type = {strategy}")));
    all.extend(
        [
            "standby JobManagers",
            "clock wrong from the start",
            "network latency 0",
            "network rates",
            "disk latency 0",
        ]
        .map(String::from),
    );
    all
}

pub fn features(scenario: &Scenario) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut see = |feature: String| _ = found.insert(feature);
    see(format!("job {}", scenario.job.name));
    let plan = scenario.job.arguments.0.get("plan").map_or("", String::as_str);
    for (name, words) in plan.lines().filter_map(|line| line.split_once(" = ")) {
        if name == "lineage" {
            see(format!("lineage {words}"));
            continue;
        }
        let mut words = words.split_whitespace();
        let operation = words.next().unwrap_or_default();
        let mut kind = None;
        let mut behind_via = false;
        for word in words {
            match word {
                "via" => behind_via = true,
                "per=key" => see("operator per key".to_owned()),
                "assignment=static" => see("source static".to_owned()),
                "snapshots=false" => see("source without snapshots".to_owned()),
                "rows=0" => see("source without rows".to_owned()),
                _ => {}
            }
            kind = kind.or(word.strip_prefix("kind="));
            if behind_via && word != "via" && !word.contains('=') {
                word.split(',').for_each(|way| see(format!("exchange {way}")));
            }
        }
        match operation {
            "source" => see(format!("source {}", kind.unwrap_or("rows"))),
            "sink" => see(format!("sink {}", kind.unwrap_or("csv"))),
            _ => see(format!("operator {operation}")),
        }
    }
    for (key, value) in scenario.config.values() {
        see(format!("option {key} = {value}"));
    }
    for (is, what) in [
        (scenario.cluster.job_managers > 1, "standby JobManagers"),
        (!scenario.clock.is_empty(), "clock wrong from the start"),
        (scenario.network.latency.max.is_zero(), "network latency 0"),
        (scenario.network.has_rates(), "network rates"),
        (scenario.disk.latency.max.is_zero(), "disk latency 0"),
    ] {
        if is {
            see(what.to_owned());
        }
    }
    found
}
