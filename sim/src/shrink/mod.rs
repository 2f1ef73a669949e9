//! Makes a failing scenario small: tries ever smaller ones, and goes on from each that still fails in the same
//! way, until no single step of any pass does (1-minimal, as by Zeller's ddmin) or the time is over.
//!
//! The same way is: by the same oracle, at the same kind of event. A scenario in which a fault does not fire
//! is none, so that nothing is left that plays no part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use revenant::api::Program;
use revenant::note::Note;

use crate::digest::Digest;
use crate::explore::map_while;
use crate::failure::Failure;
use crate::oracle::Judge;
use crate::run::{RunOptions, run};
use crate::scenario::Scenario;
use crate::trace::TraceKind;

mod faults;
mod job;
mod points;
mod settings;
mod size;
mod text;

pub use size::Size;

/// What a shrinking may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub threads: usize,
    pub budget: Duration,
}

/// What it came to.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// With its failure.
    pub scenario: Scenario,
    /// Scenarios that were run.
    pub runs: u64,
    /// Whether no single further step fails in the same way; otherwise the time was over first.
    pub is_minimal: bool,
}

/// The smaller scenarios that are one step away, the boldest first.
type Pass = fn(&Scenario, &Arc<Program>) -> Vec<Scenario>;

/// What makes runs fast comes first. With `true`, a run must not become longer: a default may ask for more than
/// what was said in its place.
const PASSES: [(Pass, bool); 4] =
    [(faults::fewer, false), (job::smaller, true), (settings::plainer, false), (points::earlier, false)];

/// All scenarios that are one step smaller.
pub fn steps(scenario: &Scenario, program: &Arc<Program>) -> Vec<Scenario> {
    let plain = Scenario { failure: None, ..scenario.clone() };
    let mut steps: Vec<Scenario> = PASSES.iter().flat_map(|(pass, _)| pass(&plain, program)).collect();
    steps.retain(|step| *step != plain);
    steps
}

/// How a scenario fails.
pub struct Fails {
    pub failure: Failure,
    /// Messages of the run, and records that its tasks read and wrote.
    pub work: u64,
}

/// How the scenario fails, if it does.
///
/// # Errors
/// If it has no reference, or a fault that does not fire.
pub fn failure_of(scenario: &Scenario, program: &Arc<Program>) -> Result<Option<Fails>, String> {
    scenario.check(program).map_err(|error| error.to_string())?;
    let judge = Judge::new(scenario, program)?;
    let outcome = run(scenario, program, &RunOptions::default());
    if let Some(&fault) = outcome.vacuous.first() {
        let fault = &scenario.faults[fault];
        return Err(format!("the fault at '{}' ({}) never fires", fault.at, fault.action));
    }
    let records = outcome.trace.iter().map(|event| match &event.what {
        TraceKind::Note(Note::TaskMetrics { metrics, .. }) => metrics.records_in + metrics.records_out,
        _ => 0,
    });
    let work = outcome.messages + records.sum::<u64>();
    Ok(judge
        .judge(&outcome)
        .err()
        .map(|violation| Fails { failure: Failure::of(&outcome, &violation), work }))
}

/// Shrinks a scenario. `better` is told each smaller one as soon as it is found, with its failure.
///
/// # Errors
/// If the scenario does not fail, or `better` says so.
pub fn shrink(
    scenario: &Scenario,
    program: &Arc<Program>,
    limits: Limits,
    mut better: impl FnMut(&Scenario) -> Result<(), String>,
) -> Result<Shrunk, String> {
    let begin = Instant::now();
    let mut best = Scenario { failure: None, ..scenario.clone() };
    let Fails { failure, work } = failure_of(&best, program)?.ok_or_else(|| {
        "the scenario keeps all promises: there is nothing to shrink; give it the --bug with which it failed"
            .to_owned()
    })?;
    best = best.failing(failure.clone());
    better(&best)?;
    let tried = BTreeSet::new();
    let mut search = Search { program, limits, begin, failure, work, tried, runs: 1 };
    loop {
        let before = best.clone();
        for (pass, no_longer) in PASSES {
            while let Some(smaller) = search.step(&best, pass, no_longer) {
                best = smaller;
                better(&best)?;
            }
        }
        if best == before || search.is_over() {
            return Ok(Shrunk { scenario: best, runs: search.runs, is_minimal: !search.is_over() });
        }
    }
}

struct Search<'a> {
    program: &'a Arc<Program>,
    limits: Limits,
    begin: Instant,
    failure: Failure,
    /// Of the run of the best so far.
    work: u64,
    /// What does not fail in this way.
    tried: BTreeSet<u64>,
    runs: u64,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.begin.elapsed() >= self.limits.budget
    }

    /// The first scenario of the pass that fails in the same way.
    fn step(&mut self, best: &Scenario, pass: Pass, no_longer: bool) -> Option<Scenario> {
        let plain = Scenario { failure: None, ..best.clone() };
        let mut open = pass(&plain, self.program);
        let digest = |scenario: &Scenario| Digest::of(0, scenario.to_toml().as_bytes());
        open.retain(|smaller| *smaller != plain && !self.tried.contains(&digest(smaller)));
        let mut open = open.as_slice();
        // In batches, whose first success counts: the same whatever the number of threads.
        while !open.is_empty() && !self.is_over() {
            let (batch, rest) = open.split_at(open.len().min(self.limits.threads.max(1)));
            open = rest;
            let results = map_while(
                batch.len(),
                self.limits.threads,
                |index| failure_of(&batch[index], self.program).ok().flatten(),
                |_| (),
                || true,
            );
            for (smaller, failure) in batch.iter().zip(results.into_iter().flatten()) {
                self.runs += 1;
                let good = |fails: &Fails| {
                    fails.failure.is_like(&self.failure) && (!no_longer || fails.work <= self.work)
                };
                match failure.filter(good) {
                    Some(Fails { failure, work }) => {
                        self.work = work;
                        return Some(smaller.failing(failure));
                    }
                    None => self.tried.insert(digest(smaller)),
                };
            }
        }
        None
    }
}
