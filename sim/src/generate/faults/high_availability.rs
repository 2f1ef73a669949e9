//! Leadership that ends, or changes hands, while its holder lives.

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, Fault, HaFault};

pub const KINDS: &[Kind] = &[
    kind("revoke leadership", 2, |draws, draft| lose(draws, draft, false, true)),
    kind("revoke leadership without notice", 2, |draws, draft| lose(draws, draft, false, false)),
    kind("change leader", 2, |draws, draft| lose(draws, draft, true, true)),
    kind("change leader without notice", 2, |draws, draft| lose(draws, draft, true, false)),
];

fn lose(draws: &mut Stream, draft: &Draft, successor: bool, notice: bool) -> Option<Vec<Fault>> {
    let time = draft.time(draws)?;
    let can = !successor || draft.scenario.cluster.job_managers > 1;
    can.then(|| vec![at(time, Action::HighAvailability(HaFault { successor, notice }))])
}
