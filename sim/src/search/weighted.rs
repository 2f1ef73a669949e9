//! Three crashes at drawn places. What is written for good, and the gap between two effects of one event, is where
//! recoveries go wrong: such places are drawn more often than others.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::once::{class, may_die, with};
use super::{Case, Ground, Strategy};
use crate::explore::map;
use crate::point::PointAt;
use crate::run::{Collect, RunOptions, run};
use crate::scenario::{Fault, Scenario, Trigger};
use crate::trace::FoundPoint;

/// Cases that are drawn together.
const TOGETHER: usize = 32;
const CRASHES: usize = 3;

#[derive(Debug, Default)]
pub struct Weighted {
    drawn: u64,
    /// Cases of any strategy that were the first to take a rare branch.
    favoured: Vec<Scenario>,
}

impl Strategy for Weighted {
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case> {
        let first = self.drawn;
        self.drawn += TOGETHER as u64;
        let draw = |index: usize| {
            let number = first + index as u64;
            // Every second goes on from a case that was the first to take a rare branch.
            let favoured = self.favoured.get((number / 2) as usize % self.favoured.len().max(1));
            match favoured.filter(|_| number % 2 == 1) {
                Some(favoured) => draw(number, favoured, 1, ground),
                None => draw(number, ground.scenario, CRASHES, ground),
            }
        };
        map(TOGETHER, ground.threads, draw, |_| ())
    }

    fn favour(&mut self, case: &Scenario) {
        self.favoured.push(case.clone());
    }

    fn points(&self) -> u64 {
        self.drawn
    }
}

/// So many crashes more, each behind those before it.
fn draw(number: u64, from: &Scenario, crashes: usize, ground: &Ground<'_>) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(ground.scenario.schedule.seed);
    rng.set_stream(number);
    let options = RunOptions { collect: Collect::All, ..RunOptions::default() };
    let mut scenario = from.clone();
    let mut classes = Vec::new();
    for _ in 0..crashes {
        let last = scenario.faults.last();
        let at = last.map(|fault| fault.at.clone());
        let is_last = |found: &FoundPoint| Some(&Trigger::Point(found.point.clone())) == at.as_ref();
        let mut found = run(&scenario, ground.program, &options).detail.points;
        if let Some(place) = found.iter().position(is_last) {
            found.drain(..=place);
        }
        found.retain(|found| may_die(found.point.process, ground));
        let Some(chosen) = choose(&found, &mut rng) else { break };
        let machine = rng.next_u32().is_multiple_of(4);
        classes.push(class(chosen));
        scenario = with(&scenario, Fault::crash_at(chosen.point.clone(), machine));
    }
    Case { scenario, class: classes.join(", then ") }
}

fn choose<'a>(found: &'a [FoundPoint], rng: &mut ChaCha8Rng) -> Option<&'a FoundPoint> {
    let all: u64 = found.iter().map(weight).sum();
    let mut place = (u128::from(rng.next_u64()) * u128::from(all)) >> 64;
    found.iter().find(|found| {
        let weight = u128::from(weight(found));
        let is_it = place < weight;
        place = place.saturating_sub(weight);
        is_it
    })
}

fn weight(found: &FoundPoint) -> u64 {
    let is_in_a_gap = matches!(found.point.at, PointAt::Number { effect: 1.., .. }) && found.names.len() > 1;
    let persists = |name: &PointAt| {
        matches!(name, PointAt::Name { name, .. }
            if [".sync", ".append", ".rename", ".create", ".delete"].iter().any(|end| name.contains(end)))
    };
    let persists = found.names.iter().any(|name| persists(&name.at));
    1 + 3 * u64::from(is_in_a_gap) + 3 * u64::from(persists)
}
