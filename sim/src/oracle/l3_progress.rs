//! L3: while a job is RUNNING something is deployed, or becomes so at once: a leader whose job runs, and
//! that has a worker to run it on, is never without a deployed attempt for longer than it takes to
//! hear and answer. (What is schedulable or initializable is scheduled in the same step; a pause before a restart
//! is another status; a job that is all finished is COMMITTING.)

use std::collections::BTreeSet;

use revenant::ids::{ExecutionAttemptId, ProcessId};
use revenant::message::JobStatus;
use revenant::note::Note;

use super::history::Leader;
use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    history.leaders.iter().try_for_each(|leader| judge(history, leader))
}

/// What a leader has under way.
#[derive(Debug, Default)]
struct UnderWay {
    runs: bool,
    stands_still: bool,
    workers: BTreeSet<ProcessId>,
    attempts: BTreeSet<ExecutionAttemptId>,
}

impl UnderWay {
    fn apply(&mut self, what: &TraceKind) {
        match what {
            TraceKind::Paused => self.stands_still = true,
            TraceKind::Resumed => self.stands_still = false,
            TraceKind::Note(note) => self.note(note),
            _ => {}
        }
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::JobStatusChanged { status, .. } => self.runs = *status == JobStatus::Running,
            Note::TaskManagerRegistered { process } => {
                self.workers.insert(*process);
            }
            Note::TaskManagerLost { process, .. } => {
                self.workers.remove(process);
            }
            Note::Deployed { attempt, .. } => {
                self.attempts.insert(*attempt);
            }
            Note::FinishAccepted { attempt, .. } | Note::AttemptFailed { attempt, .. } => {
                self.attempts.remove(attempt);
            }
            Note::SubtaskReset { subtask } => self.attempts.retain(|attempt| attempt.subtask != *subtask),
            _ => {}
        }
    }

    fn is_idle(&self, with_services: bool) -> bool {
        let has = |wanted: fn(&ProcessId) -> bool| self.workers.iter().any(wanted);
        self.runs
            && !self.stands_still
            && self.attempts.is_empty()
            && has(|process| matches!(process, ProcessId::TaskManager(_)))
            && (!with_services || has(|process| matches!(process, ProcessId::ShuffleService(_))))
    }
}

fn judge(history: &History, leader: &Leader) -> Result<(), Violation> {
    let trace = &history.outcome.trace;
    let mut under_way = UnderWay::default();
    let mut idle: Option<usize> = None;
    let until = leader.until.min(trace.len());
    for at in leader.acquired..=until {
        if let Some(since) = idle
            && history.time(at).since(history.time(since)) > history.patience.round_trip
        {
            let message = format!(
                "leader {} runs a job of which nothing is deployed and nothing becomes so since {}",
                leader.token,
                history.time(since)
            );
            return Err(history.violation("L3", at, message));
        }
        let Some(event) = trace.get(at) else { break };
        if event.process == leader.process {
            under_way.apply(&event.what);
        }
        idle = if under_way.is_idle(history.patience.services) { idle.or(Some(at)) } else { None };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    fn running() -> Story {
        let mut story = Story::new();
        story.lead(1).note(Note::TaskManagerRegistered { process: ProcessId::TaskManager(1) });
        story.init(1, 0, 2, vec![vec![], vec![]]).status(1, JobStatus::Running);
        story
    }

    #[test]
    fn a_job_of_which_something_is_deployed_may_take_its_time() {
        let mut story = running();
        story.deploy(attempt(0, 0, 1, 1)).wait(100).crash();
        passes(check, &story);
    }

    #[test]
    fn a_job_that_runs_without_anything_deployed_is_caught() {
        let mut story = running();
        story.wait(1).crash();
        caught(check, &story, "leader 1 runs a job of which nothing is deployed");
        let mut story = running();
        story.deploy(attempt(0, 0, 1, 1)).finish_source(attempt(0, 0, 1, 1), &[0]).wait(1).crash();
        caught(check, &story, "leader 1 runs a job of which nothing is deployed");
    }

    #[test]
    fn without_a_worker_or_before_a_restart_or_when_the_process_stands_still_nothing_need_be_deployed() {
        let lost = Note::TaskManagerLost { process: ProcessId::TaskManager(1), reason: "silence".to_owned() };
        passes(check, running().note(lost).wait(100).crash());
        passes(check, running().status(1, JobStatus::Restarting).wait(100).crash());
        passes(check, running().happens(ProcessId::JOB_MANAGER, TraceKind::Paused).wait(100).crash());
    }
}
