//! Fewer arguments, lower numbers in them, plans with fewer stages, and less input.

use std::sync::Arc;

use revenant::api::Program;

use super::text;
use crate::scenario::Scenario;

pub fn smaller(scenario: &Scenario, _: &Arc<Program>) -> Vec<Scenario> {
    let mut smaller = Vec::new();
    for (name, value) in &scenario.job.arguments.0 {
        let mut without = scenario.clone();
        without.job.arguments.0.remove(name);
        smaller.push(without);
        let values = if name == "plan" { text::shorter_plans(value) } else { text::lower(value) };
        for value in values {
            let mut changed = scenario.clone();
            changed.job.arguments.0.insert(name.clone(), value);
            smaller.push(changed);
        }
    }
    for (index, input) in scenario.inputs.iter().enumerate() {
        let mut without = scenario.clone();
        without.inputs.remove(index);
        smaller.push(without);
        let repeats = if input.repeat > 1 { vec![1, input.repeat / 2] } else { vec![] };
        for repeat in repeats {
            let mut changed = scenario.clone();
            changed.inputs[index].repeat = repeat;
            smaller.push(changed);
        }
        for text in text::fewer_lines(&input.text) {
            let mut changed = scenario.clone();
            changed.inputs[index].text = text;
            smaller.push(changed);
        }
    }
    smaller
}
