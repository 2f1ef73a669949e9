//! One crash point: the run that crashes there, judged. Every tenth is run a second time with each
//! message through its codec, and both must be the same run.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use revenant::actor::Time;

use crate::failure::Failure;
use crate::oracle::{Finishes, Verdict, Violation};
use crate::trace::RunOutcome;

/// Every run whose index has this remainder by 10 is repeated with the codec.
const WITH_CODEC: usize = 9;

/// What came of one crash point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Passed(Passed),
    /// The process was not killed there, or another fault of the scenario did not fire.
    Vacuous,
    Failed {
        oracle: &'static str,
        message: String,
        /// As its file has it.
        failure: Failure,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    pub end: Time,
    pub rerun: u32,
    pub finishes: Finishes,
}

impl Finding {
    fn failed(outcome: &RunOutcome, violation: &Violation) -> Self {
        let failure = Failure::of(outcome, violation);
        Self::Failed { oracle: violation.oracle, message: violation.to_string(), failure }
    }
}

/// A finding with what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    pub finding: Finding,
    /// Messages of the judged run.
    pub messages: u64,
    /// Of the judged run and its judgement; zero if it was vacuous.
    pub took: Duration,
    /// The file of the failing run.
    pub kept: Option<PathBuf>,
}

/// Runs point number `index` with `run(codec)` and judges it.
pub fn survey(
    index: usize,
    run: impl Fn(bool) -> RunOutcome,
    judge: impl Fn(&RunOutcome) -> Result<Verdict, Violation>,
) -> Surveyed {
    let begin = Instant::now();
    let outcome = run(false);
    let messages = outcome.messages;
    if !outcome.vacuous.is_empty() {
        return Surveyed { finding: Finding::Vacuous, messages, took: Duration::ZERO, kept: None };
    }
    let finding = match judge(&outcome) {
        Ok(verdict) => {
            Finding::Passed(Passed { end: outcome.end, rerun: verdict.rerun, finishes: verdict.finishes })
        }
        Err(violation) => Finding::failed(&outcome, &violation),
    };
    let mut surveyed = Surveyed { finding, messages, took: begin.elapsed(), kept: None };
    if index % 10 == WITH_CODEC {
        let encoded = run(true);
        if encoded.hash != outcome.hash && matches!(surveyed.finding, Finding::Passed(_)) {
            let message = format!(
                "the run with every message through its codec has hash {:016x}, without {:016x}",
                encoded.hash, outcome.hash
            );
            let (at, event) = (outcome.end, outcome.trace.len());
            surveyed.finding = Finding::failed(&outcome, &Violation { oracle: "codec", at, event, message });
        }
    }
    surveyed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::trace::RunEnd;

    fn outcome(hit: bool, hash: u64) -> RunOutcome {
        RunOutcome {
            trace: vec![],
            hash,
            events: 0,
            messages: 5,
            end: Time(7),
            ended: RunEnd::Finished,
            output: BTreeMap::new(),
            leftovers: vec![],
            foreign: vec![],
            vacuous: if hit { vec![] } else { vec![0] },
            idle_rates: vec![],
            probes: BTreeMap::new(),
            detail: crate::trace::RunDetail::default(),
        }
    }

    #[allow(clippy::unnecessary_wraps)]
    fn good(_: &RunOutcome) -> Result<Verdict, Violation> {
        Ok(Verdict { rerun: 3, ..Verdict::default() })
    }

    #[test]
    fn a_crash_that_did_not_happen_is_vacuous_and_not_passed() {
        assert_eq!(survey(0, |_| outcome(false, 1), good).finding, Finding::Vacuous);
        let passed = survey(0, |_| outcome(true, 1), good);
        let finding = Passed { end: Time(7), rerun: 3, finishes: Finishes::default() };
        assert_eq!((passed.finding, passed.messages), (Finding::Passed(finding), 5));
    }

    #[test]
    fn a_violation_is_a_failure_with_the_oracles_words() {
        let bad = |_: &RunOutcome| {
            Err(Violation { oracle: "S2", at: Time(1), event: 4, message: "split 1 is lost".to_owned() })
        };
        let Finding::Failed { oracle: "S2", message, failure } = survey(0, |_| outcome(true, 1), bad).finding
        else {
            panic!()
        };
        assert!(message.ends_with("split 1 is lost"), "{message}");
        assert_eq!((failure.place.as_str(), failure.hash.as_str()), ("end", "0000000000000001"));
    }

    #[test]
    fn every_tenth_run_is_compared_with_its_run_through_the_codec() {
        let run = |codec| outcome(true, if codec { 1 } else { 2 });
        for index in 0..20 {
            let surveyed = survey(index, run, good);
            let compared = index % 10 == 9;
            assert_eq!(matches!(surveyed.finding, Finding::Failed { oracle: "codec", .. }), compared);
            assert_eq!(surveyed.messages, 5);
        }
    }
}
