//! Runs and judges the scenarios of a directory, each once.

use std::path::Path;

use revenant_sim::oracle::{Judge, Verdict};
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Outcome, Scenario};
use revenant_sim::trace::RunEnd;

use super::{program, scenario_files};

/// Of every scenario each fault fires and each rate strikes, the run ends as it should, and the judge finds all
/// promises kept. `seen` gets what those amount to that end with an outcome.
pub fn judge_all(below: &str, mut seen: impl FnMut(&str, Verdict)) {
    let mut broken = Vec::new();
    for file in scenario_files(below) {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a plain name");
        match judge(&file) {
            Ok(verdict) => verdict.into_iter().for_each(|verdict| seen(name, verdict)),
            Err(wrong) => broken.extend(told(below, name, &wrong)),
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// As [`judge_all`], for one file.
pub fn judge_one(below: &str, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(below).join(name);
    let broken = judge(&file).err().map(|wrong| told(below, name, &wrong));
    assert!(broken.is_none(), "{}", broken.unwrap_or_default().join("\n"));
}

fn told(below: &str, name: &str, wrong: &[String]) -> Vec<String> {
    wrong.iter().map(|what| format!("{name}: {what}\n  cargo sim run scenarios/{below}/{name}")).collect()
}

/// What the run amounts to, if it ends with an outcome; or all that is wrong with it.
fn judge(file: &Path) -> Result<Option<Verdict>, Vec<String>> {
    let program = program();
    let scenario = Scenario::load(file, &program).unwrap_or_else(|error| panic!("{error}"));
    let judge = Judge::new(&scenario, &program).expect("the job has a reference");
    let outcome = run(&scenario, &program, &RunOptions::default());
    let (mut wrong, mut verdict) = (Vec::new(), None);
    if !outcome.vacuous.is_empty() {
        wrong.push(format!("the faults {:?} never fired", outcome.vacuous));
    }
    if !outcome.idle_rates.is_empty() {
        wrong.push(format!("the rates {:?} never struck", outcome.idle_rates));
    }
    match (&outcome.ended, scenario.expect.outcome) {
        (RunEnd::Finished, Outcome::Finished) | (RunEnd::Canceled, Outcome::Canceled) => {
            match judge.judge(&outcome) {
                Ok(judged) => verdict = Some(judged),
                Err(violation) => wrong.push(violation.to_string()),
            }
        }
        (RunEnd::Failed { .. }, Outcome::Failed) | (RunEnd::Stuck { .. }, Outcome::Stuck) => {}
        (ended, expected) => {
            let violation =
                judge.judge(&outcome).err().map_or_else(String::new, |broken| format!("; {broken}"));
            wrong.push(format!("it should be {expected:?}, it is {ended:?}{violation}"));
        }
    }
    if wrong.is_empty() { Ok(verdict) } else { Err(wrong) }
}
