//! S7 (with S6): an attempt that a recovery keeps as finished has a finish in the log that the new
//! leader read, with no later reset in it, and the finish was once accepted. Nothing else makes a
//! subtask finished: not a partition that is still there, not a memory.

use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in &history.leaders {
        let Some(at) = leader.recovered else { continue };
        let TraceKind::Note(Note::Recovered { kept, .. }) = &history.outcome.trace[at].what else { continue };
        // What was in the log when the leader came, or until it had read it; its own records tell nothing about
        // the past.
        let found: Vec<_> = history.log.states_between(leader.acquired, leader.read).collect();
        for attempt in kept {
            if found.iter().all(|state| state.finished.get(&attempt.subtask) != Some(attempt)) {
                let message = format!("recovery kept {attempt} as finished, the log does not say that it is");
                return Err(history.violation("S7", at, message));
            }
            if history.counted(attempt.subtask, at).is_none() {
                let message = format!("recovery kept {attempt} as finished, which no leader had accepted");
                return Err(history.violation("S7", at, message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, finished, passes};

    #[test]
    fn what_the_replaced_leader_logs_until_the_next_has_read_the_log_may_be_kept() {
        let kept = |before: bool| {
            let token = revenant::ids::FencingToken(2);
            let replayed = Note::Replayed { token, events: 2, finished: vec![], damage: None };
            let mut story = Story::new();
            story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).lead_blindly(2);
            if before {
                story.log(1, finished(attempt(0, 1, 1, 1))).note(replayed);
            } else {
                story.note(replayed).log(1, finished(attempt(0, 1, 1, 1)));
            }
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
            story
        };
        passes(check, &kept(true));
        caught(check, &kept(false), "recovery kept v0.1.e1a1 as finished");
    }

    #[test]
    fn a_logged_finish_may_be_kept_synced_or_not() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).unsynced(1, finished(attempt(0, 1, 1, 1)));
        story.crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        passes(check, &story);
    }

    #[test]
    fn a_finish_that_no_record_names_is_caught() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        caught(check, &story, "kept v0.1.e1a1 as finished, the log does not say");
    }

    #[test]
    fn a_finish_that_was_reset_is_caught() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).reset(1, attempt(0, 0, 1, 1).subtask);
        story.crash().lead(2).recovered(2, &[attempt(0, 0, 1, 1)]);
        caught(check, &story, "the log does not say");
    }
}
