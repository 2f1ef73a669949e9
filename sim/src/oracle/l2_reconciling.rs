//! L2: a leader that reconciles decides with what was reported to it in time: from its entering
//! RECONCILING to its decision passes at most `previous-worker.recovery.timeout`, by its own clock, and
//! not counting time in which its process stood still.

use revenant::message::JobStatus;
use revenant::note::Note;

use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    let length = history.outcome.trace.len();
    for leader in &history.leaders {
        let until = leader.until.min(length);
        let entered = history.says(leader, leader.acquired, until, |note| {
            matches!(note, Note::JobStatusChanged { status: JobStatus::Reconciling, .. })
        });
        let Some(entered) = entered else { continue };
        let decided =
            leader.recovered.or_else(|| history.ends_otherwise(leader, entered, until)).unwrap_or(until);
        let waited = history.worked(leader, entered, decided);
        let limit = history.patience.recovery;
        if waited > limit {
            let message = format!("leader {} reconciled for {waited:?}, longer than {limit:?}", leader.token);
            return Err(history.violation("L2", decided, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use revenant::actor::Time;
    use revenant::ids::ProcessId;

    use super::*;
    use crate::clock::Clock;
    use crate::oracle::Patience;
    use crate::oracle::testing::{Story, attempt, caught, passes};
    use crate::scenario::{ClockFaultKind, Skew};
    use crate::trace::TraceKind;

    fn reconciling(seconds: u64) -> Story {
        let mut story = Story::new();
        story.run_sources().crash().lead(2).status(2, JobStatus::Reconciling).wait(seconds);
        story
    }

    #[test]
    fn a_decision_in_time_is_good_and_a_later_one_or_none_is_caught() {
        passes(check, reconciling(29).recovered(2, &[]));
        caught(check, reconciling(31).recovered(2, &[]), "leader 2 reconciled for 3");
        caught(check, reconciling(31).deploy(attempt(0, 0, 2, 1)), "leader 2 reconciled for 3");
    }

    #[test]
    fn a_clock_that_jumps_lets_it_decide_at_once_and_not_later() {
        let jumps = |behind: u64| {
            let mut story = reconciling(1);
            let mut clock = Clock::default();
            clock.change(Time(0), ClockFaultKind::Jump(Skew(60_000_000_000)));
            story.happens(ProcessId::JOB_MANAGER, TraceKind::ClockChanged { clock, fault: None });
            story.wait(behind).recovered(2, &[]);
            story
        };
        passes(check, &jumps(0));
        caught(check, &jumps(1), "leader 2 reconciled for");
        // Also if nothing takes any time.
        let at_once = |history: &History| {
            let patience = Patience { round_trip: Duration::ZERO, ..history.patience };
            check(&History::new(history.graph, history.shape, patience, history.outcome))
        };
        caught(at_once, &jumps(0), "leader 2 reconciled for");
        passes(at_once, jumps(0).in_the_same_instant());
    }

    #[test]
    fn a_process_that_stands_still_is_not_to_blame() {
        let mut story = reconciling(0);
        story.happens(ProcessId::JOB_MANAGER, TraceKind::Paused).wait(60);
        story.happens(ProcessId::JOB_MANAGER, TraceKind::Resumed).recovered(2, &[]);
        passes(check, &story);
    }
}
