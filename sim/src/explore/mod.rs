//! Exploration: the crash-free run of a scenario, then one run for every crash point that its
//! JobManager passes, each judged by all oracles. Exhaustive for that one schedule, and for one
//! crash a run. Decides nothing about what is right: that is the oracles' and the reference's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use revenant::api::Program;
use revenant::ids::ProcessId;
use revenant::planted::PlantedBug;

use crate::oracle::judge;
use crate::point::CrashPoint;
use crate::reference::Reference;
use crate::run::{RunOptions, run};
use crate::scenario::{Action, Fault, Scenario, Trigger};
use crate::trace::RunOutcome;

mod pool;
mod progress;
mod report;
mod survey;

pub use pool::available_threads;
pub use report::{Classes, Failure, Report, Spread};

/// How a scenario is explored.
#[derive(Clone, Debug, Default)]
pub struct ExploreOptions {
    /// What replay lines call the scenario.
    pub file: PathBuf,
    /// All cores, if not set.
    pub threads: Option<usize>,
    /// Only so many points, evenly spread.
    pub limit: Option<usize>,
    /// A bug that the engine is given, to see whether it is seen.
    pub bug: Option<PlantedBug>,
}

/// Explores a scenario. An error says what is wrong with the scenario itself.
pub fn explore(
    scenario: &Scenario,
    program: &Arc<Program>,
    options: &ExploreOptions,
) -> Result<Report, String> {
    let mut scenario = scenario.clone();
    if options.bug.is_some() {
        scenario.planted_bug = options.bug;
    }
    let job = scenario.job();
    let graph = program.build(&job).map_err(|error| error.to_string())?;
    let reference = Reference::new(&graph, &job, &scenario.configuration())?;
    let judge = |outcome: &RunOutcome| judge(&graph, &reference, outcome);

    let collecting = RunOptions { collect_points: Some(ProcessId::JobManager), ..RunOptions::default() };
    let base = run(&scenario, program, &collecting);
    let points: Vec<CrashPoint> = base.detail.points.iter().map(|found| found.point.clone()).collect();
    let schedule = format!("of seed {}, crash-free run of hash {:016x}", scenario.schedule.seed, base.hash);
    if let Err(violation) = judge(&base) {
        let replay = replay(options, None);
        let failure = Failure { oracle: violation.oracle, message: violation.to_string(), replay };
        return Ok(Report { schedule, points: points.len(), failures: vec![failure], ..Report::default() });
    }

    let chosen = evenly(points.len(), options.limit);
    let threads = options.threads.unwrap_or_else(available_threads);
    let bar = progress::bar(chosen.len());
    let begin = Instant::now();
    let work = |index: usize| {
        let crashing = crashing(&scenario, &points[chosen[index]]);
        let run = |codec| run(&crashing, program, &RunOptions { codec, ..RunOptions::default() });
        survey::survey(index, run, judge)
    };
    let surveyed = pool::map(chosen.len(), threads, work, |_| bar.inc(1));
    let took = begin.elapsed();
    bar.finish_and_clear();
    let report = Report::of(&surveyed, base.end, |index| replay(options, Some(&points[chosen[index]])));
    Ok(Report { schedule, points: points.len(), took, threads, ..report })
}

/// The scenario with a crash at the point.
fn crashing(scenario: &Scenario, point: &CrashPoint) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.faults.push(Fault {
        at: Trigger::Point(point.clone()),
        action: Action::Crash { process: point.process, machine: false },
        restart_after: None,
    });
    scenario
}

/// Indices of at most `limit` of `count` things, evenly spread and rising.
fn evenly(count: usize, limit: Option<usize>) -> Vec<usize> {
    let chosen = limit.unwrap_or(count).min(count);
    (0..chosen).map(|index| index * count / chosen).collect()
}

fn replay(options: &ExploreOptions, point: Option<&CrashPoint>) -> String {
    let crash = point.map_or_else(String::new, |point| format!(" --crash {point}"));
    let bug = options.bug.map_or_else(String::new, |bug| format!(" --bug {}", bug_name(bug)));
    format!("cargo sim run {}{crash}{bug}", options.file.display())
}

/// The name of a planted bug, as scenarios write it.
pub const fn bug_name(bug: PlantedBug) -> &'static str {
    match bug {
        PlantedBug::SkipLastRecord => "skip-last-record",
        PlantedBug::ForgetPartitions => "forget-partitions",
        PlantedBug::ReleaseTooEarly => "release-too-early",
        PlantedBug::AcceptOlderAttempt => "accept-older-attempt",
        PlantedBug::FinishWithoutPartitions => "finish-without-partitions",
        PlantedBug::KeepSplits => "keep-splits",
    }
}

/// The planted bug of this name.
pub fn parse_bug(name: &str) -> Result<PlantedBug, String> {
    PlantedBug::ALL.into_iter().find(|&bug| bug_name(bug) == name).ok_or_else(|| {
        let known: Vec<_> = PlantedBug::ALL.into_iter().map(bug_name).collect();
        format!("there is no planted bug '{name}'; there are: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_spreads_over_all_points() {
        assert_eq!(evenly(10, None), (0..10).collect::<Vec<_>>());
        assert_eq!(evenly(10, Some(4)), [0, 2, 5, 7]);
        assert_eq!(evenly(3, Some(10)), [0, 1, 2]);
        assert!(evenly(0, Some(4)).is_empty());
    }

    #[test]
    fn a_replay_line_names_all_that_the_run_depends_on() {
        let file = PathBuf::from("scenarios/lineitem.toml");
        let mut options = ExploreOptions { file, ..ExploreOptions::default() };
        let point: CrashPoint = "job-manager/1:master@57.1".parse().unwrap();
        let line = "cargo sim run scenarios/lineitem.toml --crash job-manager/1:master@57.1";
        assert_eq!(replay(&options, Some(&point)), line);
        options.bug = Some(PlantedBug::KeepSplits);
        assert_eq!(replay(&options, Some(&point)), format!("{line} --bug keep-splits"));
    }

    #[test]
    fn bugs_have_the_names_that_scenarios_give_them() {
        for bug in PlantedBug::ALL {
            assert_eq!(parse_bug(bug_name(bug)), Ok(bug));
            let text = format!("planted-bug = \"{}\"\n[job]\nname = \"x\"\n", bug_name(bug));
            assert_eq!(Scenario::parse("test", &text).unwrap().planted_bug, Some(bug));
        }
        assert!(parse_bug("keep-split").unwrap_err().contains("there are: skip-last-record, "));
    }
}
