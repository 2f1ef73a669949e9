//! What the oracles of liveness and efficiency have to know of faults: when the last one was, whether one
//! stands, and who could not be reached. The one place that every family of faults has to be told to.

use std::collections::BTreeSet;

use revenant::ids::ProcessId;

use crate::scenario::{ClockFaultKind, DiskFaultKind};
use crate::trace::{TraceEvent, TraceKind};

/// Whether something goes wrong here, or is made good.
pub fn disturbs(event: &TraceEvent) -> bool {
    match &event.what {
        TraceKind::FaultFired { .. }
        | TraceKind::Started
        | TraceKind::Crashed { .. }
        | TraceKind::Exited { failure: Some(_) }
        | TraceKind::Paused
        | TraceKind::Resumed
        | TraceKind::DiskFault(_)
        | TraceKind::DiskRefused { .. }
        | TraceKind::DiskRestored
        | TraceKind::ClockChanged { .. } => true,
        _ => false,
    }
}

/// Whether a fault was never healed.
pub fn stands(trace: &[TraceEvent]) -> bool {
    trace.iter().enumerate().any(|(at, event)| {
        let later = || trace[at..].iter().filter(|later| later.process == event.process);
        match &event.what {
            TraceKind::Paused => !later().any(|later| {
                matches!(
                    later.what,
                    TraceKind::Resumed | TraceKind::Crashed { .. } | TraceKind::Exited { .. }
                )
            }),
            TraceKind::ClockChanged { fault: Some(fault), .. }
                if !matches!(fault.kind, ClockFaultKind::Heal) =>
            {
                !later().any(|later| {
                    matches!(&later.what, TraceKind::ClockChanged { fault: Some(fault), .. }
                        if matches!(fault.kind, ClockFaultKind::Heal))
                })
            }
            TraceKind::DiskFault(fault) => {
                matches!(fault.kind, DiskFaultKind::Fail | DiskFaultKind::Full | DiskFaultKind::Slow(_))
                    && !trace[at..].iter().any(|later| {
                        matches!(later.what, TraceKind::DiskFault(heal)
                            if heal.purpose == fault.purpose && matches!(heal.kind, DiskFaultKind::Heal))
                    })
            }
            _ => false,
        }
    })
}

/// Whether a process died and did not come back.
pub fn is_down(trace: &[TraceEvent], process: ProcessId) -> bool {
    let last =
        trace.iter().rev().filter(|event| event.process == process).find_map(|event| match event.what {
            TraceKind::Started => Some(false),
            TraceKind::Crashed { .. } => Some(true),
            _ => None,
        });
    last.unwrap_or(false)
}

/// Whether a worker could not answer for some time between two trace events, though it lives: who waits for
/// its partitions may give them up.
pub fn was_out_of_reach(trace: &[TraceEvent], from: usize, until: usize) -> bool {
    let workers = trace[..until.min(trace.len())].iter().enumerate().filter(|(_, event)| {
        matches!(event.process, ProcessId::TaskManager(_) | ProcessId::ShuffleService(_))
    });
    let mut silent: BTreeSet<ProcessId> = BTreeSet::new();
    for (at, event) in workers {
        if at >= from && !silent.is_empty() {
            return true;
        }
        match event.what {
            TraceKind::Paused => {
                silent.insert(event.process);
            }
            TraceKind::Resumed | TraceKind::Crashed { .. } | TraceKind::Exited { .. } => {
                silent.remove(&event.process);
            }
            _ => {}
        }
    }
    !silent.is_empty()
}
