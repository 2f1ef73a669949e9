//! S12: the end is final: once the commit or the job's end is decided no leader decides or starts
//! anything, everyone names the same end, and the event log is cleared only after the result is
//! recorded. (A log that is cleared earlier shows when a crash follows: the next leader would begin the job anew.)

use std::collections::BTreeMap;

use revenant::ids::{ExecutionAttemptId, ProcessId};
use revenant::message::JobOutcome;
use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    let mut committed = false;
    let mut ended: Option<&JobOutcome> = None;
    // What a leader that nobody has replaced still counts on, and where.
    let mut awaited: BTreeMap<ExecutionAttemptId, ProcessId> = BTreeMap::new();
    for (at, event) in history.outcome.trace.iter().enumerate() {
        if history.is_of_replaced(at) {
            continue;
        }
        let fail = |message: String| Err(history.violation("S12", at, message));
        match &event.what {
            TraceKind::Note(Note::CommitDecided { .. }) => committed = true,
            TraceKind::Note(Note::JobEnded { outcome } | Note::ResultRead { outcome }) => {
                if committed && !matches!(outcome, JobOutcome::Finished { .. }) {
                    return fail(format!("the commit was decided, and the job ended otherwise: {outcome:?}"));
                }
                match ended {
                    Some(before) if before != outcome => {
                        return fail(format!("the job ended as {before:?}, and again as {outcome:?}"));
                    }
                    _ => ended = Some(outcome),
                }
            }
            TraceKind::LogDeleted { path, .. } if ended.is_none() => {
                return fail(format!("{path} was deleted before the job's result was recorded"));
            }
            TraceKind::Note(Note::LeadershipAcquired { .. }) => awaited.clear(),
            TraceKind::Note(Note::AttemptFailed { attempt, .. }) => {
                awaited.remove(attempt);
            }
            TraceKind::Note(Note::TaskManagerLost { process, .. }) => {
                awaited.retain(|_, location| location != process);
            }
            // What is under way to a worker when a job is cancelled starts, and is told to stop.
            TraceKind::Note(Note::TaskStarted { attempt })
                if !committed || !awaited.contains_key(attempt) => {}
            TraceKind::Note(note) if committed || ended.is_some() => {
                if let Some(what) = begun_by(note) {
                    return fail(format!("{what} after the job's end was decided"));
                }
            }
            TraceKind::Note(Note::Deployed { attempt, location }) => {
                awaited.insert(*attempt, *location);
            }
            _ => {}
        }
    }
    Ok(())
}

fn begun_by(note: &Note) -> Option<String> {
    match note {
        Note::Deployed { attempt, .. } => Some(format!("{attempt} was deployed")),
        Note::TaskStarted { attempt } => Some(format!("{attempt} was started")),
        Note::FinishAccepted { attempt, .. } => Some(format!("the finish of {attempt} was accepted")),
        Note::SplitAssigned { attempt, split } => Some(format!("split {split} was assigned to {attempt}")),
        Note::VertexInitialized { vertex, .. } => Some(format!("{vertex} was initialized")),
        Note::SubtaskReset { subtask } => Some(format!("{subtask} was reset")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn an_end_that_is_told_again_is_good_and_so_is_clearing_the_log_then() {
        let mut story = Story::finished();
        story.delete_log(1).crash().lead_blindly(2).job_ended();
        passes(check, &story);
    }

    #[test]
    fn whatever_begins_after_the_end_is_caught() {
        caught(
            check,
            Story::finished().deploy(attempt(1, 0, 1, 2)),
            "v1.0.e1a2 was deployed after the job's end",
        );
        let started = |lost: Option<Note>| {
            let late = attempt(1, 0, 1, 2);
            let mut story = Story::new();
            story.run_sources().init_sinks().deploy(late);
            if let Some(note) = lost {
                story.note(note);
            }
            story.run_sinks().job_ended().started(1, late);
            story
        };
        caught(check, &started(None), "v1.0.e1a2 was started after");
        // It was under way to a worker that stood still, and was given up.
        let (process, reason) = (ProcessId::TaskManager(1), "silence".to_owned());
        passes(check, &started(Some(Note::TaskManagerLost { process, reason: reason.clone() })));
        passes(check, &started(Some(Note::AttemptFailed { attempt: attempt(1, 0, 1, 2), reason })));
    }

    #[test]
    fn when_a_job_is_cancelled_what_is_under_way_may_start_and_nothing_new() {
        let mut story = Story::new();
        story.start().deploy(attempt(0, 0, 1, 1)).note(Note::JobEnded { outcome: JobOutcome::Canceled });
        story.started(1, attempt(0, 0, 1, 1));
        passes(check, &story);
        story.note(Note::SplitAssigned { attempt: attempt(0, 0, 1, 1), split: 0 });
        caught(check, &story, "split 0 was assigned to v0.0.e1a1 after");
    }

    #[test]
    fn another_end_is_caught() {
        let mut story = Story::finished();
        story.note(Note::JobEnded { outcome: JobOutcome::Canceled });
        caught(check, &story, "the commit was decided, and the job ended otherwise");
        let mut story = Story::new();
        let failed = JobOutcome::Failed { reason: "disk full".to_owned() };
        story
            .note(Note::JobEnded { outcome: failed })
            .note(Note::ResultRead { outcome: JobOutcome::Canceled });
        caught(check, &story, "and again as Canceled");
    }

    #[test]
    fn a_log_that_is_cleared_before_the_result_is_recorded_is_caught() {
        let mut story = Story::new();
        story.run_sources().run_sinks().delete_log(1);
        caught(check, &story, "was deleted before the job's result was recorded");
    }
}
