//! Whole scenarios from seeds, by turns of the recoverable and the hostile profile, with the planted bug of the
//! ground, if it has one.

use super::{Case, Ground, Strategy};
use crate::explore::map;
use crate::generate::generate;
use crate::scenario::Profile;

/// Seeds that are drawn together.
const TOGETHER: usize = 32;

#[derive(Debug, Default)]
pub struct Swarm {
    seeds: u64,
}

impl Strategy for Swarm {
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case> {
        let first = self.seeds;
        self.seeds += TOGETHER as u64;
        let draw = |index: usize| {
            let number = first + index as u64;
            let profile = if number.is_multiple_of(2) { Profile::Recoverable } else { Profile::Hostile };
            let generated = generate(number / 2, profile, ground.program).ok()?;
            let kinds: Vec<&str> = generated.kinds.into_iter().collect();
            let mut scenario = generated.scenario;
            scenario.planted_bug = ground.scenario.planted_bug;
            Some(Case { scenario, class: format!("{profile:?}: {}", kinds.join(", ")) })
        };
        map(TOGETHER, ground.threads, draw, |_| ()).into_iter().flatten().collect()
    }

    fn points(&self) -> u64 {
        self.seeds
    }
}
