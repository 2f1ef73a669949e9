//! Fewer faults, and simpler ones.

use std::sync::Arc;

use revenant::api::Program;

use crate::scenario::{Action, Fault, Scenario};

pub fn fewer(scenario: &Scenario, _: &Arc<Program>) -> Vec<Scenario> {
    let with = |faults: Vec<Fault>| Scenario { faults, ..scenario.clone() };
    let faults = &scenario.faults;
    let count = faults.len();
    let mut smaller = Vec::new();
    // Ever smaller pieces are taken out, then any two: what breaks something and what heals it.
    let mut piece = count;
    while piece > 0 {
        for start in (0..count).step_by(piece) {
            let outside = |index: &usize| !(start..start + piece).contains(index);
            smaller.push(with((0..count).filter(outside).map(|index| faults[index].clone()).collect()));
        }
        piece /= 2;
    }
    for one in 0..count {
        for two in one + 1..count {
            let outside = |index: &usize| *index != one && *index != two;
            smaller.push(with((0..count).filter(outside).map(|index| faults[index].clone()).collect()));
        }
    }
    for index in 0..count {
        for simple in simpler(&faults[index]) {
            let mut faults = faults.clone();
            faults[index] = simple;
            smaller.push(with(faults));
        }
    }
    smaller
}

fn simpler(fault: &Fault) -> Vec<Fault> {
    let mut simpler = Vec::new();
    if let Action::Crash { process, machine: true } = fault.action {
        simpler.push(Fault { action: Action::Crash { process, machine: false }, ..fault.clone() });
    }
    if fault.restart_after.is_some() {
        simpler.push(Fault { restart_after: None, ..fault.clone() });
    }
    simpler
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn all_halves_singles_and_pairs_are_taken_out_and_crashes_made_simpler() {
        let mut text = "[job]\nname = 'lineitem-totals'\n".to_owned();
        for time in 1..=4 {
            let _ = write!(text, "[[fault]]\nat = 't = {time} s'\ndo = 'crash task-manager-1'\n");
        }
        text += "[[fault]]\nat = 't = 5 s'\ndo = 'crash machine of job-manager'\nrestart-after = '9 s'\n";
        let scenario = Scenario::parse("test", &text).unwrap();
        let program = Arc::new(revenant::jobs::registry());
        let counts: Vec<usize> =
            fewer(&scenario, &program).iter().map(|smaller| smaller.faults.len()).collect();
        // All, two halves and a rest, five singles, ten pairs, two that are simpler.
        assert_eq!(counts, [[0, 3, 3, 4].as_slice(), &[4; 5], &[3; 10], &[5, 5]].concat());
        let actions: Vec<String> =
            simpler(&scenario.faults[4]).iter().map(|f| f.action.to_string()).collect();
        assert_eq!(actions, ["crash job-manager", "crash machine of job-manager"]);
    }
}
