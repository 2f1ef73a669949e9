//! L7: a claimed partition is not released by an older timer: what a worker gives up because its
//! retention has run out, no leader has claimed since the worker lost its last one, and that is at least
//! `taskmanager.registration.timeout` ago by the worker's clock. What was produced under a newer leader than the
//! one that was lost needs no claim.

use revenant::ids::{ProcessId, ResultPartitionId};
use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for (at, event) in history.outcome.trace.iter().enumerate() {
        let TraceKind::Note(Note::RetentionExpired { partitions }) = &event.what else { continue };
        for &partition in partitions {
            if let Some(message) = too_early(history, event.process, partition, at) {
                return Err(history.violation(
                    "L7",
                    at,
                    format!("{} gave up {partition}, {message}", event.process),
                ));
            }
        }
    }
    Ok(())
}

fn too_early(
    history: &History,
    process: ProcessId,
    partition: ResultPartitionId,
    at: usize,
) -> Option<String> {
    let last = |wanted: &dyn Fn(&Note) -> bool| {
        history.outcome.trace[..at].iter().rposition(|event| {
            event.process == process && matches!(&event.what, TraceKind::Note(note) if wanted(note))
        })
    };
    let kept =
        last(&|note| matches!(note, Note::PartitionFinished { partition: done, .. } if *done == partition));
    let lost = last(&|note| matches!(note, Note::JobManagerLost { .. }));
    let claimed = last(&|note| matches!(note, Note::PartitionsClaimed { .. }));
    let claimed = claimed.filter(|claimed| kept.is_none_or(|kept| kept < *claimed));
    let Some(lost) = lost else { return Some("and had never lost a leader".to_owned()) };
    if let TraceKind::Note(Note::JobManagerLost { token }) = history.outcome.trace[lost].what
        && token < partition.producer.epoch
    {
        return Some(format!("which was produced under a newer leader than {token}, whom it lost last"));
    }
    if claimed.is_some_and(|claimed| claimed > lost) {
        return Some("which a leader had claimed since the last one was lost".to_owned());
    }
    let waited = history.waited(process, lost, at);
    (waited < history.patience.retention).then(|| format!("after {waited:?} without a leader"))
}

#[cfg(test)]
mod tests {
    use revenant::ids::FencingToken;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, partition, passes};

    const WORKER: ProcessId = ProcessId::TaskManager(1);

    fn expires(claimed: bool, seconds: u64) -> Story {
        let mut story = Story::new();
        story.run_sources().crash().abandon(1);
        if claimed {
            let token = FencingToken(2);
            story.lead(2).happens(WORKER, TraceKind::Note(Note::PartitionsClaimed { token }));
        }
        let partitions = vec![partition(attempt(0, 0, 1, 1))];
        story.wait(seconds).happens(WORKER, TraceKind::Note(Note::RetentionExpired { partitions }));
        story
    }

    #[test]
    fn what_nobody_claims_may_go_in_time_and_not_earlier() {
        passes(check, &expires(false, 300));
        caught(check, &expires(false, 200), "gave up d0/v0.0.e1a1, after 200");
    }

    #[test]
    fn what_a_leader_has_claimed_stays_whatever_timer_was_set_before() {
        caught(check, &expires(true, 300), "which a leader had claimed");
    }

    #[test]
    fn what_was_produced_under_the_new_leader_needs_no_claim_to_stay() {
        let produced = attempt(0, 0, 2, 1);
        let mut story = Story::new();
        story.run_sources().crash().abandon(1).lead(2).finish_source(produced, &[0, 1]).wait(300);
        let partitions = vec![partition(produced)];
        story.happens(WORKER, TraceKind::Note(Note::RetentionExpired { partitions }));
        caught(check, &story, "gave up d0/v0.0.e2a1, which was produced under a newer leader than 1");
    }

    #[test]
    fn a_claim_by_a_leader_that_was_lost_since_does_not_count() {
        let partitions = vec![partition(attempt(0, 1, 1, 1))];
        let worker = ProcessId::TaskManager(2);
        let token = FencingToken(2);
        let mut story = Story::new();
        story.run_sources().crash().abandon(2).lead(2);
        story
            .happens(worker, TraceKind::Note(Note::PartitionsClaimed { token }))
            .crash()
            .abandon(2)
            .wait(300);
        story.happens(worker, TraceKind::Note(Note::RetentionExpired { partitions }));
        passes(check, &story);
    }
}
