//! P4: a failure of user code is a failure of its task, never of its process: no task panics its way
//! into the engine, and no TaskManager ends at the moment at which one of its tasks fails.

use revenant::ids::{ActorId, ProcessId};
use revenant::note::Note;

use super::{History, Violation};
use crate::trace::{RunEnd, TraceKind};

pub fn check(history: &History) -> Result<(), Violation> {
    let outcome = history.outcome;
    for (at, event) in outcome.trace.iter().enumerate() {
        let (ProcessId::TaskManager(_), TraceKind::Exited { failure: Some(reason) }) =
            (event.process, &event.what)
        else {
            continue;
        };
        let same = |before: &&crate::trace::TraceEvent| before.time == event.time;
        let failed = outcome.trace[..at].iter().rev().take_while(same).any(|before| {
            before.process == event.process
                && matches!(before.what, TraceKind::Note(Note::TaskEnded { failure: Some(_), .. }))
        });
        if failed {
            let message = format!("{} ended with one of its tasks: {reason}", event.process);
            return Err(history.violation("P4", at, message));
        }
    }
    match &outcome.ended {
        RunEnd::Panicked { process, actor: ActorId::Task(attempt), message } => {
            let message = format!("{attempt} took {process} along: {message}");
            Err(history.violation("P4", outcome.trace.len(), message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn a_task_that_fails_is_good_and_one_that_panics_is_caught() {
        let mut story = Story::new();
        let failure = Some("division by zero".to_owned());
        let ended = Note::TaskEnded { attempt: attempt(0, 0, 1, 1), failure };
        story.run_sources().happens(ProcessId::TaskManager(1), TraceKind::Note(ended));
        passes(check, &story);
        let (process, actor) = (ProcessId::TaskManager(1), ActorId::Task(attempt(0, 0, 1, 1)));
        story.end(RunEnd::Panicked { process, actor, message: "division by zero".to_owned() });
        caught(check, &story, "v0.0.e1a1 took task-manager-1 along");
    }

    #[test]
    fn a_process_that_ends_with_its_task_is_caught() {
        let mut story = Story::new();
        let ended = |failure: Option<&str>| {
            let failure = failure.map(str::to_owned);
            TraceKind::Note(Note::TaskEnded { attempt: attempt(0, 0, 1, 1), failure })
        };
        let exits = TraceKind::Exited { failure: Some("division by zero".to_owned()) };
        let worker = ProcessId::TaskManager(1);
        story.at_once(worker, vec![ended(None), exits.clone()]);
        passes(check, &story);
        story.at_once(worker, vec![ended(Some("division by zero")), exits]);
        caught(check, &story, "task-manager-1 ended with one of its tasks");
    }
}
