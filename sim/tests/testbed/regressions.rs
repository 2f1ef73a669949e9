//! Every situation in which the engine was once wrong, as a scenario of its own. `docs/findings.md`
//! tells their stories.

use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::Scenario;
use revenant_sim::trace::RunOutcome;

use super::{program, scenario_files};

#[test]
fn no_regression_comes_back() {
    let program = program();
    let mut broken = Vec::new();
    for file in scenario_files("regressions") {
        let scenario = Scenario::load(&file, &program).unwrap_or_else(|error| panic!("{error}"));
        let judge = Judge::new(&scenario, &program).expect("the job has a reference");
        let outcome = run(&scenario, &program, &RunOptions::default());
        let name = file.file_name().unwrap_or_default().display();
        if !outcome.vacuous.is_empty() || !outcome.idle_rates.is_empty() {
            let RunOutcome { vacuous, idle_rates, .. } = outcome;
            broken.push(format!("{name}: the faults {vacuous:?} and rates {idle_rates:?} never fired"));
        } else if let Err(violation) = judge.judge(&outcome) {
            broken.push(format!("{name}: {violation}\n  cargo sim run scenarios/regressions/{name}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
