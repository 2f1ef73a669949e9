//! Many generated scenarios, each run and judged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use revenant::api::Program;

use super::{Generated, features, generate};
use crate::explore::{bar, map};
use crate::oracle::Judge;
use crate::scenario::Profile;
use crate::trace::RunEnd;

#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub message: String,
}

#[derive(Debug, Default)]
pub struct Report {
    pub failures: Vec<Failure>,
    /// Scenarios that should have had faults, none of which was met.
    pub vacuous: u64,
    /// In how many scenarios a feature or a kind of fault occurred.
    pub seen: BTreeMap<String, u64>,
    /// How runs ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// Of each seed, the hash of its run.
    pub hashes: Vec<(u64, u64)>,
}

impl Report {
    pub fn runs(&self) -> u64 {
        self.hashes.len() as u64
    }

    /// More than one of twenty.
    pub fn is_mostly_vacuous(&self) -> bool {
        self.vacuous * 20 > self.runs()
    }
}

/// What one seed came to.
struct Judged {
    violation: Option<String>,
    vacuous: bool,
    seen: Vec<String>,
    end: &'static str,
    hash: u64,
}

/// Runs and judges the scenarios of all seeds; the report does not depend on the number of threads.
pub fn swarm(seeds: Range<u64>, profile: Profile, threads: usize, program: &Arc<Program>) -> Report {
    let count = (seeds.end - seeds.start) as usize;
    let bar = bar(count);
    let work = |index: usize| one(seeds.start + index as u64, profile, program);
    let results = map(count, threads, work, |_| bar.inc(1));
    bar.finish_and_clear();
    let mut report = Report::default();
    for (seed, result) in seeds.zip(results) {
        report.vacuous += u64::from(result.vacuous);
        for name in result.seen {
            *report.seen.entry(name).or_default() += 1;
        }
        *report.ends.entry(result.end).or_default() += 1;
        report.hashes.push((seed, result.hash));
        report.failures.extend(result.violation.map(|message| Failure { seed, message }));
    }
    report
}

fn one(seed: u64, profile: Profile, program: &Arc<Program>) -> Judged {
    let failed = |message: String| Judged {
        violation: Some(message),
        vacuous: false,
        seen: Vec::new(),
        end: "defects of the testbed",
        hash: 0,
    };
    let judged = || -> Result<Judged, String> {
        let Generated { scenario, kinds, vacuous, outcome } = generate(seed, profile, program)?;
        let violation = Judge::new(&scenario, program)?.judge(&outcome).err();
        let mut seen: Vec<String> = features(&scenario).into_iter().collect();
        seen.extend(kinds.into_iter().map(|kind| format!("fault {kind}")));
        let end = match outcome.ended {
            RunEnd::Finished => "finished",
            RunEnd::Failed { .. } => "failed",
            RunEnd::Canceled => "cancelled",
            RunEnd::Stuck { .. } => "stuck",
            RunEnd::Panicked { .. } => "panicked",
            RunEnd::Contradicted { .. } => "contradicted",
        };
        let violation = violation.map(|violation| violation.to_string());
        Ok(Judged { violation, vacuous, seen, end, hash: outcome.hash })
    };
    match catch_unwind(AssertUnwindSafe(judged)) {
        Ok(Ok(result)) => result,
        Ok(Err(message)) => failed(message),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            failed(format!("the testbed panicked: {}", message.unwrap_or("without a message")))
        }
    }
}
