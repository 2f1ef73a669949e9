//! L1: the run ends by itself, with the job finished, or cancelled if somebody asked for it, and in
//! time: within a bound after the last fault or heal, or after the latest message came that a fault made late.
//!
//! The bound follows from the scenario. From a state in which everything works again, what the job may
//! have to wait for, one after the other, is [`Patience::waits`](super::Patience). Besides it runs: at most all of it
//! again, which takes as long as it takes without faults, and longer by as much as there are fewer TaskManagers than at
//! the beginning; and before that its leader and its workers come together once more, which is part of that
//! length, too. So: `waits + 2 × crash-free length × (TaskManagers / those that are left)`, once, and once
//! more for every later moment at which attempts failed or a new leader came: what a fault has broken may be found out
//! late. There is no bound as long as a fault stands: a disk that is broken or slow, a process that stands still, a
//! clock that goes wrong; then it is enough that the run ends. Where nothing is made good (profile `hostile`) it may
//! end in any way, or never; but nobody panics.

use std::time::Duration;

use revenant::actor::Time;
use revenant::ids::ProcessId;
use revenant::note::Note;

use super::disturbance::{disturbs, is_down, lasts_until, stands};
use super::{History, Violation};
use crate::scenario::Profile;
use crate::trace::{RunEnd, RunOutcome, TraceKind};

pub fn check(history: &History) -> Result<(), Violation> {
    let message = match &history.outcome.ended {
        RunEnd::Panicked { process, actor, message } => format!("{process}:{actor} panicked: {message}"),
        RunEnd::Contradicted { .. } => return Ok(()), // S16
        _ if history.patience.profile == Profile::Hostile => return Ok(()),
        RunEnd::Finished => return in_time(history),
        RunEnd::Canceled if !history.cancels.is_empty() => return in_time(history),
        RunEnd::Failed { reason } => format!("the job failed: {reason}"),
        RunEnd::Canceled => "the job was cancelled, and nobody had asked for it".to_owned(),
        RunEnd::Stuck { why } => format!("the run does not end: {why}"),
    };
    let hint = if stands(&history.outcome.trace) { NEVER_HEALED } else { "" };
    Err(history.violation("L1", history.outcome.trace.len(), message + hint))
}

/// Most likely the scenario is meant otherwise.
const NEVER_HEALED: &str = "; a fault of the scenario is never made good: give it its heal, or promise nothing with \
     profile = \"hostile\" in [expect]";

fn in_time(history: &History) -> Result<(), Violation> {
    let Some((over, took)) = since_last_fault(history.outcome) else { return Ok(()) };
    let trace = &history.outcome.trace;
    let mut late: Vec<Time> = trace
        .iter()
        .filter(|event| {
            event.time >= over
                && matches!(
                    event.what,
                    TraceKind::Note(
                        Note::AttemptFailed { .. }
                            | Note::GlobalFailure { .. }
                            | Note::LeadershipAcquired { .. }
                    )
                )
        })
        .map(|event| event.time)
        .collect();
    late.dedup();
    let patience = &history.patience;
    let all = patience.task_managers.max(1);
    let left = (1..=all).filter(|&number| !is_down(trace, ProcessId::TaskManager(number))).count().max(1);
    let again = patience.calm * 2 * all / left as u32;
    let limit = (patience.waits + again) * (1 + late.len() as u32);
    if took <= limit {
        return Ok(());
    }
    let message = format!("the job ended {took:?} after the last fault, which should take {limit:?} at most");
    Err(history.violation("L1", trace.len(), message))
}

/// When the last fault was over, if none stands, and how long after it the client knew the job's end. What would come
/// only after the end has held nothing up.
pub fn since_last_fault(outcome: &RunOutcome) -> Option<(Time, Duration)> {
    let trace = &outcome.trace;
    let end = trace
        .iter()
        .rev()
        .find(|event| event.process == ProcessId::Client && matches!(event.what, TraceKind::Exited { .. }))?;
    let faults = (0..trace.len()).filter(|&at| trace[at].time <= end.time && disturbs(&trace[at]));
    let over = faults.flat_map(|at| [trace[at].time, lasts_until(trace, at)]);
    let over = over.filter(|&over| over <= end.time).max()?;
    (!stands(trace)).then(|| (over, end.time.since(over)))
}

#[cfg(test)]
mod tests {
    use revenant::ids::{ActorId, Address, ProcessId};

    use super::*;
    use crate::oracle::Patience;
    use crate::oracle::testing::{Story, attempt, caught, passes};
    use crate::trace::{Touched, What};

    #[test]
    fn only_a_finished_run_is_good() {
        let mut story = Story::new();
        story.run_sources().run_sinks();
        passes(check, &story);
        story.end(RunEnd::Stuck { why: "nothing is left that could happen".to_owned() });
        caught(check, &story, "does not end: nothing is left that could happen");
        let mut broken = story.clone();
        broken.happens(ProcessId::JOB_MANAGER, TraceKind::Paused);
        caught(check, &broken, "a fault of the scenario is never made good");
        broken.happens(ProcessId::JOB_MANAGER, TraceKind::Resumed);
        caught(check, &broken, "could happen");
        story.end(RunEnd::Failed { reason: "v0.1 failed".to_owned() });
        caught(check, &story, "the job failed: v0.1 failed");
        passes(hostile, &story);
        let (process, actor) = (ProcessId::JOB_MANAGER, ActorId::Master);
        story.end(RunEnd::Panicked { process, actor, message: "no way".to_owned() });
        for judge in [check, hostile] {
            caught(judge, &story, "job-manager:master panicked: no way");
        }
        story.end(RunEnd::Canceled);
        caught(check, &story, "nobody had asked for it");
        let mut early = story.clone();
        early.happens(ProcessId::JobManager(2), TraceKind::CancelReached);
        passes(check, &early);
        story.cancel();
        passes(check, &story);
    }

    /// Of a run in which nothing is made good.
    fn hostile(history: &History) -> Result<(), Violation> {
        let patience = Patience { profile: Profile::Hostile, ..history.patience };
        check(&History::new(history.graph, history.shape, patience, history.outcome))
    }

    fn ends_after(seconds: u64, before: &[TraceKind]) -> Story {
        let mut story = Story::new();
        story.run_sources();
        for what in before {
            story.happens(ProcessId::JOB_MANAGER, what.clone());
        }
        story.run_sinks().wait(seconds).happens(ProcessId::Client, TraceKind::Exited { failure: None });
        story
    }

    #[test]
    fn a_run_that_ends_long_after_the_last_fault_is_caught_and_one_without_faults_takes_its_time() {
        let fault = [TraceKind::FaultFired { fault: 0 }];
        passes(check, &ends_after(100, &fault));
        caught(check, &ends_after(130, &fault), "the job ended 130");
        passes(check, &ends_after(130, &[]));
    }

    #[test]
    fn the_last_fault_is_over_when_the_latest_message_has_come() {
        let late = |by: u64| {
            let (from, to) = (Address::MASTER, Address::worker(ProcessId::TaskManager(1)));
            let what = What::Delayed(Duration::from_secs(by));
            TraceKind::Message(Touched { kind: "SubmitTask", from, to, what })
        };
        let fault = TraceKind::FaultFired { fault: 0 };
        passes(check, &ends_after(130, &[late(90), fault.clone()]));
        caught(check, &ends_after(130, &[late(1000)]), "the job ended 130");
        caught(check, &ends_after(130, &[late(1), fault]), "the job ended 129");
    }

    #[test]
    fn a_failure_after_the_last_fault_gives_more_time_and_a_fault_that_stands_all_there_is() {
        let failed = Note::AttemptFailed { attempt: attempt(0, 0, 1, 1), reason: "gone".to_owned() };
        let fault = TraceKind::FaultFired { fault: 0 };
        passes(check, &ends_after(130, &[fault, TraceKind::Note(failed)]));
        passes(check, &ends_after(1000, &[TraceKind::Paused]));
        caught(check, &ends_after(1000, &[TraceKind::Paused, TraceKind::Resumed]), "the job ended 1000");
    }
}
