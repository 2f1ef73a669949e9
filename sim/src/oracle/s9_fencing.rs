//! S9: once a newer leader has acted, nothing is decided under an older token, and tokens rise.

use revenant::ids::FencingToken;
use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    let mut current: Option<FencingToken> = None;
    for (at, event) in history.outcome.trace.iter().enumerate() {
        let TraceKind::Note(note) = &event.what else { continue };
        if let Note::LeadershipAcquired { token } = note
            && current.is_some_and(|current| *token <= current)
        {
            let message =
                format!("leadership under token {token} after token {}", current.unwrap_or_default());
            return Err(history.violation("S9", at, message));
        }
        let Some(token) = token_of(note) else { continue };
        match current {
            Some(newest) if token < newest => {
                let message = format!("token {token} decided after a leader with token {newest}: {note:?}");
                return Err(history.violation("S9", at, message));
            }
            _ => current = Some(token),
        }
    }
    Ok(())
}

/// The token under which a decision of the JobManager was made.
fn token_of(note: &Note) -> Option<FencingToken> {
    match note {
        Note::LeadershipAcquired { token }
        | Note::JobStatusChanged { token, .. }
        | Note::Replayed { token, .. }
        | Note::Recovered { token, .. }
        | Note::VertexInitialized { token, .. }
        | Note::EventBuffered { token, .. }
        | Note::EventsDurable { token, .. } => Some(*token),
        Note::Deployed { attempt, .. }
        | Note::SplitAssigned { attempt, .. }
        | Note::FinishAccepted { attempt, .. } => Some(attempt.epoch),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn decisions_of_the_newest_leader_are_good() {
        let mut story = Story::new();
        story.run_sources().crash().lead(2).init_sinks_under(2);
        passes(check, &story);
    }

    #[test]
    fn a_decision_of_an_older_leader_is_caught() {
        let mut story = Story::new();
        story.run_sources().lead(2);
        story.note(Note::FinishAccepted { attempt: attempt(0, 0, 1, 2), splits: vec![], inputs: vec![] });
        caught(check, &story, "token 1 decided after a leader with token 2");
    }

    #[test]
    fn a_token_that_is_handed_out_twice_is_caught() {
        let mut story = Story::new();
        story.lead(1).crash();
        story.note(Note::LeadershipAcquired { token: FencingToken(1) });
        caught(check, &story, "leadership under token 1 after token 1");
    }
}
