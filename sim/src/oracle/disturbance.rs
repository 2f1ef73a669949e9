//! What the oracles of liveness and efficiency have to know of faults: when the last one was, whether one
//! stands. Every family of faults has to be told here, and in [`super::missed`].

use std::time::Duration;

use revenant::actor::Time;
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

/// When what goes wrong at index `at` is over by itself: a late message comes then. (One that comes twice comes in time,
/// too.) Timers of a clock that was set back wait for as long as it has to go again.
pub fn lasts_until(trace: &[TraceEvent], at: usize) -> Time {
    let event = &trace[at];
    match event.what {
        TraceKind::ClockChanged { clock, fault: Some(_) } => {
            let earlier = trace[..at].iter().rev().find_map(|earlier| match earlier.what {
                TraceKind::ClockChanged { clock, .. } if earlier.process == event.process => Some(clock),
                _ => None,
            });
            let before = earlier.unwrap_or_default().shows(event.time);
            event.time + Duration::from_nanos(before.0.saturating_sub(clock.shows(event.time).0))
        }
        TraceKind::Message(Touched {
            what: What::Delayed(by) | What::Slowed(by) | What::Overtaken(by),
            ..
        }) => event.time + by,
        _ => event.time,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::oracle::testing::Story;
    use crate::scenario::{Action, NetworkFault, Skew};

    #[test]
    fn a_clock_that_is_set_back_holds_timers_up_and_one_that_is_set_ahead_does_not() {
        let changed = |skews: &[i64]| {
            let mut story = Story::new();
            let mut clock = Clock::default();
            for &seconds in skews {
                clock.change(Time(0), ClockFaultKind::Jump(Skew(seconds * 1_000_000_000)));
                let Ok(Action::Clock(fault)) = "clock of job-manager jump +1 s".parse() else { panic!() };
                story.happens(ProcessId::JOB_MANAGER, TraceKind::ClockChanged { clock, fault: Some(fault) });
            }
            let last = story.trace().len() - 1;
            lasts_until(story.trace(), last).since(story.trace()[last].time)
        };
        assert_eq!(changed(&[300]), Duration::ZERO);
        assert_eq!(changed(&[300, -200]), Duration::from_secs(200));
        assert_eq!(changed(&[300, -200, 100]), Duration::ZERO);
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
