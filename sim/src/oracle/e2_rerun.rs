//! E2: a new leader starts at most as many finished subtasks again as had finishes that were not
//! durable, plus those whose partitions were lost or that read what may have changed by that, plus
//! one for each attempt that failed since.

use std::collections::BTreeSet;

use revenant::note::Note;

use super::durable::Loss;
use super::missed::{Missed, missed};
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in history.leaders.iter().skip(1).filter(|leader| !history.is_blind(leader)) {
        let until = leader.until.min(history.outcome.trace.len());
        let missed = missed(history, leader, until);
        let loss = Loss::without(history, leader, &missed, until);
        let deployed = history.deployed.iter().filter(|deployed| {
            deployed.attempt.epoch == leader.token && loss.finished.contains(&deployed.attempt.subtask)
        });
        // Whoever is missed may be so more than once.
        let nobody = missed == Missed::nobody();
        let subtasks: BTreeSet<_> = deployed.clone().map(|deployed| deployed.attempt.subtask).collect();
        let reruns = if nobody { deployed.count() } else { subtasks.len() };
        let failed = history.outcome.trace[leader.acquired..until]
            .iter()
            .filter(|event| matches!(event.what, TraceKind::Note(Note::AttemptFailed { .. })))
            .count();
        if reruns > loss.unflushed + loss.closure + failed {
            let message = format!(
                "leader {} ran {reruns} finished subtasks again: {} finishes were not durable or not in a snapshot, {} depend on \
                 lost partitions, {failed} attempts failed",
                leader.token, loss.unflushed, loss.closure
            );
            return Err(history.violation("E2", until, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, finished, passes};

    #[test]
    fn one_rerun_for_each_finish_that_was_not_durable_is_good_and_more_is_caught() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1)]).deploy(attempt(0, 1, 2, 1));
        passes(check, &story);
        story.deploy(attempt(0, 1, 2, 2));
        caught(
            check,
            &story,
            "leader 2 ran 2 finished subtasks again: 1 finishes were not durable or not in a snapshot",
        );
    }

    #[test]
    fn only_consumers_of_what_may_change_are_free_to_run_again() {
        let lost_a_source = |mut story: Story| {
            story.run_sources().log_init(1, 0).init_sinks().log_init(1, 1);
            story.log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
            story.finish_sink(attempt(1, 0, 1, 1)).log(1, finished(attempt(1, 0, 1, 1)));
            story.crash().crash_worker(1).lead(2).recovered(2, &[attempt(0, 1, 1, 1)]);
            story.deploy(attempt(0, 0, 2, 1)).deploy(attempt(1, 0, 2, 1));
            story
        };
        passes(check, &lost_a_source(Story::new()));
        caught(check, &lost_a_source(Story::determinate()), "leader 2 ran 2 finished subtasks again");
    }

    #[test]
    fn a_failed_attempt_may_run_once_more() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1)]).deploy(attempt(0, 1, 2, 1));
        story.note(Note::AttemptFailed { attempt: attempt(0, 1, 2, 1), reason: "disk full".to_owned() });
        story.deploy(attempt(0, 1, 2, 2));
        passes(check, &story);
    }
}
