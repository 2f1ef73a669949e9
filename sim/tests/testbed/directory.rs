//! Runs and judges every scenario of a directory, each once.

use revenant_sim::oracle::{Judge, Verdict};
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Outcome, Scenario};
use revenant_sim::trace::RunEnd;

use super::{program, scenario_files};

/// Of every scenario each fault fires and each rate strikes, the run ends as it should, and the judge finds all
/// promises kept. `seen` gets what those amount to that end with an outcome.
pub fn judge_all(below: &str, mut seen: impl FnMut(&str, Verdict)) {
    let program = program();
    let mut broken = Vec::new();
    for file in scenario_files(below) {
        let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        let outcome = run(&scenario, &program, &RunOptions::default());
        let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let mut tell =
            |what: String| broken.push(format!("{name}: {what}\n  cargo sim run scenarios/{below}/{name}"));
        if !outcome.vacuous.is_empty() {
            tell(format!("the faults {:?} never fired", outcome.vacuous));
        }
        if !outcome.idle_rates.is_empty() {
            tell(format!("the rates {:?} never struck", outcome.idle_rates));
        }
        match (&outcome.ended, scenario.expect.outcome) {
            (RunEnd::Finished, Outcome::Finished) | (RunEnd::Canceled, Outcome::Canceled) => {
                match judge.judge(&outcome) {
                    Ok(verdict) => seen(name, verdict),
                    Err(violation) => tell(violation.to_string()),
                }
            }
            (RunEnd::Failed { .. }, Outcome::Failed) | (RunEnd::Stuck { .. }, Outcome::Stuck) => {}
            (ended, expected) => {
                let violation =
                    judge.judge(&outcome).err().map_or_else(String::new, |broken| format!("; {broken}"));
                tell(format!("it should be {expected:?}, it is {ended:?}{violation}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
