//! S16: no actor's state contradicts itself between two events: what it counts is what is there, an attempt that
//! runs has a slot and finished producers, a split is in one place, what is still to be read is somewhere. Each
//! actor is asked after every event, and the run is over with the first that does.

use super::{History, Violation};
use crate::trace::RunEnd;

pub fn check(history: &History) -> Result<(), Violation> {
    let outcome = history.outcome;
    let RunEnd::Contradicted { process, actor, message } = &outcome.ended else { return Ok(()) };
    Err(history.violation("S16", outcome.trace.len(), format!("the state of {process}:{actor}: {message}")))
}

#[cfg(test)]
mod tests {
    use revenant::ids::{ActorId, ProcessId};

    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    #[test]
    fn a_state_that_contradicts_itself_is_caught() {
        let mut story = Story::finished();
        passes(check, &story);
        let (process, actor) = (ProcessId::JOB_MANAGER, ActorId::Master);
        story.end(RunEnd::Contradicted { process, actor, message: "split 3 is in 2 places".to_owned() });
        caught(check, &story, "the state of job-manager:master: split 3 is in 2 places");
    }
}
