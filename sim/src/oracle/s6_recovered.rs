//! S6: what a new leader keeps is what the log adds up to, without what needs a partition that is gone:
//! it keeps every finish whose record was durable and whose needed partitions lived through the recovery,
//! and none that needs a partition that nobody held, or rests on what runs again. In between lies only
//! what nobody could know: see [`super::durable`]. What a crash took of the log's end plays no part, because the
//! log is read as the crash left it.
//!
//! And what it keeps the log still says, as its own epoch has begun it: or else the leader after it finds less
//! than was durable, and cannot be blamed.

use revenant::note::Note;

use super::durable::{Loss, must_rerun};
use super::history::Leader;
use super::log::Bytes;
use super::missed::missed;
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in &history.leaders {
        let Some(at) = leader.recovered else { continue };
        let TraceKind::Note(Note::Recovered { kept, .. }) = &history.outcome.trace[at].what else { continue };
        let fail = |message: String| Err(history.violation("S6", at, message));
        let begun = history.log.had_begun(leader.token, at);
        let replaced = |other: &Leader| (leader.acquired + 1..=at).contains(&other.acquired);
        let spoilt = history.log.was_corrupted(leader.acquired, at);
        if begun && !spoilt && !history.leaders.iter().any(replaced) {
            let says = history.log.state(at, Bytes::Visible).finished;
            if let Some(attempt) = kept.iter().find(|attempt| says.get(&attempt.subtask) != Some(attempt)) {
                return fail(format!(
                    "recovery kept {attempt}, and its own epoch of the log does not accept the record of it"
                ));
            }
        }
        let again = must_rerun(history, leader, at);
        if let Some(attempt) = kept.iter().find(|attempt| again.contains(&attempt.subtask)) {
            return fail(format!(
                "recovery kept {attempt}, though a partition that has to be read again is gone, its own or that \
                 of a producer"
            ));
        }
        if leader.lost == leader.acquired || history.is_blind(leader) {
            continue;
        }
        let not_kept = |loss: Loss| loss.must_keep.into_values().find(|attempt| !kept.contains(attempt));
        let not_kept = not_kept(Loss::of(history, leader))
            .and_then(|_| not_kept(Loss::without(history, leader, &missed(history, leader, at), at)));
        if let Some(attempt) = not_kept {
            return fail(format!(
                "recovery did not keep {attempt}, though its finish was durable and its partitions were alive"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use revenant::ids::FencingToken;
    use revenant::job_event::JobEvent;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, finished, partition, passes};

    /// Sources finished durably, one sink too; the leader is lost.
    fn lost(mut story: Story) -> Story {
        story.run_sources().log_init(1, 0);
        story.log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
        story.init_sinks().log_init(1, 1);
        story.finish_sink(attempt(1, 0, 1, 1)).log(1, finished(attempt(1, 0, 1, 1))).crash();
        story
    }

    #[test]
    fn what_is_durable_and_alive_is_kept_and_leaving_it_out_is_caught() {
        let mut story = lost(Story::new());
        story.lead(2).recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
        passes(check, &story);
        let mut story = lost(Story::new());
        story.lead(2).recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        caught(check, &story, "recovery did not keep v1.0.e1a1");
    }

    #[test]
    fn an_epoch_that_accepts_nothing_of_what_its_leader_keeps_is_caught() {
        let kept = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)];
        let token = FencingToken(2);
        let mut story = lost(Story::new());
        story.lead_blindly(2).next_file(2);
        story.log(2, JobEvent::EpochStarted { token, fingerprint: 1, accepted: vec![] }).recovered(2, &kept);
        caught(check, &story, "kept v0.0.e1a1, and its own epoch of the log does not accept");
    }

    #[test]
    fn that_a_leader_accepted_nothing_of_a_good_log_is_no_excuse() {
        let mut story = lost(Story::new());
        let token = FencingToken(2);
        story.note(Note::LeadershipAcquired { token }).next_file(2);
        story.log(2, JobEvent::EpochStarted { token, fingerprint: 1, accepted: vec![] });
        let damage = Some("this is not a job event file".to_owned());
        story.note(Note::Replayed { token, events: 0, finished: vec![], damage }).recovered(2, &[]);
        caught(check, &story, "recovery did not keep");
    }

    #[test]
    fn what_a_replaced_leader_reset_before_the_log_was_read_is_not_due() {
        let mut story = lost(Story::new());
        story.note(Note::LeadershipAcquired { token: FencingToken(2) });
        story.log(1, JobEvent::ExecutionVertexReset { subtasks: vec![attempt(1, 0, 1, 1).subtask] });
        story.note(Note::Replayed { token: FencingToken(2), events: 5, finished: vec![], damage: None });
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        passes(check, &story);
    }

    #[test]
    fn what_was_written_and_not_synced_may_be_kept_or_not() {
        for kept in [&[attempt(0, 0, 1, 1)][..], &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]] {
            let mut story = Story::new();
            story.run_sources().log_init(1, 0).log(1, finished(attempt(0, 0, 1, 1)));
            story.unsynced(1, finished(attempt(0, 1, 1, 1))).crash().lead(2).recovered(2, kept);
            passes(check, &story);
        }
    }

    #[test]
    fn a_finish_whose_partition_died_with_its_worker_is_not_kept_and_neither_is_what_read_it() {
        let mut story = lost(Story::new());
        story.crash_worker(1).lead(2).recovered(2, &[attempt(0, 1, 1, 1)]);
        passes(check, &story);
        for (kept, who) in [(attempt(0, 0, 1, 1), "v0.0.e1a1"), (attempt(1, 0, 1, 1), "v1.0.e1a1")] {
            let mut story = lost(Story::new());
            story.crash_worker(1).lead(2).recovered(2, &[attempt(0, 1, 1, 1), kept]);
            caught(check, &story, &format!("recovery kept {who}, though a partition"));
        }
    }

    #[test]
    fn a_partition_that_nobody_needs_may_be_gone() {
        let mut story = lost(Story::new());
        story.lead(2);
        story.finish_sink(attempt(1, 1, 2, 1)).log(2, finished(attempt(1, 1, 2, 1)));
        story.release(1, partition(attempt(0, 0, 1, 1))).crash().lead(3);
        let all = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1), attempt(1, 1, 2, 1)];
        story.recovered(3, &all);
        passes(check, &story);
    }
}
