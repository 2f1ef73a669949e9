//! Crashes: of each kind of process, at a point or a time, of a machine, of several together, during
//! recovery, and for good.

use std::time::Duration;

use revenant::ids::ProcessId;

use super::{Draft, Kind, Stream, at, kind};
use crate::point::CrashPoint;
use crate::scenario::{Action, Fault, RestartAfter, Trigger};
use crate::trace::FoundPoint;

pub const KINDS: &[Kind] = &[
    kind("crash job-manager", 6, |draws, draft| {
        crash(draws, draft, |p| matches!(p, ProcessId::JobManager(_)), false)
    }),
    kind("crash task-manager", 4, |draws, draft| {
        crash(draws, draft, |p| matches!(p, ProcessId::TaskManager(_)), false)
    }),
    kind("crash shuffle-service", 3, |draws, draft| {
        crash(draws, draft, |p| matches!(p, ProcessId::ShuffleService(_)), false)
    }),
    kind("crash high-availability", 2, |draws, draft| {
        crash(draws, draft, |p| p == ProcessId::HighAvailability, false)
    }),
    kind("crash client", 1, |draws, draft| crash(draws, draft, |p| p == ProcessId::Client, false)),
    kind("crash machine", 3, |draws, draft| crash(draws, draft, |_| true, true)),
    kind("crash at a time", 2, crash_at_a_time),
    kind("crash for good", 2, crash_for_good),
    kind("crash together", 3, crash_together),
    kind("crash in recovery", 5, crash_in_recovery),
];

/// How many of the first points of an incarnation count as its recovery.
const RECOVERY: usize = 60;

pub fn restart(draws: &mut Stream) -> Option<RestartAfter> {
    let after = draws.one_of(&[None, Some(1), Some(100), Some(2_000), Some(60_000)]);
    after.map(|after| RestartAfter::After(Duration::from_millis(after)))
}

/// Written by number, or by the name of an effect.
fn written(draws: &mut Stream, found: &FoundPoint) -> CrashPoint {
    if draws.one_in(2) {
        return found.point.clone();
    }
    draws.any(&found.names).unwrap_or(&found.point).clone()
}

fn crash(draws: &mut Stream, draft: &Draft, of: fn(ProcessId) -> bool, machine: bool) -> Option<Vec<Fault>> {
    let points: Vec<&FoundPoint> = draft.points().filter(|found| of(found.point.process)).collect();
    let found = *draws.any(&points)?;
    let restart_after = restart(draws);
    Some(vec![Fault { restart_after, ..Fault::crash_at(written(draws, found), machine) }])
}

fn crash_at_a_time(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let process = draws.one_of(&draft.processes());
    let action = Action::Crash { process, machine: draws.one_in(2) };
    Some(vec![Fault { restart_after: restart(draws), ..at(draft.time(draws)?, action) }])
}

fn crash_for_good(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let process = draws.one_of(&draft.processes());
    if !draft.is_hostile() && !draft.can_be_spared(process) {
        return None;
    }
    let points: Vec<&FoundPoint> = draft.points().filter(|found| found.point.process == process).collect();
    let found = *draws.any(&points)?;
    let restart_after = Some(RestartAfter::Never);
    Some(vec![Fault { restart_after, ..Fault::crash_at(written(draws, found), draws.one_in(2)) }])
}

/// One at a point, and one or two others with it.
fn crash_together(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let points: Vec<&FoundPoint> = draft.points().collect();
    let found = *draws.any(&points)?;
    let first = found.point.process;
    let mut faults =
        vec![Fault { restart_after: restart(draws), ..Fault::crash_at(written(draws, found), false) }];
    let mut others = draft.processes();
    others.retain(|&other| other != first && other != ProcessId::Client);
    for _ in 0..draws.between(1, 2) {
        let other = draws.one_of(&others);
        if faults.iter().any(|fault| fault.action.process() == Some(other)) {
            continue;
        }
        faults.push(Fault {
            at: Trigger::CrashOf { process: first, incarnation: found.point.incarnation },
            action: Action::Crash { process: other, machine: draws.one_in(2) },
            restart_after: restart(draws),
        });
    }
    Some(faults)
}

/// At one of the first events of an incarnation that is not the first.
fn crash_in_recovery(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let of_later = draft.points().filter(|found| {
        matches!(found.point.process, ProcessId::JobManager(_)) && found.point.incarnation > 1
    });
    let points: Vec<&FoundPoint> = of_later.take(RECOVERY).collect();
    let found = *draws.any(&points)?;
    let machine = draws.one_in(3);
    Some(vec![Fault { restart_after: restart(draws), ..Fault::crash_at(written(draws, found), machine) }])
}
