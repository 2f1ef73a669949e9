//! A search for a given time: strategies, each a way to think of faults for a scenario, take their turns in an
//! order that is the same on every machine; how far they come depends on the time.
//!
//! First every single crash ([`once`]) until all are tried; then, in turns, pairs of crashes ([`twice`]), three
//! crashes at places that matter most ([`weighted`]) and whole generated scenarios ([`swarm`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use revenant::api::Program;
use revenant::probe::Probe;
use serde::{Deserialize, Serialize};

use crate::explore::map_while;
use crate::failure::{Failure, Folder};
use crate::oracle::{Judge, Violation};
use crate::run::{RunOptions, run};
use crate::scenario::Scenario;
use crate::trace::RunOutcome;

mod junit;
mod lines;
mod once;
mod report;
mod swarm;
mod twice;
mod weighted;

pub use junit::junit;
pub use lines::{CaseLine, Line, Merged, merge};
pub use report::{Found, Report, Share};

/// What is searched, and with what.
pub struct Ground<'a> {
    pub scenario: &'a Scenario,
    pub program: &'a Arc<Program>,
    pub threads: usize,
}

/// A scenario to run and judge.
#[derive(Clone, Debug)]
pub struct Case {
    pub scenario: Scenario,
    /// What it has in common with others: what dies, and what it was about to do.
    pub class: String,
}

/// A way to think of cases. Which come, and in which order, depends on the ground alone.
trait Strategy {
    /// More cases to run, or none if there are no more.
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case>;

    /// Points at which something could be done so far, before those with the same survivors were merged.
    fn points(&self) -> u64;

    /// How many cases are still to come, where that is known.
    fn left(&self) -> Option<u64> {
        None
    }

    /// This case was the first to take a rare branch of the engine.
    fn favour(&mut self, _: &Scenario) {}
}

/// Adds counts to counts.
pub fn add_probes(all: &mut BTreeMap<Probe, u64>, more: &BTreeMap<Probe, u64>) {
    for (&probe, count) in more {
        *all.entry(probe).or_default() += count;
    }
}

/// Names of the strategies, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Every crash of a JobManager, with every image that it can leave on a disk.
    Once,
    /// Two crashes: of JobManagers, or of a JobManager and another process, in either order.
    Twice,
    /// Three crashes of any processes, at places drawn by how much depends on them.
    Weighted,
    /// Whole scenarios from seeds.
    Swarm,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Once, Self::Twice, Self::Weighted, Self::Swarm];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Twice => "twice",
            Self::Weighted => "weighted",
            Self::Swarm => "swarm",
        }
    }

    fn strategy(self) -> Box<dyn Strategy> {
        match self {
            Self::Once => Box::new(once::Once::default()),
            Self::Twice => Box::new(twice::Twice::default()),
            Self::Weighted => Box::new(weighted::Weighted::default()),
            Self::Swarm => Box::new(swarm::Swarm::default()),
        }
    }
}

/// What a search may take, and where its findings go.
#[derive(Debug)]
pub struct Limits<'a> {
    pub budget: Duration,
    pub threads: usize,
    pub strategies: &'a [Kind],
    /// Only each so many-th case, from this one: `(0, 1)` is all.
    pub shard: (u64, u64),
    pub failures: Option<&'a Folder>,
    /// Set from outside when the search is to end.
    pub stop: &'a AtomicBool,
}

/// What came of one case.
#[derive(Debug)]
pub enum Outcome {
    Passed,
    /// A fault did not fire.
    Vacuous,
    Failed {
        /// What the oracle said, with its place.
        message: String,
        failure: Failure,
        kept: Option<std::path::PathBuf>,
    },
}

impl Outcome {
    /// Keeps the run before anything else happens to it.
    fn failed(
        case: &Scenario,
        outcome: &RunOutcome,
        violation: &Violation,
        failures: Option<&Folder>,
    ) -> Result<Self, String> {
        let failure = Failure::of(outcome, violation);
        let kept = failures.map(|folder| folder.keep(&case.failing(failure.clone()))).transpose()?;
        Ok(Self::Failed { message: violation.to_string(), failure, kept })
    }
}

/// A case that was run.
#[derive(Debug)]
pub struct Done {
    pub kind: Kind,
    /// Among those of its strategy, from 0.
    pub number: u64,
    /// How many different cases the strategy knew of when this one was run.
    pub known: u64,
    pub class: String,
    pub outcome: Outcome,
    /// How often rare branches of the engine were taken.
    pub probes: BTreeMap<Probe, u64>,
    pub took: Duration,
}

/// Searches. `told` hears of each case that was run.
///
/// # Errors
/// If the scenario does not end as it expects without further faults, or a failing run cannot be kept. If it breaks
/// a promise without them, that is all that is found.
pub fn search(
    scenario: &Scenario,
    program: &Arc<Program>,
    limits: &Limits<'_>,
    told: impl Fn(&Done) + Sync,
) -> Result<Report, String> {
    let begin = Instant::now();
    let ground = Ground { scenario, program, threads: limits.threads };
    let judge = Judge::new(scenario, program)?;
    let calm = calm(&ground, &judge, limits.failures)?;
    let go_on = || begin.elapsed() < limits.budget && !limits.stop.load(Ordering::Relaxed);
    let mut report = Report { threads: limits.threads, ..Report::default() };
    if let Some(broken) = calm {
        told(&broken);
        report.add(broken, begin.elapsed());
        report.took = begin.elapsed();
        return Ok(report);
    }
    let mut kinds: Vec<Kind> = limits.strategies.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    let mut open: Vec<(Kind, Box<dyn Strategy>)> =
        kinds.into_iter().map(|kind| (kind, kind.strategy())).collect();
    report.shares = open.iter().map(|(kind, _)| Share { kind: *kind, ..Share::default() }).collect();
    let mut turn = 0;
    while !open.is_empty() && go_on() {
        turn %= open.len();
        let (kind, strategy) = &mut open[turn];
        let kind = *kind;
        let cases = strategy.more(&ground);
        let share = report.share(kind);
        share.points = strategy.points();
        if cases.is_empty() {
            share.is_exhausted = true;
            open.remove(turn);
            continue;
        }
        let (part, parts) = limits.shard;
        let first = share.cases;
        share.cases += cases.len() as u64;
        let known = share.cases + strategy.left().unwrap_or_default();
        let mine: Vec<(u64, Case)> =
            (first..).zip(cases).filter(|(number, _)| number % parts == part).collect();
        let unkept = AtomicBool::new(false);
        let results: Vec<Option<Result<Done, String>>> = map_while(
            mine.len(),
            limits.threads,
            |index| {
                let since = Instant::now();
                let (number, case) = &mine[index];
                let (outcome, probes) = one(&case.scenario, scenario, program, &judge, limits.failures)?;
                let (number, class) = (*number, case.class.clone());
                Ok(Done { kind, number, known, class, outcome, probes, took: since.elapsed() })
            },
            |done| match done {
                Ok(done) => told(done),
                Err(_) => unkept.store(true, Ordering::Relaxed),
            },
            || go_on() && !unkept.load(Ordering::Relaxed),
        );
        let is_cut = results.iter().any(Option::is_none);
        for (done, (_, case)) in results.into_iter().zip(&mine) {
            let Some(done) = done.transpose()? else { continue };
            if done.probes.keys().any(|probe| !report.probes.contains_key(probe)) {
                for (_, strategy) in &mut open {
                    strategy.favour(&case.scenario);
                }
            }
            report.add(done, begin.elapsed());
        }
        report.share(kind).is_cut |= is_cut;
        // All single crashes come first.
        turn += usize::from(kind != Kind::Once);
    }
    for (kind, strategy) in &open {
        let share = report.share(*kind);
        share.left = strategy.left();
        share.cases += share.left.unwrap_or_default();
    }
    report.is_stopped = limits.stop.load(Ordering::Relaxed);
    report.took = begin.elapsed();
    Ok(report)
}

/// The scenario itself, without further faults. If it breaks a promise then every case would show the same.
fn calm(ground: &Ground<'_>, judge: &Judge, failures: Option<&Folder>) -> Result<Option<Done>, String> {
    let since = Instant::now();
    let outcome = run(ground.scenario, ground.program, &RunOptions::default());
    if let Err(violation) = judge.judge(&outcome) {
        let outcome = Outcome::failed(ground.scenario, &outcome, &violation, failures)?;
        let class = "without further faults".to_owned();
        let (kind, probes) = (Kind::Once, BTreeMap::new());
        return Ok(Some(Done { kind, number: 0, known: 1, class, outcome, probes, took: since.elapsed() }));
    }
    if !ground.scenario.expect.is_met(&outcome.ended) {
        return Err(format!(
            "the run does not end as the scenario expects ({:?}) even without further faults: mend [expect] or its \
             faults",
            ground.scenario.expect.outcome
        ));
    }
    Ok(None)
}

fn one(
    case: &Scenario,
    ground: &Scenario,
    program: &Arc<Program>,
    judge: &Judge,
    failures: Option<&Folder>,
) -> Result<(Outcome, BTreeMap<Probe, u64>), String> {
    let outcome = run(case, program, &RunOptions::default());
    if !outcome.vacuous.is_empty() || !outcome.idle_rates.is_empty() {
        return Ok((Outcome::Vacuous, outcome.probes));
    }
    // A judge knows one job in one cluster.
    let judged = if (&case.job, &case.cluster, &case.config, &case.inputs)
        == (&ground.job, &ground.cluster, &ground.config, &ground.inputs)
    {
        judge.judge(&outcome)
    } else {
        Judge::new(case, program)?.judge(&outcome)
    };
    let Err(violation) = judged else { return Ok((Outcome::Passed, outcome.probes)) };
    Ok((Outcome::failed(case, &outcome, &violation, failures)?, outcome.probes))
}
