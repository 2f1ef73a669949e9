//! A scenario for each kind of fault: every fault of it fires, the run ends as it should, and the judge
//! finds all promises kept.

use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Outcome, Scenario};
use revenant_sim::trace::RunEnd;

use super::{program, scenario_files};

#[test]
fn the_engine_withstands_every_kind_of_fault() {
    let program = program();
    let mut broken = Vec::new();
    for file in scenario_files("faults") {
        let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        let outcome = run(&scenario, &program, &RunOptions::default());
        let name = file.file_name().unwrap_or_default().display();
        let mut tell =
            |what: String| broken.push(format!("{name}: {what}\n  cargo sim run scenarios/faults/{name}"));
        if !outcome.vacuous.is_empty() {
            tell(format!("the faults {:?} never fired", outcome.vacuous));
        }
        if !outcome.idle_rates.is_empty() {
            tell(format!("the rates {:?} never struck", outcome.idle_rates));
        }
        match (&outcome.ended, scenario.expect.outcome) {
            (RunEnd::Finished, Outcome::Finished) | (RunEnd::Canceled, Outcome::Canceled) => {
                if let Err(violation) = judge.judge(&outcome) {
                    tell(violation.to_string());
                }
            }
            (RunEnd::Failed { .. }, Outcome::Failed) | (RunEnd::Stuck { .. }, Outcome::Stuck) => {}
            (ended, expected) => tell(format!("it should be {expected:?}, it is {ended:?}")),
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
