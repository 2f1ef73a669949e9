//! A run that broke a promise, as a file: the whole scenario, and in `[failure]` what its run showed, so that
//! it can be repeated bit for bit, shrunk and kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::oracle::Violation;
use crate::scenario::Scenario;
use crate::trace::{RunEnd, RunOutcome, TraceKind};

mod folder;

pub use folder::{Folder, put};

/// What a run showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failure {
    /// The oracle that caught it.
    pub oracle: String,
    /// What happened at the event that broke the promise. If it was the end of the run, how that was: `end` if the job
    /// finished, or else as `Failed` or `Stuck`.
    pub place: String,
    /// Number of that event in the trace, from 0.
    pub event: u64,
    /// What the oracle said.
    pub message: String,
    /// The run's hash, in hexadecimal.
    pub hash: String,
    /// The version of the testbed. Another one may run the scenario in another way.
    pub version: String,
}

impl Failure {
    pub fn of(outcome: &RunOutcome, violation: &Violation) -> Self {
        Self {
            oracle: violation.oracle.to_owned(),
            place: place(outcome, violation),
            event: violation.event as u64,
            message: violation.message.clone(),
            hash: format!("{:016x}", outcome.hash),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Whether it is the same failure, perhaps of another scenario: by the same oracle at the same kind of event.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.oracle, &self.place) == (&other.oracle, &other.place)
    }
}

/// The kind of the event, as `Recovered` or `Crashed`: what shrinking must keep.
fn place(outcome: &RunOutcome, violation: &Violation) -> String {
    let text = match (outcome.trace.get(violation.event).map(|event| &event.what), &outcome.ended) {
        (Some(TraceKind::Note(note)), _) => format!("{note:?}"),
        (Some(what), _) => format!("{what:?}"),
        (None, RunEnd::Finished) => "end".to_owned(),
        (None, ended) => format!("{ended:?}"),
    };
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

impl Scenario {
    /// The same scenario as the file of a failing run.
    pub fn failing(&self, failure: Failure) -> Self {
        Self { failure: Some(failure), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, with_history};

    #[test]
    fn the_place_of_a_failure_is_the_kind_of_its_event() {
        let mut story = Story::new();
        story.run_sources().crash().lead(2).recovered(2, &[attempt(0, 0, 1, 1)]);
        let outcome = with_history(&story, |history| history.outcome.clone());
        let of = |event: usize| {
            let at = outcome.trace.get(event).map_or(outcome.end, |event| event.time);
            let violation = Violation { oracle: "S7", at, event, message: "wrong".to_owned() };
            Failure::of(&outcome, &violation)
        };
        let crash = outcome.trace.iter().position(|event| matches!(event.what, TraceKind::Crashed { .. }));
        let last = outcome.trace.len();
        assert_eq!(of(crash.unwrap()).place, "Crashed");
        assert_eq!(of(last - 1).place, "Recovered");
        assert_eq!(of(last).place, "end");
        let other = Failure { hash: "0".to_owned(), message: "other".to_owned(), event: 1, ..of(last) };
        assert!(of(last).is_like(&other) && !of(last).is_like(&of(last - 1)));
        story.end(RunEnd::Failed { reason: "v0.1 failed".to_owned() });
        let failed = with_history(&story, |history| history.outcome.clone());
        let violation = Violation { oracle: "S7", at: failed.end, event: last, message: "wrong".to_owned() };
        assert_eq!(Failure::of(&failed, &violation).place, "Failed");
    }
}
