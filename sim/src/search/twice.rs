//! Two crashes: a JobManager and then any process, also inside the recovery, or a TaskManager or shuffle service
//! and then a JobManager. Which points the second can be at depends on the first, so it takes one run to list
//! them. The first crashes are taken in an order that is spread over the whole run, so that little time shows
//! something of all of it.

use std::collections::BTreeSet;

use revenant::ids::ProcessId;

use super::once::{class, may_die, points, with};
use super::{Case, Ground, Strategy};
use crate::explore::map;
use crate::run::Collect;
use crate::scenario::{Fault, Trigger};

/// First crashes whose seconds are listed together.
const FIRSTS: usize = 2;

#[derive(Debug, Default)]
pub struct Twice {
    /// First crashes that are still to come, the next one last.
    firsts: Option<Vec<(Fault, String)>>,
    seen: BTreeSet<u64>,
    points: u64,
}

impl Strategy for Twice {
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case> {
        let firsts = self.firsts.get_or_insert_with(|| firsts(ground));
        loop {
            let next = firsts.split_off(firsts.len().saturating_sub(FIRSTS));
            if next.is_empty() {
                return Vec::new();
            }
            let seconds = map(next.len(), ground.threads, |index| seconds(&next[index], ground), |_| ());
            let mut cases = Vec::new();
            for (case, survivors) in seconds.into_iter().flatten() {
                self.points += 1;
                if self.seen.insert(survivors) {
                    cases.push(case);
                }
            }
            if !cases.is_empty() {
                return cases;
            }
        }
    }

    fn points(&self) -> u64 {
        self.points
    }
}

fn firsts(ground: &Ground<'_>) -> Vec<(Fault, String)> {
    let mut seen = BTreeSet::new();
    let found = points(ground.scenario, ground, Collect::All);
    let firsts: Vec<(Fault, String)> = found
        .into_iter()
        .filter(|found| may_die(found.point.process, ground) && seen.insert(found.survivors))
        .map(|found| (Fault::crash_at(found.point.clone(), false), class(&found)))
        .collect();
    let mut order: Vec<usize> = (0..firsts.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse((index as u32).reverse_bits()));
    order.into_iter().map(|index| firsts[index].clone()).collect()
}

/// All cases that begin with this crash, with what lives on after its second.
fn seconds((first, before): &(Fault, String), ground: &Ground<'_>) -> Vec<(Case, u64)> {
    let once = with(ground.scenario, first.clone());
    let Trigger::Point(at) = &first.at else { return Vec::new() };
    let is_job_manager = |process: ProcessId| matches!(process, ProcessId::JobManager(_));
    let fits = |process: ProcessId| {
        may_die(process, ground) && (is_job_manager(at.process) || is_job_manager(process))
    };
    let found = points(&once, ground, Collect::All);
    let after = found.into_iter().skip_while(|found| found.point != *at).skip(1);
    let cases = after.filter(|found| fits(found.point.process)).map(|found| {
        let class = format!("{before}, then {}", class(&found));
        let (survivors, fault) = (found.survivors, Fault::crash_at(found.point, false));
        (Case { scenario: with(&once, fault), class }, survivors)
    });
    cases.collect()
}
