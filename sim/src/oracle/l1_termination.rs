//! L1: the run ends by itself, with the job finished, or cancelled if somebody asked for it.

use super::{History, Violation};
use crate::trace::RunEnd;

pub fn check(history: &History) -> Result<(), Violation> {
    let message = match &history.outcome.ended {
        RunEnd::Finished => return Ok(()),
        RunEnd::Canceled if !history.cancels.is_empty() => return Ok(()),
        RunEnd::Failed { reason } => format!("the job failed: {reason}"),
        RunEnd::Canceled => "the job was cancelled, and nobody had asked for it".to_owned(),
        RunEnd::Stuck { why } => format!("the run does not end: {why}"),
        RunEnd::Panicked { process, actor, message } => format!("{process}:{actor} panicked: {message}"),
    };
    Err(history.violation("L1", history.outcome.trace.len(), message))
}

/// Whatever is broken, nobody panics.
pub fn check_panics(history: &History) -> Result<(), Violation> {
    match &history.outcome.ended {
        RunEnd::Panicked { process, actor, message } => {
            let message = format!("{process}:{actor} panicked: {message}");
            Err(history.violation("L1", history.outcome.trace.len(), message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use revenant::ids::{ActorId, ProcessId};

    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    #[test]
    fn only_a_finished_run_is_good() {
        let mut story = Story::new();
        story.run_sources().run_sinks();
        passes(check, &story);
        story.end(RunEnd::Stuck { why: "nothing is left that could happen".to_owned() });
        caught(check, &story, "does not end: nothing is left that could happen");
        story.end(RunEnd::Failed { reason: "v0.1 failed".to_owned() });
        caught(check, &story, "the job failed: v0.1 failed");
        passes(check_panics, &story);
        let (process, actor) = (ProcessId::JOB_MANAGER, ActorId::Master);
        story.end(RunEnd::Panicked { process, actor, message: "no way".to_owned() });
        caught(check_panics, &story, "job-manager:master panicked: no way");
        story.end(RunEnd::Canceled);
        caught(check, &story, "nobody had asked for it");
        story.cancel();
        passes(check, &story);
    }
}
