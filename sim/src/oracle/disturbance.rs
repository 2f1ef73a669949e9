//! What the oracles of liveness and efficiency have to know of faults: when the last one was, whether one
//! stands, and who could not be reached. The one place that every family of faults has to be told to.

use std::collections::{BTreeMap, BTreeSet};

use revenant::ids::ProcessId;

use crate::scenario::{ClockFaultKind, DiskFaultKind};
use crate::trace::{Touched, TraceEvent, TraceKind, What};

/// Whether something goes wrong here, or is made good.
pub fn disturbs(event: &TraceEvent) -> bool {
    matches!(
        &event.what,
        TraceKind::FaultFired { .. }
            | TraceKind::Started
            | TraceKind::Crashed { .. }
            | TraceKind::Exited { failure: Some(_) }
            | TraceKind::Paused
            | TraceKind::Resumed
            | TraceKind::DiskFault(_)
            | TraceKind::DiskRefused { .. }
            | TraceKind::DiskRestored
            | TraceKind::NetworkFault(_)
            | TraceKind::Message(_)
            | TraceKind::ClockChanged { .. }
    )
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
            TraceKind::NetworkFault(fault) => {
                fault.stands()
                    && !trace[at..].iter().any(
                        |later| matches!(later.what, TraceKind::NetworkFault(heal) if heal.heals(*fault)),
                    )
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
    was_replaced(trace, from, until)
        || stood_still(trace, from, until)
        || lost_count_of_time(trace, from, until)
        || could_not_be_heard(trace, from, until)
}

fn is_worker(process: ProcessId) -> bool {
    matches!(process, ProcessId::TaskManager(_) | ProcessId::ShuffleService(_))
}

/// Whether a fault ended the leadership: workers turn to the next leader, and this one misses them.
fn was_replaced(trace: &[TraceEvent], from: usize, until: usize) -> bool {
    let between = trace.get(from..until.min(trace.len())).unwrap_or_default();
    between.iter().any(|event| matches!(event.what, TraceKind::HaFault(_)))
}

/// Whether a clock jumped or was set right: then a timeout of another process may seem to have passed.
fn lost_count_of_time(trace: &[TraceEvent], from: usize, until: usize) -> bool {
    let between = trace.get(from..until.min(trace.len())).unwrap_or_default();
    between.iter().any(|event| matches!(event.what, TraceKind::ClockChanged { fault: Some(_), .. }))
}

fn stood_still(trace: &[TraceEvent], from: usize, until: usize) -> bool {
    let workers =
        trace[..until.min(trace.len())].iter().enumerate().filter(|(_, event)| is_worker(event.process));
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

/// How a worker comes to a new leader, which it tries again only after a long pause.
const INTRODUCTION: [&str; 4] =
    ["WatchLeader", "LeaderChanged", "RegisterTaskManager", "RegistrationSuccess"];
/// What is said again soon, so that one loss does nothing: what a worker keeps, what it gives to readers, that
/// it lives.
const REPEATED: [&[&str]; 3] = [
    &["GetAndRetainPartitionWithMetrics", "PartitionReport"],
    &["OpenFetch", "Buffers", "AddCredit", "PartitionNotFound"],
    &["HeartbeatRequest", "HeartbeatResponse"],
];

fn could_not_be_heard(trace: &[TraceEvent], from: usize, until: usize) -> bool {
    let Some(begin) = trace.get(from) else { return false };
    let mut lost: BTreeMap<(usize, ProcessId), u32> = BTreeMap::new();
    for (at, event) in trace[..until.min(trace.len())].iter().enumerate() {
        let TraceKind::Message(Touched { kind, from: sender, to, what }) = &event.what else { continue };
        let Some(worker) = [sender.process, to.process].into_iter().find(|process| is_worker(*process))
        else {
            continue;
        };
        let is_lost = match *what {
            // It holds up what follows it, too.
            What::Delayed(by) | What::Slowed(by) if at >= from || event.time + by >= begin.time => {
                return true;
            }
            What::Overtaken(by) => at >= from || event.time + by >= begin.time,
            What::Repeated(_) | What::Delayed(_) | What::Slowed(_) => false,
            What::Dropped | What::Cut | What::LostOnTheWay | What::Reset => at >= from,
        };
        if is_lost && INTRODUCTION.contains(kind) {
            return true;
        }
        let about = REPEATED.iter().position(|kinds| kinds.contains(kind));
        if let Some(about) = about.filter(|_| is_lost) {
            let times = lost.entry((about, worker)).or_default();
            *times += 1;
            if *times > 1 {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use revenant::ids::Address;

    use super::*;
    use crate::oracle::testing::Story;
    use crate::scenario::{Action, HaFault, NetworkFault};

    const WORKER: ProcessId = ProcessId::TaskManager(1);

    fn touched(kind: &'static str, what: What) -> TraceKind {
        let to = Address::worker(WORKER);
        TraceKind::Message(Touched { kind, from: Address::MASTER, to, what })
    }

    fn heard(touched: &[TraceKind]) -> bool {
        let mut story = Story::new();
        let from = story.trace().len();
        for event in touched {
            story.happens(ProcessId::JOB_MANAGER, event.clone());
        }
        story.lead(2);
        !was_out_of_reach(story.trace(), from, story.trace().len())
    }

    #[test]
    fn one_lost_question_is_asked_again_and_an_introduction_is_not_in_time() {
        let ask = touched("GetAndRetainPartitionWithMetrics", What::Dropped);
        assert!(heard(std::slice::from_ref(&ask)));
        assert!(!heard(&[ask, touched("PartitionReport", What::Cut)]));
        assert!(!heard(&[touched("LeaderChanged", What::Dropped)]));
        assert!(heard(&[touched("Buffers", What::Dropped), touched("SubmitTask", What::Dropped)]));
        assert!(!heard(&[touched("Buffers", What::Dropped), touched("OpenFetch", What::Dropped)]));
        let beat = touched("HeartbeatResponse", What::Dropped);
        assert!(heard(std::slice::from_ref(&beat)) && !heard(&[beat.clone(), beat]));
        let fault = HaFault { successor: true, notice: false };
        assert!(!heard(&[TraceKind::HaFault(fault)]), "workers follow the next leader");
    }

    #[test]
    fn what_is_late_holds_up_the_rest_and_what_comes_twice_does_not() {
        let second = Duration::from_secs(1);
        assert!(!heard(&[touched("SubmitTask", What::Delayed(second))]));
        assert!(heard(&[touched("SubmitTask", What::Overtaken(second))]));
        assert!(heard(&[touched("LeaderChanged", What::Repeated(second))]));
    }

    #[test]
    fn a_way_that_is_closed_stands_until_it_is_healed() {
        let fault = |text: &str| match text.parse() {
            Ok(Action::Network(fault)) => fault,
            other => panic!("{other:?}"),
        };
        let stand = |faults: &[NetworkFault]| {
            let mut story = Story::new();
            for &fault in faults {
                story.happens(ProcessId::JOB_MANAGER, TraceKind::NetworkFault(fault));
            }
            stands(story.trace())
        };
        let cut = fault("cut job-manager to task-manager-1");
        assert!(stand(&[cut]) && stand(&[cut, fault("heal job-manager from task-manager-2")]));
        assert!(!stand(&[cut, fault("heal job-manager from task-manager-1")]));
        assert!(!stand(&[fault("reset job-manager to any")]));
    }
}
