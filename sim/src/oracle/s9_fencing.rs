//! S9: tokens rise from election to election, no process decides under an older token than one it has acted
//! under, and no worker that follows a leader starts a task of an older one. (What a leader that does
//! not know yet that it was replaced says to itself is no effect.)

use std::collections::BTreeMap;

use revenant::ids::{FencingToken, ProcessId};
use revenant::note::Note;

use super::{History, Violation};
use crate::trace::TraceKind;

pub fn check(history: &History) -> Result<(), Violation> {
    let mut elected: BTreeMap<FencingToken, usize> = BTreeMap::new();
    let mut started: BTreeMap<ProcessId, usize> = BTreeMap::new();
    let mut leads: BTreeMap<ProcessId, FencingToken> = BTreeMap::new();
    let mut follows: BTreeMap<ProcessId, FencingToken> = BTreeMap::new();
    for (at, event) in history.outcome.trace.iter().enumerate() {
        if event.what == TraceKind::Started {
            started.insert(event.process, at);
        }
        let TraceKind::Note(note) = &event.what else { continue };
        let fail = |message| Err(history.violation("S9", at, message));
        match note {
            Note::LeadershipAcquired { token } => {
                // Who was there when a newer one was elected may hear late of its own election.
                let begun = started.get(&event.process).copied().unwrap_or_default();
                let newer = elected.range(token..).find(|(newer, when)| *newer == token || **when < begun);
                if let Some((newer, _)) = newer {
                    return fail(format!("leadership under token {token} after token {newer}"));
                }
                elected.insert(*token, at);
            }
            Note::TaskManagerRegistered { process } => {
                if let Some(&token) = leads.get(&event.process) {
                    let follows = follows.entry(*process).or_default();
                    *follows = token.max(*follows);
                }
            }
            Note::TaskStarted { attempt } => {
                let token = follows.entry(event.process).or_default();
                if attempt.epoch < *token {
                    return fail(format!(
                        "{} started {attempt}, though it followed token {token}",
                        event.process
                    ));
                }
                *token = attempt.epoch;
            }
            _ => {}
        }
        let Some(token) = token_of(note) else { continue };
        match leads.insert(event.process, token) {
            Some(newer) if token < newer => {
                return fail(format!("token {token} decided after a leader with token {newer}: {note:?}"));
            }
            _ => {}
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
    fn an_election_may_be_heard_of_late_but_not_by_who_came_after_the_next_one() {
        let late = |starts_again: bool| {
            let standby = ProcessId::JobManager(2);
            let mut story = Story::new();
            story.happens(standby, TraceKind::Started).lead(1).lead(3);
            if starts_again {
                story.happens(standby, TraceKind::Started);
            }
            let token = FencingToken(2);
            story.happens(standby, TraceKind::Note(Note::LeadershipAcquired { token }));
            story
        };
        passes(check, &late(false));
        caught(check, &late(true), "leadership under token 2 after token 3");
    }

    #[test]
    fn a_token_that_is_handed_out_twice_is_caught() {
        let mut story = Story::new();
        story.lead(1).crash();
        story.note(Note::LeadershipAcquired { token: FencingToken(1) });
        caught(check, &story, "leadership under token 1 after token 1");
    }
}
