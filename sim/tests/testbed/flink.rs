//! The situations in which Flink was seen to run finished tasks again or to double its output, on a
//! job of the same shape. `scenarios/flink` tells what happened there.

use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::Scenario;

use super::{program, scenario_files};

/// Where the crash has to meet finishes that are only in the write buffer.
const BUFFERED: [&str; 2] = ["buffered-consumer.toml", "missing-partition.toml"];

#[test]
fn what_went_wrong_in_flink_does_not_go_wrong_here() {
    let program = program();
    let mut broken = Vec::new();
    let mut buffered = Vec::new();
    for file in scenario_files("flink") {
        let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        let outcome = run(&scenario, &program, &RunOptions::default());
        let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
        if !outcome.vacuous.is_empty() {
            broken.push(format!("{name}: the faults {:?} never fired", outcome.vacuous));
        }
        match judge.judge(&outcome) {
            Ok(verdict) if verdict.finishes.buffered > 0 => buffered.push(name.to_owned()),
            Ok(_) => {}
            Err(violation) => {
                broken.push(format!("{name}: {violation}\n  cargo sim run scenarios/flink/{name}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let missed: Vec<&str> = BUFFERED.into_iter().filter(|name| !buffered.iter().any(|b| b == name)).collect();
    assert!(missed.is_empty(), "the crash met no buffered finish in {missed:?}: choose another time");
}
