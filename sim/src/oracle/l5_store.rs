//! L5: the event store never blocks the job: a leader waits for its log to open, and for what its
//! recovery decided to be recorded, no longer than `previous-worker.recovery.timeout` each (or the registration's retry
//! interval, if that is longer), and for nothing else: when all has finished the commit is asked for at once, whatever is
//! not yet durable. By the leader's own clock, whatever the disk does.

use revenant::message::JobStatus;
use revenant::note::Note;

use super::history::{Leader, ended_otherwise};
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    let mut replayed_before = false;
    for leader in &history.leaders {
        let until = leader.until.min(history.outcome.trace.len());
        let replayed = |note: &Note| matches!(note, Note::Replayed { .. });
        // Who finds a commit or a result, or is told to cancel, does not need the log.
        let goes_on = history.says(leader, leader.acquired, until, |note| {
            let finds = matches!(
                note,
                Note::CommitDecided { .. } | Note::JobStatusChanged { status: JobStatus::Finished, .. }
            );
            replayed(note) || finds || ended_otherwise(note)
        });
        // The first leaders record the job before they open its log.
        if replayed_before {
            waits(history, leader, (leader.acquired, goes_on), "for its log to open")?;
        }
        replayed_before |= history.says(leader, leader.acquired, until, replayed).is_some();
        if let Some(recovered) = leader.recovered {
            let next =
                history.says(leader, recovered, until, |note| matches!(note, Note::JobStatusChanged { .. }));
            waits(history, leader, (recovered, next), "for what it decided to be recorded")?;
        }
        at_the_end(history, leader, until)?;
    }
    Ok(())
}

fn waits(
    history: &History,
    leader: &Leader,
    (from, until): (usize, Option<usize>),
    what: &str,
) -> Result<(), Violation> {
    let last = leader.until.min(history.outcome.trace.len());
    let until = until.or_else(|| history.ends_otherwise(leader, from, last)).unwrap_or(last);
    let waited = history.worked(leader, from, until);
    let limit = history.patience.store;
    if waited <= limit {
        return Ok(());
    }
    let message = format!("leader {} waited {waited:?} {what}, longer than {limit:?}", leader.token);
    Err(history.violation("L5", until, message))
}

/// A running job whose last subtask finishes asks for its commit at once.
fn at_the_end(history: &History, leader: &Leader, until: usize) -> Result<(), Violation> {
    let running = history.says(leader, leader.acquired, until, |note| {
        matches!(note, Note::JobStatusChanged { status: JobStatus::Running, .. })
    });
    let Some(running) = running else { return Ok(()) };
    let complete = (running..until).find(|&at| {
        !history.is_of_replaced(at)
            && matches!(history.outcome.trace[at].what, TraceKind::Note(Note::FinishAccepted { .. }))
            && history.is_complete(at)
    });
    let Some(complete) = complete else { return Ok(()) };
    let asked = history.says(
        leader,
        complete,
        until,
        |note| matches!(note, Note::JobStatusChanged { status, .. } if *status != JobStatus::Running),
    );
    let waited = history.worked(leader, complete, asked.unwrap_or(until));
    if waited.is_zero() {
        return Ok(());
    }
    let message =
        format!("all had finished, and leader {} did not ask for the commit for {waited:?}", leader.token);
    Err(history.violation("L5", asked.unwrap_or(until), message))
}

#[cfg(test)]
mod tests {
    use revenant::ids::FencingToken;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    fn replayed(story: &mut Story, token: u64) {
        let token = FencingToken(token);
        story.note(Note::Replayed { token, events: 1, finished: vec![], damage: None });
    }

    fn second_leader() -> Story {
        let mut story = Story::new();
        story.lead(1);
        replayed(&mut story, 1);
        story.crash().lead_blindly(2);
        story
    }

    #[test]
    fn a_leader_waits_for_its_log_to_open_so_long_and_no_longer() {
        for (seconds, in_time) in [(29, true), (31, false)] {
            let mut story = second_leader();
            story.wait(seconds);
            replayed(&mut story, 2);
            if in_time {
                passes(check, &story);
            } else {
                caught(check, &story, "leader 2 waited 3");
            }
        }
    }

    #[test]
    fn a_leader_that_is_told_to_cancel_or_finds_a_result_does_not_wait_for_its_log() {
        let mut story = second_leader();
        story.wait(1).status(2, JobStatus::Canceled).wait(100).job_ended();
        passes(check, &story);
        let mut story = second_leader();
        story.wait(1).status(2, JobStatus::Finished).wait(100).job_ended();
        passes(check, &story);
    }

    #[test]
    fn a_leader_waits_for_its_decision_to_be_recorded_so_long_and_no_longer() {
        for (seconds, in_time) in [(29, true), (31, false)] {
            let mut story = second_leader();
            replayed(&mut story, 2);
            story.recovered(2, &[]).wait(seconds).status(2, JobStatus::Running);
            if in_time {
                passes(check, &story);
            } else {
                caught(check, &story, "for what it decided to be recorded");
            }
        }
    }

    #[test]
    fn a_commit_that_waits_for_the_store_is_caught() {
        let finishes = |seconds: u64| {
            let mut story = Story::new();
            story.start().status(1, JobStatus::Running);
            story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).finish_source(attempt(0, 1, 1, 1), &[2, 3]);
            story.init_sinks().finish_sink(attempt(1, 0, 1, 1)).finish_sink(attempt(1, 1, 1, 1));
            story.wait(seconds).status(1, JobStatus::Committing);
            story
        };
        passes(check, &finishes(0));
        caught(check, &finishes(1), "did not ask for the commit");
    }
}
