//! Processes that stand still and go on, start again though they should stay down, or come back with an
//! old disk.

use std::time::Duration;

use revenant::ids::ProcessId;

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, Fault, ProcessFault, ProcessFaultKind, RestartAfter};

pub const KINDS: &[Kind] =
    &[kind("pause", 3, pause), kind("start", 1, start), kind("restore disk", 2, restore)];

fn fault(time: revenant::actor::Time, kind: ProcessFaultKind, process: ProcessId) -> Fault {
    at(time, Action::Process(ProcessFault { kind, process }))
}

fn pause(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let process = draws.one_of(&draft.processes());
    let begin = draft.time(draws)?;
    let for_so_long = Duration::from_millis(draws.one_of(&[1, 500, 20_000, 120_000]));
    let stays = draws.one_in(3) && draft.is_hostile();
    let mut faults = vec![fault(begin, ProcessFaultKind::Pause, process)];
    if !stays {
        faults.push(fault(begin + for_so_long, ProcessFaultKind::Resume, process));
    }
    Some(faults)
}

/// Down for good, and then started after all.
fn start(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let process = draws.one_of(&draft.processes());
    let begin = draft.time(draws)?;
    let action = Action::Crash { process, machine: draws.one_in(2) };
    let crash = Fault { restart_after: Some(RestartAfter::Never), ..at(begin, action) };
    let down = Duration::from_millis(draws.one_of(&[1, 1000, 90_000]));
    Some(vec![crash, fault(begin + down, ProcessFaultKind::Start, process)])
}

/// The disk of a worker is what it was some time before its machine died.
fn restore(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    let mut workers = draft.processes();
    workers.retain(|process| matches!(process, ProcessId::TaskManager(_) | ProcessId::ShuffleService(_)));
    let process = draws.one_of(&workers);
    let (one, other) = (draft.time(draws)?, draft.time(draws)?);
    let (old, crash) = (one.min(other), one.max(other));
    let restart_after = Some(RestartAfter::After(Duration::from_secs(2)));
    let dies = Action::Crash { process, machine: true };
    Some(vec![
        fault(old, ProcessFaultKind::SnapshotDisk, process),
        Fault { restart_after, ..at(crash, dies) },
        fault(crash + Duration::from_secs(1), ProcessFaultKind::RestoreDisk, process),
    ])
}
