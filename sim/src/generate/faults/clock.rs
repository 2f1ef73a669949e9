//! Clocks that jump or drift, and are set right.

use std::time::Duration;

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, ClockFault, ClockFaultKind, Drift, Fault, Skew};

pub const KINDS: &[Kind] = &[
    kind("clock jump", 2, |draws, draft| {
        let by =
            Skew(draws.one_of(&[-300_000_000_000, -10_000_000, 10_000_000, 5_000_000_000, 300_000_000_000]));
        wrong(draws, draft, ClockFaultKind::Jump(by))
    }),
    kind("clock drift", 2, |draws, draft| {
        let by = Drift(draws.one_of(&[-200_000, -100, 100, 20_000, 200_000]));
        wrong(draws, draft, ClockFaultKind::Drift(by))
    }),
];

fn wrong(draws: &mut Stream, draft: &Draft, kind: ClockFaultKind) -> Option<Vec<Fault>> {
    let process = draws.one_of(&draft.processes());
    let begin = draft.time(draws)?;
    let for_so_long = Duration::from_millis(draws.one_of(&[1, 1000, 60_000]));
    let fault = |time, kind| at(time, Action::Clock(ClockFault { process, kind }));
    let mut faults = vec![fault(begin, kind)];
    if draws.one_in(2) {
        faults.push(fault(begin + for_so_long, ClockFaultKind::Heal));
    }
    Some(faults)
}
