//! S8: a recovery keeps of a source's finishes those that the restored state of its coordinator knows:
//! none that came after the latest snapshot in the log; of an enumerator without snapshots all or
//! none (FLIP-383: "reconcile the execution job vertex state with the operator coordinator state").

use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in &history.leaders {
        let Some(at) = leader.recovered else { continue };
        let TraceKind::Note(Note::Recovered { kept, .. }) = &history.outcome.trace[at].what else { continue };
        // What was in the log when the leader came, or until it had read it.
        let mut found: Vec<_> = history.log.states_between(leader.acquired, leader.read).collect();
        for state in &mut found {
            state.reconcile(history.graph);
        }
        for attempt in
            kept.iter().filter(|attempt| history.graph.vertex(attempt.subtask.vertex).source.is_some())
        {
            if found.iter().all(|state| state.finished.get(&attempt.subtask) != Some(attempt)) {
                let message =
                    format!("recovery kept {attempt}, whose splits no snapshot of its coordinator knows");
                return Err(history.violation("S8", at, message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, finished, finished_without_snapshot, passes};

    #[test]
    fn a_finish_that_a_snapshot_covers_may_be_kept() {
        let mut story = Story::new();
        story.run_sources().log_init(1, 0).log(1, finished_without_snapshot(attempt(0, 0, 1, 1)));
        story.log(1, finished(attempt(0, 1, 1, 1))).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        passes(check, &story);
    }

    #[test]
    fn a_finish_after_the_latest_snapshot_is_caught() {
        let mut story = Story::new();
        story.run_sources().log_init(1, 0).log(1, finished(attempt(0, 0, 1, 1)));
        story.log(1, finished_without_snapshot(attempt(0, 1, 1, 1))).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1)]);
        passes(check, &story);
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        caught(check, &story, "recovery kept v0.1.e1a1, whose splits no snapshot of its coordinator knows");
    }
}
