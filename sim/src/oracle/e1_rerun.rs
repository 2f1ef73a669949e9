//! E1: a new leader does not run again what had finished durably, had its needed partitions alive
//! and has read nothing whose producer runs again and may come to another result (the very purpose of
//! FLIP-383).

use revenant::disk::Volume;

use super::disturbance::was_out_of_reach;
use super::durable::Loss;
use super::history::Leader;
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in history.leaders.iter().skip(1).filter(|leader| !history.is_blind(leader)) {
        let loss = Loss::of(history, leader);
        for deployed in history.deployed.iter().filter(|deployed| deployed.attempt.epoch == leader.token) {
            if disturbed_since_recovery(history, leader, deployed.at) {
                break;
            }
            if let Some(finished) = loss.must_keep.get(&deployed.attempt.subtask) {
                let message = format!(
                    "{} was deployed, though the finish of {finished} was durable and its partitions were alive",
                    deployed.attempt
                );
                return Err(history.violation("E1", deployed.at, message));
            }
        }
    }
    Ok(())
}

/// A TaskManager that dies after the recovery takes partitions along, and after a global failure
/// everything runs again: what runs again then is another question. The same holds of a TaskManager that
/// dies before the recovery ends and after it was registered: the leader may hear of it later. (One that
/// dies before that has changed what recovery finds alive.) A partition that a broken disk does not give
/// back is lost as well, and so is one of a worker that does not answer.
pub fn disturbed_since_recovery(history: &History, leader: &Leader, until: usize) -> bool {
    let since = leader.recovered.unwrap_or(leader.acquired);
    let had_registered = |at: usize| {
        let process = history.outcome.trace[at].process;
        let registered = &history.registered;
        registered.iter().any(|&(when, who)| who == process && leader.acquired < when && when < at)
    };
    let lost =
        history.workers_lost.iter().filter(|&&at| at > since || at > leader.acquired && had_registered(at));
    let unreadable = (since..until).any(|at| match history.outcome.trace.get(at).map(|event| &event.what) {
        Some(TraceKind::DiskRefused { error }) => error.volume == Volume::Local && error.operation == "read",
        _ => false,
    });
    unreadable
        || was_out_of_reach(&history.outcome.trace, leader.acquired, until)
        || lost.chain(history.global_failures.iter().filter(|&&at| at > since)).any(|&at| at < until)
}

#[cfg(test)]
mod tests {
    use revenant::disk::{DiskError, DiskErrorKind};
    use revenant::ids::ProcessId;
    use revenant::note::Note;

    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, finished, partition, passes};

    #[test]
    fn what_a_flipped_bit_took_before_the_leader_came_may_run_again_and_nothing_else() {
        let corrupted = |offset: u64| {
            let mut story = until_first_sink();
            story.crash().corrupt(1, offset).lead(2).recovered(2, &[]);
            story.deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &corrupted(20));
        let last = until_first_sink().log_length(1) - 1;
        caught(check, &corrupted(last), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn what_a_disk_does_not_give_back_may_run_again() {
        let refused = |operation: &str| {
            let mut story = until_first_sink();
            story.crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
            let (kind, volume, operation) = (DiskErrorKind::Other, Volume::Local, operation.to_owned());
            let (path, message) = ("partitions/d0-v0.0.e1a1".to_owned(), "broken".to_owned());
            let error = DiskError { kind, operation, volume, path, message };
            story.happens(ProcessId::TaskManager(1), TraceKind::DiskRefused { error });
            story.deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &refused("read"));
        caught(check, &refused("append"), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn what_a_worker_that_stands_still_does_not_give_may_run_again() {
        let stood_still = |resumed: bool| {
            let worker = ProcessId::TaskManager(1);
            let mut story = until_first_sink();
            story.happens(worker, TraceKind::Paused);
            if resumed {
                story.happens(worker, TraceKind::Resumed);
            }
            story.crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
            story.deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &stood_still(false));
        caught(check, &stood_still(true), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn a_leader_that_a_broken_disk_kept_from_the_log_for_as_long_as_it_waits_may_start_over() {
        let blind = |fails: bool, wait: u64, reads: bool| {
            let mut story = until_first_sink();
            story.crash();
            if fails {
                story.disk_fails();
            }
            if reads {
                story.lead(2);
            } else {
                story.lead_blindly(2);
            }
            for worker in [1, 2] {
                let process = ProcessId::TaskManager(worker);
                story.note(Note::TaskManagerRegistered { process });
            }
            story.wait(wait).recovered(2, &[]).deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &blind(true, 30, false));
        for story in [blind(true, 29, false), blind(false, 30, false), blind(true, 30, true)] {
            caught(check, &story, "v0.0.e2a1 was deployed");
        }
    }

    fn until_first_sink() -> Story {
        first_sink_of(Story::new())
    }

    /// Sources finished durably, sinks initialized durably, the first sink finished durably.
    fn first_sink_of(mut story: Story) -> Story {
        story.run_sources().log_init(1, 0);
        story.log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
        story.init_sinks().log_init(1, 1);
        story.finish_sink(attempt(1, 0, 1, 1)).log(1, finished(attempt(1, 0, 1, 1)));
        story
    }

    #[test]
    fn running_only_the_unfinished_again_is_good() {
        let mut story = until_first_sink();
        story.finish_sink(attempt(1, 1, 1, 1)).crash().lead(2);
        story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
        story.deploy(attempt(1, 1, 2, 1));
        passes(check, &story);
    }

    #[test]
    fn running_a_durable_finish_again_is_caught() {
        let mut story = until_first_sink();
        story.crash().lead(2).recovered(2, &[]).deploy(attempt(1, 0, 2, 1));
        caught(check, &story, "v1.0.e2a1 was deployed, though the finish of v1.0.e1a1 was durable");
    }

    #[test]
    fn a_producer_whose_partitions_are_gone_and_what_is_downstream_of_it_may_run_again() {
        let mut story = until_first_sink();
        story.crash().crash_worker(1).lead(2).recovered(2, &[attempt(0, 1, 1, 1)]);
        story.deploy(attempt(0, 0, 2, 1)).deploy(attempt(1, 0, 2, 1));
        passes(check, &story);
        story.deploy(attempt(0, 1, 2, 1));
        caught(check, &story, "v0.1.e2a1 was deployed");
    }

    #[test]
    fn what_read_a_determinate_producer_that_runs_again_is_kept() {
        let mut story = first_sink_of(Story::determinate());
        story.crash().crash_worker(1).lead(2).recovered(2, &[attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
        story.deploy(attempt(0, 0, 2, 1)).deploy(attempt(1, 1, 2, 1));
        passes(check, &story);
        story.deploy(attempt(1, 0, 2, 1));
        caught(check, &story, "v1.0.e2a1 was deployed, though the finish of v1.0.e1a1 was durable");
    }

    #[test]
    fn what_a_shuffle_service_keeps_outlives_its_task_manager_and_dies_with_the_service() {
        let lost = |with_service: bool| {
            let mut story = until_first_sink();
            story.keep_at_service(partition(attempt(0, 0, 1, 1))).crash().crash_worker(1);
            if with_service {
                story.crash_service();
            }
            story.lead(2).recovered(2, &[attempt(0, 1, 1, 1)]).deploy(attempt(0, 0, 2, 1));
            story
        };
        caught(check, &lost(false), "v0.0.e2a1 was deployed, though the finish of v0.0.e1a1 was durable");
        passes(check, &lost(true));
    }

    #[test]
    fn after_a_global_failure_everything_may_run_again() {
        let mut story = until_first_sink();
        story.crash().lead(2).recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
        let token = revenant::ids::FencingToken(2);
        story.note(Note::GlobalFailure { token, reason: "lost count".to_owned() });
        story.deploy(attempt(0, 0, 2, 1)).deploy(attempt(0, 1, 2, 1));
        passes(check, &story);
    }

    #[test]
    fn partitions_that_nobody_needs_may_be_gone() {
        let mut story = until_first_sink();
        story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
        story.release(1, partition(attempt(0, 0, 1, 1)));
        story.crash().lead(2).recovered(2, &[]).deploy(attempt(0, 0, 2, 1));
        caught(check, &story, "v0.0.e2a1 was deployed");
    }

    #[test]
    fn a_worker_that_dies_when_it_has_reported_may_be_missed_later() {
        let lost = |registered: bool| {
            let mut story = until_first_sink();
            story.crash().lead(2);
            if registered {
                story.note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(2) });
            }
            story.crash_worker(2);
            let kept = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)];
            story.recovered(2, &kept).deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &lost(true));
        caught(check, &lost(false), "v0.0.e2a1 was deployed");
    }
}
