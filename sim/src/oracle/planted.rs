//! For each oracle a story that breaks its promise and, up to there, no other one.

use revenant::disk::Volume;
use revenant::ids::{ActorId, ProcessId};
use revenant::message::{CommitDecision, IndexRange, JobStatus};
use revenant::note::Note;

use super::testing::{Story, attempt, finished, finished_without_snapshot, partition};
use crate::trace::{RunEnd, TraceKind};

/// Both sources and the first sink have finished durably.
fn until_first_sink() -> Story {
    let mut story = Story::new();
    story.start().log_init(1, 0);
    story.finish_source(attempt(0, 0, 1, 1), &[0, 1]).log(1, finished(attempt(0, 0, 1, 1)));
    story.finish_source(attempt(0, 1, 1, 1), &[2, 3]).log(1, finished(attempt(0, 1, 1, 1)));
    story.init_sinks().log_init(1, 1);
    story.finish_sink(attempt(1, 0, 1, 1)).log(1, finished(attempt(1, 0, 1, 1)));
    story
}

fn committed() -> Note {
    Note::CommitDecided { decision: CommitDecision::default() }
}

pub fn story(oracle: &str) -> Story {
    let mut story = Story::new();
    match oracle {
        "S1" => {
            story = Story::finished();
            story.output("part-1", b"1\n4\n");
        }
        "S2" => {
            story.start().finish_source(attempt(0, 0, 1, 1), &[0, 1]);
            story.finish_source(attempt(0, 1, 1, 1), &[1, 2, 3]);
        }
        "S3" => {
            story.run_sources().init_sinks().deploy(attempt(1, 0, 1, 1));
            let inputs = vec![vec![partition(attempt(0, 0, 1, 1)), partition(attempt(0, 1, 1, 7))]];
            story.note(Note::FinishAccepted { attempt: attempt(1, 0, 1, 1), splits: vec![], inputs });
        }
        "S4" => {
            let all = IndexRange::new(0, 1);
            story.run_sources().init(1, 1, 1, vec![vec![(all, IndexRange::new(0, 2))]]);
        }
        "S5" => {
            let all = IndexRange::new(0, 1);
            story.run_sources().init_sinks().init(1, 1, 1, vec![vec![(all, IndexRange::new(0, 3))]]);
        }
        "S6" => {
            story = until_first_sink();
            story.crash().crash_worker(1).lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        }
        "S7" => {
            story.run_sources().log_init(1, 0).log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        }
        "S8" => {
            story.run_sources().log_init(1, 0).log(1, finished(attempt(0, 0, 1, 1)));
            story.log(1, finished_without_snapshot(attempt(0, 1, 1, 1))).crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        }
        "S9" => {
            story.run_sources().lead(2).status(1, JobStatus::Running);
        }
        "S10" => {
            story
                .start()
                .finish_source(attempt(0, 0, 1, 1), &[0, 1])
                .init_sinks()
                .deploy(attempt(1, 0, 1, 1));
        }
        "S11" => {
            story = until_first_sink();
            story.release(1, partition(attempt(0, 0, 1, 1)));
        }
        "S12" => {
            story = Story::finished();
            story.deploy(attempt(1, 0, 1, 2));
        }
        "S13" => {
            story.start().deploy(attempt(0, 0, 1, 2)).deploy(attempt(0, 0, 1, 2));
        }
        "S14" => {
            story = Story::determinate();
            story.run_sources().crash().lead(2).recovered(2, &[]);
            story.finish_source(attempt(0, 0, 2, 1), &[0, 1]).finish_source(attempt(0, 1, 2, 1), &[2, 3]);
            story.init_sinks_under(2).deploy(attempt(1, 0, 2, 1));
            let inputs = vec![vec![partition(attempt(0, 0, 2, 1)), partition(attempt(0, 1, 1, 1))]];
            story.note(Note::FinishAccepted { attempt: attempt(1, 0, 2, 1), splits: vec![], inputs });
        }
        "S15" => {
            story = Story::finished();
            story.harm("the file another-cluster/job-result of another cluster is gone");
        }
        "S16" => {
            let (process, actor) = (ProcessId::JOB_MANAGER, ActorId::Master);
            story = Story::finished();
            story.end(RunEnd::Contradicted { process, actor, message: "no slot is free".to_owned() });
        }
        "E1" => {
            story = until_first_sink();
            let kept = [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1), attempt(1, 0, 1, 1)];
            story.crash().lead(2).recovered(2, &kept).deploy(attempt(1, 0, 2, 1));
        }
        "E2" => {
            story.run_sources().log_init(1, 0).log(1, finished(attempt(0, 0, 1, 1))).crash().lead(2);
            story.recovered(2, &[attempt(0, 0, 1, 1)]);
            story.deploy(attempt(0, 1, 2, 1)).deploy(attempt(0, 1, 2, 2));
        }
        "L1" => {
            story = Story::finished();
            story.end(RunEnd::Stuck { why: "nothing is left that could happen".to_owned() });
        }
        "L2" => {
            story.run_sources().crash().lead(2).status(2, JobStatus::Reconciling).wait(31).recovered(2, &[]);
        }
        "L3" => {
            story.lead(1).note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(1) });
            story.init(1, 0, 2, vec![vec![], vec![]]).status(1, JobStatus::Running).wait(1).crash();
        }
        "L4" => {
            story = Story::finished();
            story.leave(None, Volume::Ha, "default/job-events/events.1.0");
        }
        "L5" => {
            story.run_sources().crash().lead(2).recovered(2, &[]).wait(31).status(2, JobStatus::Running);
        }
        "L6" => {
            story.run_sources().init_sinks().cancel().deploy(attempt(1, 0, 1, 1));
        }
        "L7" => {
            let expired = Note::RetentionExpired { partitions: vec![partition(attempt(0, 0, 1, 1))] };
            story.run_sources().crash().abandon(1).wait(200);
            story.happens(ProcessId::TaskManager(1), TraceKind::Note(expired));
        }
        "P1" => {
            for subtask in [0, 1] {
                story.counts(attempt(0, subtask, 1, 1), 0, 2).counts(attempt(1, subtask, 1, 1), 3, 3);
            }
            story.run_sources().run_sinks();
        }
        "P2" => {
            story
                .counts(attempt(1, 0, 1, 1), 0, 1)
                .run_sources()
                .init_sinks()
                .finish_sink(attempt(1, 0, 1, 1));
        }
        "P3" => {
            story
                .start()
                .finish_source(attempt(0, 0, 1, 1), &[0, 1])
                .finish_source(attempt(0, 1, 1, 1), &[3, 2]);
            story.run_sinks_recorded();
            story.note(committed()).output("part-0", b"0\n2\n").output("part-1", b"3\n1\n");
        }
        "P4" => {
            let (process, actor) = (ProcessId::TaskManager(1), ActorId::Task(attempt(1, 0, 1, 1)));
            story = Story::finished();
            story.end(RunEnd::Panicked { process, actor, message: "division by zero".to_owned() });
        }
        other => panic!("there is no story for {other}"),
    }
    story
}
