//! E1: a new leader does not run again what had finished durably, had its needed partitions alive
//! and has read nothing whose producer runs again and may come to another result (the very purpose of
//! FLIP-383).

use super::durable::Loss;
use super::missed::missed;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    for leader in history.leaders.iter().skip(1).filter(|leader| !history.is_blind(leader)) {
        let loss = Loss::of(history, leader);
        for deployed in history.deployed.iter().filter(|deployed| deployed.attempt.epoch == leader.token) {
            let subtask = &deployed.attempt.subtask;
            let Some(finished) = loss.must_keep.get(subtask) else { continue };
            let missed = missed(history, leader, deployed.at);
            if Loss::without(history, leader, &missed, deployed.at).must_keep.contains_key(subtask) {
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

#[cfg(test)]
mod tests {
    use revenant::disk::{DiskError, DiskErrorKind, Volume};
    use revenant::ids::{FencingToken, ProcessId};
    use revenant::job_event::{AcceptedFile, JobEvent};
    use revenant::note::Note;

    use super::*;
    use crate::oracle::Patience;
    use crate::oracle::testing::{
        Story, attempt, caught, finished, finished_without_snapshot, partition, passes,
    };
    use crate::scenario::HaFault;
    use crate::trace::TraceKind;

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
    fn what_is_being_released_since_all_have_read_it_may_run_again() {
        let ran_again = |durable: bool, later: u64| {
            let (source, last) = (attempt(0, 0, 1, 1), attempt(1, 1, 2, 1));
            let mut story = until_first_sink();
            story.crash().lead(2).recovered(2, &[source, attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
            story.finish_sink(last);
            if durable {
                story.log(2, finished(last));
            }
            // Why it runs again is not told: what the last one has made is gone.
            story.crash_worker(2).deploy(attempt(0, 0, 2, 1)).wait(later).release(1, partition(source));
            story
        };
        passes(check, &ran_again(true, 0));
        caught(check, &ran_again(true, 1), "v0.0.e2a1 was deployed");
        caught(check, &ran_again(false, 0), "v0.0.e2a1 was deployed");
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
    fn what_workers_that_turned_to_the_next_leader_do_not_give_to_one_that_hears_late_may_run_again() {
        let replaced = |fault: bool, lost: u64, again: u32| {
            let mut story = until_first_sink();
            if fault {
                let fault = HaFault { successor: true, notice: false };
                story.happens(ProcessId::HighAvailability, TraceKind::HaFault(fault));
            }
            let token = FencingToken(lost);
            story.happens(ProcessId::TaskManager(1), TraceKind::Note(Note::JobManagerLost { token }));
            story.crash().lead(2);
            story.recovered(2, &[attempt(0, 1, 1, 1)]).deploy(attempt(0, again, 2, 1));
            story
        };
        passes(check, &replaced(true, 2, 0));
        caught(check, &replaced(true, 2, 1), "v0.1.e2a1 was deployed");
        caught(check, &replaced(true, 1, 0), "v0.0.e2a1 was deployed");
        caught(check, &replaced(false, 2, 0), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn what_is_covered_by_a_snapshot_that_a_leader_in_between_did_not_accept_may_run_again() {
        let accepting = |without_snapshot: bool| {
            let mut story = Story::new();
            story.run_sources().log_init(1, 0);
            let length = story.log(1, finished_without_snapshot(attempt(0, 0, 1, 1))).log_length(1);
            let all = story.log(1, finished(attempt(0, 1, 1, 1))).log_length(1);
            story.crash().note(Note::LeadershipAcquired { token: FencingToken(3) });
            let mut accepted = Vec::new();
            for (epoch, length) in [(1, if without_snapshot { length } else { all }), (2, 0)] {
                accepted.push(AcceptedFile { epoch: FencingToken(epoch), index: 0, length });
                let token = FencingToken(epoch + 1);
                let event = JobEvent::EpochStarted { token, fingerprint: 1, accepted: accepted.clone() };
                story.next_file(token.0).log(token.0, event);
            }
            let token = FencingToken(3);
            story.note(Note::Replayed { token, events: 2, finished: vec![], damage: None });
            story.recovered(3, &[]).deploy(attempt(0, 0, 3, 1));
            story
        };
        passes(check, &accepting(true));
        caught(check, &accepting(false), "v0.0.e3a1 was deployed");
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

    #[test]
    fn a_leader_whose_disk_is_slow_without_any_fault_may_start_over_when_it_has_waited() {
        let judge = |history: &History| {
            let patience = Patience { slow_store: true, ..history.patience };
            check(&History::new(history.graph, history.shape, patience, history.outcome))
        };
        let waited = |seconds: u64| {
            let mut story = until_first_sink();
            story.crash().lead_blindly(2);
            for worker in [1, 2] {
                let process = ProcessId::TaskManager(worker);
                story.note(Note::TaskManagerRegistered { process });
            }
            story.wait(seconds).recovered(2, &[]).deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(judge, &waited(30));
        caught(judge, &waited(29), "v0.0.e2a1 was deployed");
        caught(check, &waited(30), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn a_leader_whose_log_lost_its_name_in_the_directory_may_start_over_when_it_has_waited() {
        let refused = |operation: &str, path: &str, wait: u64| {
            let mut story = until_first_sink();
            story.crash().lead(2);
            let (kind, volume) = (DiskErrorKind::Other, Volume::Ha);
            let (operation, path, message) = (operation.to_owned(), path.to_owned(), "broken".to_owned());
            let error = DiskError { kind, operation, volume, path, message };
            story.happens(ProcessId::JOB_MANAGER, TraceKind::DiskRefused { error });
            for worker in [1, 2] {
                let process = ProcessId::TaskManager(worker);
                story.note(Note::TaskManagerRegistered { process });
            }
            story.wait(wait).recovered(2, &[]).deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &refused("sync-directory", "default/job-events", 30));
        for story in [
            refused("sync-directory", "default/job-events", 29),
            refused("list", "default/job-events", 30),
            refused("append", "default/job-events/events.2.0", 30),
            refused("sync-directory", "partitions", 30),
        ] {
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
        let token = FencingToken(2);
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
    fn a_worker_that_dies_when_it_has_reported_may_be_missed_later_and_nobody_else() {
        let lost = |registered: bool, again: u32| {
            let mut story = until_first_sink();
            story.crash().lead(2);
            if registered {
                story.note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(2) });
            }
            story.crash_worker(2);
            let kept = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)];
            story.recovered(2, &kept).deploy(attempt(0, again, 2, 1));
            story
        };
        passes(check, &lost(true, 1));
        caught(check, &lost(true, 0), "v0.0.e2a1 was deployed");
        caught(check, &lost(false, 0), "v0.0.e2a1 was deployed");
    }

    #[test]
    fn what_was_released_when_all_had_read_it_may_be_needed_again_by_what_is_missed_and_only_then() {
        let released = |lost: bool| {
            let mut story = until_first_sink();
            story.crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
            story.finish_sink(attempt(1, 1, 2, 1)).log(2, finished(attempt(1, 1, 2, 1)));
            story.release(1, partition(attempt(0, 0, 1, 1)));
            if lost {
                story.crash_worker(2);
            }
            story.deploy(attempt(0, 0, 2, 1));
            story
        };
        passes(check, &released(true));
        caught(check, &released(false), "v0.0.e2a1 was deployed");
    }
}
