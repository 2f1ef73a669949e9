//! Disks that fail, are full or slow, and are healed, and logs of which a bit is flipped. Only logs have
//! checksums: a flipped bit of a row is another row, and nobody promises to see it.

use std::time::Duration;

use revenant::actor::{Purpose, Time};
use revenant::note::Note;

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, DiskFault, DiskFaultKind, Fault, OPERATIONS, PURPOSES, Span};
use crate::trace::TraceKind;

pub const KINDS: &[Kind] = &[
    kind("disk fail", 3, |draws, draft| broken(draws, draft, DiskFaultKind::Fail)),
    kind("disk full", 2, |draws, draft| broken(draws, draft, DiskFaultKind::Full)),
    kind("disk slow", 2, |draws, draft| {
        let by = Duration::from_millis(draws.one_of(&[1, 100, 2000]));
        broken(draws, draft, DiskFaultKind::Slow(Span(by)))
    }),
    kind("disk fail once", 3, once),
    kind("disk corrupt", 2, corrupt),
];

/// In hostile scenarios it may stay broken.
fn broken(draws: &mut Stream, draft: &Draft, kind: DiskFaultKind) -> Option<Vec<Fault>> {
    let purpose = draws.one_of(&PURPOSES);
    let begin = draft.time(draws)?;
    let for_so_long = Duration::from_millis(draws.one_of(&[1, 50, 800]));
    // A job whose files cannot be listed when it begins fails.
    let is_listed = draft
        .run
        .trace
        .iter()
        .any(|event| matches!(event.what, TraceKind::Note(Note::Deployed { .. })) && event.time < begin);
    if purpose == Purpose::Source && !is_listed && !draft.is_hostile() {
        return None;
    }
    let stays = draws.one_in(3) && draft.is_hostile();
    let process = draws.one_of(&draft.processes());
    let process = if draws.one_in(3) { Some(process) } else { None };
    let fault = |time, kind| at(time, Action::Disk(DiskFault { purpose, process, kind }));
    let mut faults = vec![fault(begin, kind)];
    if !stays {
        faults.push(fault(begin + for_so_long, DiskFaultKind::Heal));
    }
    Some(faults)
}

/// One of the next operations of a kind.
fn once(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    // A job whose files cannot be listed when it begins fails.
    let purposes = if draft.is_hostile() { &PURPOSES[..] } else { &PURPOSES[..5] };
    let purpose = draws.one_of(purposes);
    let (operation, occurrence) = (draws.one_of(&OPERATIONS), draws.between(1, 3));
    let kind = DiskFaultKind::FailOnce { operation, occurrence };
    Some(vec![at(draft.time(draws)?, Action::Disk(DiskFault { purpose, process: None, kind }))])
}

/// A bit of what is durable of the job event log at a time.
fn corrupt(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let synced: Vec<(Time, u64)> = draft
        .run
        .trace
        .iter()
        .filter(|event| event.time > draft.from && event.time < draft.until)
        .filter_map(|event| match event.what {
            TraceKind::LogSynced { length, .. } if length > 0 => Some((event.time, length)),
            _ => None,
        })
        .collect();
    let &(time, length) = draws.any(&synced)?;
    let kind = DiskFaultKind::Corrupt { offset: draws.below(length) };
    let fault = Action::Disk(DiskFault { purpose: Purpose::JobEvent, process: None, kind });
    Some(vec![at(time + Duration::from_micros(1), fault)])
}
