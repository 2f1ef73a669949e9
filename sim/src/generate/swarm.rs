//! Many generated scenarios, each run and judged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use revenant::api::Program;
use revenant::probe::Probe;

use super::{Generated, features, generate};
use crate::explore::{bar, map_while};
use crate::failure::{self, Folder};
use crate::oracle::Judge;
use crate::scenario::{Profile, Scenario};
use crate::search::add_probes;
use crate::trace::RunEnd;

#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub message: String,
    /// The file of the failing run.
    pub kept: Option<PathBuf>,
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
    /// How often rare branches of the engine were taken.
    pub probes: BTreeMap<Probe, u64>,
    /// Of each seed, the hash of its run.
    pub hashes: Vec<(u64, u64)>,
    /// It was told to end before it had run all.
    pub is_stopped: bool,
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
    kept: Option<PathBuf>,
    vacuous: bool,
    seen: Vec<String>,
    end: &'static str,
    probes: BTreeMap<Probe, u64>,
    hash: u64,
}

/// Runs and judges the scenarios of all seeds, or of those that it comes to until `stop`; the report does not depend on
/// the number of threads.
///
/// # Errors
/// If a failing run cannot be kept; the message has its scenario.
pub fn swarm(
    seeds: Range<u64>,
    profile: Profile,
    threads: usize,
    failures: Option<&Folder>,
    stop: &AtomicBool,
    program: &Arc<Program>,
) -> Result<Report, String> {
    let count = (seeds.end - seeds.start) as usize;
    let bar = bar(count);
    let unkept = AtomicBool::new(false);
    let work = |index: usize| one(seeds.start + index as u64, profile, failures, program);
    let done = |judged: &Result<Judged, String>| {
        bar.inc(1);
        unkept.fetch_or(judged.is_err(), Ordering::Relaxed);
    };
    let go_on = || !unkept.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed);
    let results = map_while(count, threads, work, done, go_on);
    bar.finish_and_clear();
    let unkept: Vec<&str> =
        results.iter().flatten().filter_map(|result| Some(result.as_ref().err()?.as_str())).collect();
    if !unkept.is_empty() {
        return Err(unkept.join("\n"));
    }
    let mut report = Report { is_stopped: results.iter().any(Option::is_none), ..Report::default() };
    for (seed, result) in seeds.zip(results) {
        let Some(Ok(result)) = result else { continue };
        report.vacuous += u64::from(result.vacuous);
        for name in result.seen {
            *report.seen.entry(name).or_default() += 1;
        }
        *report.ends.entry(result.end).or_default() += 1;
        add_probes(&mut report.probes, &result.probes);
        report.hashes.push((seed, result.hash));
        let kept = result.kept;
        report.failures.extend(result.violation.map(|message| Failure { seed, message, kept }));
    }
    Ok(report)
}

fn one(
    seed: u64,
    profile: Profile,
    failures: Option<&Folder>,
    program: &Arc<Program>,
) -> Result<Judged, String> {
    let failed = |message: String| Judged {
        violation: Some(message),
        kept: None,
        vacuous: false,
        seen: Vec::new(),
        end: "defects of the testbed",
        probes: BTreeMap::new(),
        hash: 0,
    };
    let judged = || -> Result<(Judged, Option<Scenario>), String> {
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
        let failing =
            violation.as_ref().map(|violation| scenario.failing(failure::Failure::of(&outcome, violation)));
        let violation = violation.map(|violation| violation.to_string());
        Ok((
            Judged { violation, kept: None, vacuous, seen, end, probes: outcome.probes, hash: outcome.hash },
            failing,
        ))
    };
    Ok(match catch_unwind(AssertUnwindSafe(judged)) {
        Ok(Ok((mut judged, failing))) => {
            if let (Some(folder), Some(failing)) = (failures, failing) {
                judged.kept = Some(folder.keep(&failing)?);
            }
            judged
        }
        Ok(Err(message)) => failed(message),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            failed(format!("the testbed panicked: {}", message.unwrap_or("without a message")))
        }
    })
}
