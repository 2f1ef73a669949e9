//! Two crashes: a JobManager and then any process, also inside the recovery, or a TaskManager or shuffle service
//! and then a JobManager. Which points the second can be at depends on the first, so it takes one run to list
//! them. They are listed before any pair is tried, so that a search can say how many there are; and pairs come in an
//! order that is spread over all of them, so that little time shows something of everything.

use std::collections::BTreeSet;

use revenant::ids::ProcessId;

use super::once::{class, may_die, points, with};
use super::{Case, Ground, Strategy};
use crate::explore::map;
use crate::run::Collect;
use crate::scenario::{Fault, Trigger};

/// First crashes whose seconds are listed together. A scenario with more gets its pairs in portions, or the listing
/// would take all the time.
const FIRSTS: usize = 512;
/// Pairs that are tried in one turn.
const TOGETHER: usize = 64;

#[derive(Debug, Default)]
pub struct Twice {
    /// First crashes whose seconds are not listed yet, the next one last.
    firsts: Option<Vec<(Fault, String)>>,
    /// Listed and not tried yet, the next one last.
    pairs: Vec<Pair>,
    seen: BTreeSet<u64>,
    points: u64,
}

#[derive(Clone, Debug)]
struct Pair {
    first: Fault,
    second: Fault,
    class: String,
}

impl Strategy for Twice {
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case> {
        while self.pairs.is_empty() {
            let firsts = self.firsts.get_or_insert_with(|| firsts(ground));
            let next = firsts.split_off(firsts.len().saturating_sub(FIRSTS));
            if next.is_empty() {
                return Vec::new();
            }
            let listed = map(next.len(), ground.threads, |index| seconds(&next[index], ground), |_| ());
            for (pair, survivors) in listed.into_iter().flatten() {
                self.points += 1;
                if self.seen.insert(survivors) {
                    self.pairs.push(pair);
                }
            }
            self.pairs = spread(std::mem::take(&mut self.pairs));
        }
        let next = self.pairs.split_off(self.pairs.len().saturating_sub(TOGETHER));
        let case = |Pair { first, second, class }: Pair| Case {
            scenario: with(&with(ground.scenario, first), second),
            class,
        };
        next.into_iter().rev().map(case).collect()
    }

    fn points(&self) -> u64 {
        self.points
    }

    fn left(&self) -> Option<u64> {
        self.firsts.as_ref().is_some_and(Vec::is_empty).then_some(self.pairs.len() as u64)
    }
}

fn firsts(ground: &Ground<'_>) -> Vec<(Fault, String)> {
    let mut seen = BTreeSet::new();
    let found = points(ground.scenario, ground, Collect::All);
    let firsts = found
        .into_iter()
        .filter(|found| may_die(found.point.process, ground) && seen.insert(found.survivors))
        .map(|found| (Fault::crash_at(found.point.clone(), false), class(&found)));
    spread(firsts.collect())
}

/// In an order of which every part is about evenly spread over the old one, from the back.
fn spread<T>(items: Vec<T>) -> Vec<T> {
    let mut items: Vec<(u32, T)> = (0_u32..).map(u32::reverse_bits).zip(items).collect();
    items.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
    items.into_iter().map(|(_, item)| item).collect()
}

/// All pairs that begin with this crash, with what lives on after its second.
fn seconds((first, before): &(Fault, String), ground: &Ground<'_>) -> Vec<(Pair, u64)> {
    let once = with(ground.scenario, first.clone());
    let Trigger::Point(at) = &first.at else { return Vec::new() };
    let is_job_manager = |process: ProcessId| matches!(process, ProcessId::JobManager(_));
    let fits = |process: ProcessId| {
        may_die(process, ground) && (is_job_manager(at.process) || is_job_manager(process))
    };
    let found = points(&once, ground, Collect::All);
    let after = found.into_iter().skip_while(|found| found.point != *at).skip(1);
    let pairs = after.filter(|found| fits(found.point.process)).map(|found| {
        let class = format!("{before}, then {}", class(&found));
        let (survivors, second) = (found.survivors, Fault::crash_at(found.point, false));
        (Pair { first: first.clone(), second, class }, survivors)
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_order_has_everything_once_and_halves_first() {
        let mut order = spread((0..9).collect());
        order.reverse();
        assert_eq!(order, [0, 8, 4, 2, 6, 1, 5, 3, 7]);
    }
}
