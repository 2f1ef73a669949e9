//! Two blows in one run: the second at a point that is passed after the first. Which points those are
//! depends on the first, so it takes one run to list them.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use revenant::api::Program;

use super::{Blow, Case, pool, progress};
use crate::point::CrashPoint;
use crate::run::{Collect, RunOptions, run};

/// All pairs that begin with one of these cases, in order.
pub fn of<'a>(singles: &[Case<'a>], program: &Arc<Program>, threads: usize, blow: Blow) -> Vec<Case<'a>> {
    let bar = progress::bar(singles.len());
    let list = |index: usize| second_points(&singles[index], program, blow);
    let seconds = pool::map(singles.len(), threads, list, |_| bar.inc(1));
    bar.finish_and_clear();
    let pairs = singles.iter().zip(seconds).flat_map(|(single, seconds)| {
        seconds.into_iter().map(|second| {
            let mut points = single.points.clone();
            points.push(second);
            Case { schedule: single.schedule, points }
        })
    });
    pairs.collect()
}

fn second_points(single: &Case<'_>, program: &Arc<Program>, blow: Blow) -> Vec<CrashPoint> {
    let collecting = RunOptions { collect: Collect::JobManagers, ..RunOptions::default() };
    let outcome = run(&single.scenario(blow), program, &collecting);
    let points = outcome.detail.points.into_iter().map(|found| found.point);
    let first = single.points.last();
    points.skip_while(|point| Some(point) != first).skip(1).collect()
}

/// `count` of the indices below `total`, drawn uniformly without repetition, rising.
pub fn drawn(total: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut wanted = count.min(total);
    let mut chosen = Vec::with_capacity(wanted);
    for index in 0..total {
        let left = (total - index) as u128;
        // Uniform in 0..left up to 2^-64.
        let draw = (u128::from(rng.next_u64()) * left) >> 64;
        if draw < wanted as u128 {
            chosen.push(index);
            wanted -= 1;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_has_so_many_different_ones_from_everywhere_and_is_repeatable() {
        let chosen = drawn(1000, 100, 7);
        assert_eq!(chosen.len(), 100);
        assert!(chosen.is_sorted_by(|a, b| a < b) && chosen[99] < 1000);
        for tenth in 0..10 {
            let of_tenth = chosen.iter().filter(|index| **index / 100 == tenth).count();
            assert!((2..=25).contains(&of_tenth), "{of_tenth} of tenth {tenth}");
        }
        assert_eq!(drawn(1000, 100, 7), chosen);
        assert_ne!(drawn(1000, 100, 8), chosen);
        assert_eq!(drawn(3, 9, 1), [0, 1, 2]);
        assert!(drawn(0, 9, 1).is_empty());
    }
}
