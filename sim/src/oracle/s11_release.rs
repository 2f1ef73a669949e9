//! S11: a partition is released only when it is not needed any more, whatever crashes next: the
//! finishes of all subtasks that read it are durable, or the job's end is decided, or its producer's
//! attempt does not count, or its leader had given its TaskManager up, or its TaskManager had been without a leader that claimed it for as long
//! as the configuration lets it keep partitions. (Flink 1.20 releases on a finish that is only in memory.)
//! Of a job that is not recovered no finish is durable: then it is enough that all readers finished.

use revenant::ids::{ExecutionVertexId, ProcessId, ResultPartitionId};
use revenant::note::Note;

use super::Violation;
use super::history::{END, Held, History, Leader, Released, reads};
use super::log::Bytes;
use crate::trace::{Touched, TraceKind};

pub fn check(history: &History) -> Result<(), Violation> {
    history.released.iter().try_for_each(|release| judge(history, release))
}

fn judge(history: &History, release: &Released) -> Result<(), Violation> {
    let at = release.at;
    let decided = [history.commit_decided, history.failure_decided];
    if decided.into_iter().flatten().any(|decided| decided < at)
        || lost_with_its_process(history, release)
        || unclaimed(history, release)
        || given_up_in_time(history, release)
        || given_up(history, release)
    {
        return Ok(());
    }
    let producer = release.partition.producer;
    if history.counted(producer.subtask, at).is_none_or(|finish| finish.attempt != producer) {
        return Ok(());
    }
    // The order to release it was under way when the leader that gave it was lost.
    let was_fit = ordered_by_the_lost(history, at)
        .is_some_and(|then| needed_by(history, release.partition, then).is_none());
    needed_by(history, release.partition, at).filter(|_| !was_fit).map_or(Ok(()), |reader| {
        let message = format!("{} was released from {}, but {reader}", release.partition, release.process);
        Err(history.violation("S11", at, message))
    })
}

/// A restarted TaskManager clears away what its earlier incarnation left.
fn lost_with_its_process(history: &History, release: &Released) -> bool {
    history.held.iter().any(|held| {
        held.partition == release.partition
            && held.process == release.process
            && held.incarnation < release.incarnation
    })
}

/// The leader in office had given the TaskManager up when it did not wait for partitions any more: if it comes back, it
/// comes too late and with nothing.
fn given_up(history: &History, release: &Released) -> bool {
    let Some(leader) = history.leaders.iter().rev().find(|leader| leader.acquired <= release.at) else {
        return false;
    };
    let Some(recovered) = leader.recovered.filter(|&recovered| recovered < release.at) else { return false };
    let is_held = |held: &&Held| {
        (held.partition, held.process) == (release.partition, release.process) && held.until == release.at
    };
    let Some(held) = history.held.iter().find(is_held) else { return false };
    history.outcome.trace[recovered.max(held.from)..release.at].iter().any(|event| {
        event.process == leader.process
            && matches!(&event.what, TraceKind::Note(Note::TaskManagerLost { process, .. }) if *process == release.process)
    })
}

/// The same, when the TaskManager said that the time is over: what it deletes for that goes a little later, and a
/// leader may come in between.
fn given_up_in_time(history: &History, release: &Released) -> bool {
    let said = history.outcome.trace[..release.at].iter().rposition(|event| {
        (event.process, event.incarnation) == (release.process, release.incarnation)
            && matches!(&event.what, TraceKind::Note(Note::RetentionExpired { partitions })
                if partitions.contains(&release.partition))
    });
    said.is_some_and(|at| unclaimed(history, &Released { at, ..*release }))
}

/// The TaskManager lost its leader, and none claimed its partitions for as long as it keeps them: a claim
/// comes with a registration, and may be under way. It may have lost others since, who did not claim them either.
fn unclaimed(history: &History, release: &Released) -> bool {
    let of_worker = |all: &'_ [(usize, ProcessId)]| -> Vec<usize> {
        let own = all.iter().filter(|(at, process)| *at < release.at && *process == release.process);
        own.map(|(at, _)| *at).collect()
    };
    let (registered, abandoned) = (of_worker(&history.registered), of_worker(&history.abandoned));
    let is_last = |at: usize| abandoned.iter().all(|&other| other <= at);
    let was_held = |at: usize| {
        let held = history.held.iter().find(|held| {
            (held.partition, held.process, held.incarnation)
                == (release.partition, release.process, release.incarnation)
        });
        held.is_some_and(|held| held.from < at)
    };
    abandoned.iter().any(|&abandoned| {
        let counts = |at: usize| {
            let arrived = history.time(at) + history.patience.round_trip <= history.time(release.at);
            arrived
                && !died_with_its_leader(history, at)
                && !claim_was_lost(history, release, abandoned)
                && !was_under_way(history, at, release, abandoned)
        };
        (is_last(abandoned) || was_held(abandoned) && !claim_has_come(history, release, abandoned))
            && history.waited(release.process, abandoned, release.at) >= history.patience.retention
            && !registered.iter().any(|&at| at >= abandoned && counts(at))
    })
}

/// The moment before the last loss of a leader, if what that had sent may have arrived only now.
fn ordered_by_the_lost(history: &History, at: usize) -> Option<usize> {
    let lost = history.leaders.iter().map(|leader| leader.until).rfind(|&until| until < at)?;
    let under_way = history.time(at).since(history.time(lost)) <= history.patience.round_trip;
    lost.checked_sub(1).filter(|_| under_way)
}

/// Whether the claim that goes with a registration may never have arrived: its leader died while it could
/// be under way.
fn died_with_its_leader(history: &History, registered: usize) -> bool {
    let since = history.time(registered);
    let mut lost = history.leaders.iter().map(|leader| leader.until).filter(|&lost| lost > registered);
    lost.any(|lost| lost != END && history.time(lost).since(since) <= history.patience.round_trip)
}

/// Whether the registration was with the leader that the worker had lost, and may have been under way then: of that
/// leader it hears nothing any more, and no claim has come, as the worker says itself.
fn was_under_way(history: &History, registered: usize, release: &Released, abandoned: usize) -> bool {
    let trace = &history.outcome.trace;
    let by = |leader: &&Leader| leader.process == trace[registered].process && leader.acquired <= registered;
    let token = history.leaders.iter().rfind(by).map(|leader| leader.token);
    let is_of_the_lost = matches!(trace[abandoned].what, TraceKind::Note(Note::JobManagerLost { token: lost }) if Some(lost) == token);
    registered > abandoned
        && is_of_the_lost
        && history.time(registered).since(history.time(abandoned)) <= history.patience.round_trip
        && !claim_has_come(history, release, abandoned)
}

/// Whether the worker says that a leader claimed its partitions after it had lost another.
fn claim_has_come(history: &History, release: &Released, abandoned: usize) -> bool {
    history.outcome.trace[abandoned..release.at].iter().any(|event| {
        event.process == release.process
            && matches!(event.what, TraceKind::Note(Note::PartitionsClaimed { .. }))
    })
}

/// Whether a fault of the network kept a claim from the worker since it had lost its leader, and none has come, as
/// the worker says itself.
fn claim_was_lost(history: &History, release: &Released, abandoned: usize) -> bool {
    let between = &history.outcome.trace[abandoned..release.at];
    let is_lost = |what: &TraceKind| {
        matches!(what, TraceKind::Message(Touched { kind: "GetAndRetainPartitionWithMetrics", to, .. })
            if to.process == release.process)
    };
    between.iter().any(|event| is_lost(&event.what)) && !claim_has_come(history, release, abandoned)
}

/// Who would need the partition if the JobManager crashed at this moment.
pub(super) fn needed_by(history: &History, partition: ResultPartitionId, at: usize) -> Option<String> {
    let consumer = history.graph.edge(partition.data_set).consumer;
    let Some(decision) = history.initialized(consumer, at) else {
        return Some(format!("its consumer {consumer} was not initialized"));
    };
    let gates = &history.graph.vertex(consumer).inputs;
    let gate = gates.iter().position(|&data_set| data_set == partition.data_set)?;
    (0..decision.parallelism)
        .filter(|&subtask| reads(decision.inputs, subtask, gate, partition.index()))
        .find_map(|subtask| {
            let subtask = ExecutionVertexId::new(consumer, subtask);
            let Some(finish) = history.counted(subtask, at) else {
                // A leader that has not said yet what it keeps goes by the log.
                let recovering = history.leaders.iter().rev().find(|leader| leader.acquired <= at);
                let recovering =
                    recovering.is_some_and(|leader| leader.recovered.is_none_or(|recovered| recovered > at));
                let logged =
                    recovering && history.log.state(at, Bytes::Durable).finished.contains_key(&subtask);
                return (!logged).then(|| format!("its reader {subtask} had not finished"));
            };
            let durable = history.log.durable_finish(finish.attempt).is_some_and(|durable| durable <= at);
            // Behind a flipped bit nothing can be read, and the leader who writes on cannot know.
            let unseen = history
                .leaders
                .iter()
                .rev()
                .find(|leader| leader.acquired <= at)
                .is_some_and(|leader| history.log.was_corrupted(leader.lost, at));
            (!durable && !unseen && history.patience.recovers)
                .then(|| format!("the finish of its reader {} was not durable", finish.attempt))
        })
}

#[cfg(test)]
mod tests {
    use revenant::ids::{Address, FencingToken};
    use revenant::message::{CommitDecision, JobOutcome};

    use super::*;
    use crate::oracle::Patience;
    use crate::oracle::testing::{Story, attempt, caught, finished, partition, passes};
    use crate::trace::What;

    fn until_sinks() -> Story {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        story.finish_sink(attempt(1, 0, 1, 1)).log(1, finished(attempt(1, 0, 1, 1)));
        story
    }

    #[test]
    fn a_release_after_all_readers_are_durable_is_good() {
        let mut story = until_sinks();
        story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
        story.release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);
    }

    #[test]
    fn a_release_while_a_finish_is_only_buffered_is_caught() {
        let mut story = until_sinks();
        story.finish_sink(attempt(1, 1, 1, 1)).unsynced(1, finished(attempt(1, 1, 1, 1)));
        story.release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "the finish of its reader v1.1.e1a1 was not durable");
    }

    #[test]
    fn a_leader_whose_log_has_a_flipped_bit_goes_by_what_was_synced() {
        let mut story = until_sinks();
        story.corrupt(1, 3);
        story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
        story.release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);
        // One that came later has seen that it is gone.
        let mut story = until_sinks();
        story.corrupt(1, 3);
        story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
        let all = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(vertex, subtask)| attempt(vertex, subtask, 1, 1));
        story.crash().lead(2).recovered(2, &all).release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "was not durable");
    }

    #[test]
    fn without_recovery_a_release_is_good_when_all_readers_have_finished_and_not_before() {
        let judge = |history: &History| {
            let patience = Patience { recovers: false, ..history.patience };
            check(&History::new(history.graph, history.shape, patience, history.outcome))
        };
        let mut story = Story::new();
        story.run_sources().init_sinks().finish_sink(attempt(1, 0, 1, 1));
        story.finish_sink(attempt(1, 1, 1, 1)).release(1, partition(attempt(0, 0, 1, 1)));
        passes(judge, &story);
        let mut story = Story::new();
        story.run_sources().init_sinks().finish_sink(attempt(1, 0, 1, 1));
        story.release(1, partition(attempt(0, 0, 1, 1)));
        caught(judge, &story, "its reader v1.1 had not finished");
    }

    #[test]
    fn a_release_while_a_reader_runs_is_caught_and_so_is_one_before_readers_exist() {
        let mut story = until_sinks();
        story.release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "its reader v1.1 had not finished");
        let mut story = Story::new();
        story.run_sources().release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "its consumer v1 was not initialized");
    }

    #[test]
    fn what_does_not_count_or_died_with_its_process_or_is_decided_may_go() {
        let mut story = until_sinks();
        story.note(Note::SubtaskReset { subtask: attempt(0, 0, 1, 1).subtask });
        story.release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);

        let mut story = Story::new();
        story.run_sources().crash_worker(1).release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);

        let mut story = until_sinks();
        story.note(Note::CommitDecided { decision: CommitDecision::default() });
        story.release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);
    }

    #[test]
    fn what_a_worker_releases_that_was_given_up_is_lost_already_and_what_another_does_is_not() {
        let all = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)];
        let begun = |recovered: bool| {
            let mut story = until_sinks();
            story.log(1, finished(all[0])).log(1, finished(all[1])).crash().lead(2);
            if recovered {
                story.recovered(2, &all);
            }
            story
        };
        let lost = |process: ProcessId| Note::TaskManagerLost { process, reason: "it is silent".to_owned() };
        let (worker, other) = (ProcessId::TaskManager(1), ProcessId::TaskManager(2));
        passes(check, begun(true).note(lost(worker)).wait(1).release(1, partition(all[0])));
        // As long as a leader waits for partitions, one that comes back may bring them, as it may to the next.
        let is_caught = |story: &Story| caught(check, story, "its reader v1.1 had not finished");
        is_caught(begun(true).note(lost(other)).wait(1).release(1, partition(all[0])));
        let mut early = begun(false);
        is_caught(early.note(lost(worker)).recovered(2, &all).wait(1).release(1, partition(all[0])));
        let mut next = begun(true);
        next.note(lost(worker)).crash().lead(3).recovered(3, &all);
        is_caught(next.wait(1).release(1, partition(all[0])));
    }

    /// As in the search: the time is over, and before the file is gone a leader comes.
    #[test]
    fn what_was_given_up_in_time_may_go_when_a_leader_has_come() {
        let released = |expired: bool| {
            let (worker, source) = (ProcessId::TaskManager(1), attempt(0, 0, 1, 1));
            let mut story = until_sinks();
            story.log(1, finished(source)).abandon(1).wait(300);
            if expired {
                let partitions = vec![partition(source)];
                story.happens(worker, TraceKind::Note(Note::RetentionExpired { partitions }));
            }
            story.crash().lead(2).abandon(1).note(Note::TaskManagerRegistered { process: worker }).wait(1);
            story.release(1, partition(source));
            story
        };
        passes(check, &released(true));
        caught(check, &released(false), "was released from task-manager-1");
    }

    #[test]
    fn a_release_after_the_jobs_failure_is_good() {
        let mut story = until_sinks();
        let outcome = JobOutcome::Failed { reason: "disk full".to_owned() };
        story.note(Note::JobEnded { outcome }).release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);
    }

    /// The worker 1 has lost the leader before the one that leads.
    fn lose_former(story: &mut Story) {
        let note = Note::JobManagerLost { token: FencingToken(0) };
        story.happens(ProcessId::TaskManager(1), TraceKind::Note(note));
    }

    /// The worker 1 registers, its partition is claimed if the claim `came`, and is released later.
    fn registered_and_released(mut story: Story, came: bool) -> Story {
        let (worker, token) = (ProcessId::TaskManager(1), FencingToken(1));
        story.note(Note::TaskManagerRegistered { process: worker });
        if came {
            story.happens(worker, TraceKind::Note(Note::PartitionsClaimed { token }));
        }
        story.wait(300).release(1, partition(attempt(0, 0, 1, 1)));
        story
    }

    #[test]
    fn a_partition_that_no_leader_claims_is_kept_for_the_retention_time_and_no_longer() {
        let released = |wait: u64, claimed: bool| {
            let mut story = until_sinks();
            lose_former(&mut story);
            if claimed {
                story.note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(1) });
            }
            story.wait(wait).release(1, partition(attempt(0, 0, 1, 1)));
            story
        };
        passes(check, &released(300, false));
        caught(check, &released(200, false), "was released from task-manager-1");
        caught(check, &released(300, true), "was released from task-manager-1");
    }

    #[test]
    fn a_claim_that_the_network_lost_does_not_count_unless_another_came() {
        let released = |lost: bool, came: bool| {
            let worker = ProcessId::TaskManager(1);
            let mut story = until_sinks();
            lose_former(&mut story);
            if lost {
                let (from, to) = (Address::MASTER, Address::executor(worker));
                let kind = "GetAndRetainPartitionWithMetrics";
                let touched = Touched { kind, from, to, what: What::Dropped };
                story.happens(ProcessId::JOB_MANAGER, TraceKind::Message(touched));
            }
            registered_and_released(story, came)
        };
        passes(check, &released(true, false));
        caught(check, &released(true, true), "was released from task-manager-1");
        caught(check, &released(false, false), "was released from task-manager-1");
    }

    #[test]
    fn a_registration_with_the_leader_that_was_lost_meanwhile_does_not_count() {
        let released = |next: bool, late: bool, came: bool| {
            let mut story = until_sinks();
            if next {
                lose_former(&mut story);
            } else {
                story.abandon(1);
            }
            if late {
                story.wait(1);
            }
            registered_and_released(story, came)
        };
        passes(check, &released(false, false, false));
        for (next, late, came) in [(true, false, false), (false, true, false), (false, false, true)] {
            caught(check, &released(next, late, came), "was released from task-manager-1");
        }
    }

    #[test]
    fn a_claim_that_is_under_way_does_not_count_yet() {
        let released = |wait: u64| {
            let mut story = until_sinks();
            story.abandon(1).wait(300);
            story.note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(1) });
            story.wait(wait).release(1, partition(attempt(0, 0, 1, 1)));
            story
        };
        passes(check, &released(0));
        caught(check, &released(1), "was released from task-manager-1");
    }

    #[test]
    fn a_claim_that_may_have_died_with_its_leader_does_not_count() {
        let released = |wait: u64| {
            let mut story = until_sinks();
            story.log(1, finished(attempt(0, 0, 1, 1))).log_init(1, 1);
            lose_former(&mut story);
            story.note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(1) });
            story.wait(wait).crash().wait(300).release(1, partition(attempt(0, 0, 1, 1)));
            story
        };
        passes(check, &released(0));
        caught(check, &released(5), "was released from task-manager-1");
    }

    #[test]
    fn an_order_that_was_right_when_its_leader_was_lost_may_arrive_later() {
        let released = |wait: u64| {
            let mut story = until_sinks();
            story.log(1, finished(attempt(0, 0, 1, 1))).log_init(1, 1);
            let last = story.log_length(1);
            story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
            story.corrupt(1, last + 3).crash().wait(wait).release(1, partition(attempt(0, 0, 1, 1)));
            story
        };
        passes(check, &released(0));
        caught(check, &released(1), "its reader v1.1 had not finished");
    }

    #[test]
    fn an_order_of_a_leader_that_was_told_to_go_may_arrive_later_too() {
        let released = |finished_first: bool| {
            let mut story = until_sinks();
            story.log(1, finished(attempt(0, 0, 1, 1))).log_init(1, 1);
            if finished_first {
                let last = story.log_length(1);
                story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
                story.corrupt(1, last + 3);
            }
            story.exit(Some("another leads")).release(1, partition(attempt(0, 0, 1, 1)));
            story
        };
        passes(check, &released(true));
        caught(check, &released(false), "its reader v1.1 had not finished");
    }

    #[test]
    fn a_release_in_a_recovery_window_is_judged_by_what_is_durable() {
        let mut story = Story::new();
        story.run_sources().log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
        story.release(2, partition(attempt(0, 1, 1, 1)));
        passes(check, &story);
        story.release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "d0/v0.0.e1a1 was released from task-manager-1");

        // Finished when its leader was lost, durable only since the next one came.
        let mut story = until_sinks();
        story.log(1, finished(attempt(0, 0, 1, 1))).log_init(1, 1);
        story.finish_sink(attempt(1, 1, 1, 1)).unsynced(1, finished(attempt(1, 1, 1, 1)));
        story.crash().sync(1).lead(2).release(1, partition(attempt(0, 0, 1, 1)));
        passes(check, &story);

        // A leader that runs has taken the finish back, though the log does not say so yet.
        let mut story = until_sinks();
        story.recovered(1, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)]);
        story.finish_sink(attempt(1, 1, 1, 1)).log(1, finished(attempt(1, 1, 1, 1)));
        story.note(Note::SubtaskReset { subtask: attempt(1, 1, 1, 1).subtask });
        story.release(1, partition(attempt(0, 0, 1, 1)));
        caught(check, &story, "its reader v1.1 had not finished");
    }
}
