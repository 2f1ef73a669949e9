//! L6: a cancel is honoured in every state. Once it has reached a leader before all subtasks were
//! finished, that leader starts no task any more; if it is not lost, the job ends cancelled; and a
//! cancelled job has committed nothing. Whether a cancel reached a leader is what the simulator saw
//! delivered, not what the leader says of it.

use super::Violation;
use super::history::{END, History, Leader};
use crate::trace::{RunEnd, TraceKind};

pub fn check(history: &History) -> Result<(), Violation> {
    history.cancels.iter().try_for_each(|&at| judge(history, at))?;
    let outcome = history.outcome;
    if outcome.ended == RunEnd::Canceled
        && let Some(path) = outcome.output.keys().find(|path| !path.split('/').any(|part| part == ".pending"))
    {
        let message = format!("the job was cancelled, and {path} was committed");
        return Err(history.violation("L6", outcome.trace.len(), message));
    }
    Ok(())
}

fn judge(history: &History, at: usize) -> Result<(), Violation> {
    let told = history.outcome.trace[at].process;
    let leads = |leader: &&Leader| leader.process == told && leader.acquired <= at && at < leader.until;
    let Some(leader) = history.leaders.iter().rev().find(leads) else {
        return Ok(()); // It does not lead yet, or not any more.
    };
    let decided = [history.commit_decided, history.failure_decided];
    if history.is_complete(at) || decided.into_iter().flatten().any(|decided| decided < at) {
        return Ok(());
    }
    let own = |attempt: revenant::ids::ExecutionAttemptId| attempt.epoch == leader.token;
    if let Some(deployed) = history.deployed.iter().find(|deployed| deployed.at > at && own(deployed.attempt))
    {
        let message = format!("{} was deployed after a cancel had reached its leader", deployed.attempt);
        return Err(history.violation("L6", deployed.at, message));
    }
    if stays(history, leader) && history.outcome.ended != RunEnd::Canceled {
        let message = format!("a cancel reached leader {}, and the job was not cancelled", leader.token);
        return Err(history.violation("L6", at, message));
    }
    Ok(())
}

/// Whether the leader went on until it ended in order.
fn stays(history: &History, leader: &Leader) -> bool {
    leader.until == END
        || matches!(history.outcome.trace[leader.until].what, TraceKind::Exited { failure: None })
}

#[cfg(test)]
mod tests {
    use revenant::ids::ProcessId;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    fn canceled_after_sources() -> Story {
        let mut story = Story::new();
        story.run_sources().init_sinks().cancel().end(RunEnd::Canceled);
        story
    }

    #[test]
    fn a_job_that_ends_with_nothing_started_and_nothing_committed_is_good() {
        let mut story = canceled_after_sources();
        passes(check, &story);
        story.exit(None);
        passes(check, &story);
    }

    #[test]
    fn a_task_that_is_started_after_the_cancel_is_caught() {
        let mut story = canceled_after_sources();
        story.deploy(attempt(1, 0, 1, 1));
        caught(check, &story, "v1.0.e1a1 was deployed after a cancel");
    }

    #[test]
    fn a_job_that_goes_on_is_caught_unless_its_leader_was_lost_with_the_cancel() {
        let mut story = canceled_after_sources();
        story.end(RunEnd::Finished);
        caught(check, &story, "the job was not cancelled");
        story.crash().lead(2).recovered(2, &[]).deploy(attempt(1, 0, 2, 1));
        passes(check, &story);
        story.cancel();
        caught(check, &story, "a cancel reached leader 2");
    }

    #[test]
    fn committed_output_of_a_cancelled_job_is_caught() {
        let mut story = canceled_after_sources();
        story.output(".pending/v1.0.e1a1", b"1");
        passes(check, &story);
        story.output("part-0", b"0\n");
        caught(check, &story, "part-0 was committed");
    }

    #[test]
    fn when_all_is_finished_or_nobody_leads_a_cancel_may_come_to_nothing() {
        let mut story = Story::new();
        story.cancel().run_sources().init_sinks();
        story.finish_sink(attempt(1, 0, 1, 1)).finish_sink(attempt(1, 1, 1, 1)).cancel();
        story.crash().cancel();
        passes(check, &story);
    }

    #[test]
    fn a_cancel_that_reaches_who_does_not_lead_binds_nobody() {
        let mut story = Story::new();
        story.run_sources().init_sinks().happens(ProcessId::JobManager(2), TraceKind::CancelReached);
        story.deploy(attempt(1, 0, 1, 1)).end(RunEnd::Finished);
        passes(check, &story);
    }
}
