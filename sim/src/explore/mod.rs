//! Exploration: the crash-free run of a scenario, then one run for every crash point that its
//! JobManagers pass, with a crash or a change of the leader there, each judged by all oracles; the same
//! for each further seed. Exhaustive for these schedules, and for one such blow a run; or, with pairs, for
//! two: the second at a point that is passed after the first, also while the next leader recovers. Decides
//! nothing about what is right: that is the oracles' and the reference's.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use revenant::actor::Time;
use revenant::api::Program;
use revenant::planted::PlantedBug;

use crate::failure::{self, Folder};
use crate::oracle::{Judge, Violation};
use crate::point::CrashPoint;
use crate::run::{Collect, RunOptions, run};
use crate::scenario::Scenario;

mod blow;
mod pairs;
mod pool;
mod progress;
mod report;
mod survey;

pub use blow::Blow;
pub use pool::{available_threads, map, map_while};
pub(crate) use progress::{bar, search_bar};
pub use report::{Classes, Failure, Report, Spread};
use survey::{Finding, Surveyed};

/// How a scenario is explored.
#[derive(Clone, Debug, Default)]
pub struct ExploreOptions {
    /// What replay lines call the scenario.
    pub file: PathBuf,
    /// All cores, if not set.
    pub threads: Option<usize>,
    /// Only so many points in all, evenly spread.
    pub limit: Option<usize>,
    /// A bug that the engine is given, to see whether it is seen.
    pub bug: Option<PlantedBug>,
    /// What happens at each point.
    pub blow: Blow,
    /// In place of the scenario's.
    pub seed: Option<u64>,
    /// How many schedules: those of this and the following seeds. 0 counts as 1.
    pub seeds: u64,
    /// It happens twice in each run.
    pub pairs: Option<Pairs>,
    /// Where failing runs are kept.
    pub failures: Option<Folder>,
    /// Ends it with what it has when it becomes true.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Which pairs of points are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    All,
    /// So many, drawn uniformly, none twice.
    Drawn(usize),
}

/// One run of an exploration.
struct Case<'a> {
    schedule: &'a Schedule,
    points: Vec<CrashPoint>,
}

/// The schedule of one seed: its crash-free run.
struct Schedule {
    scenario: Scenario,
    points: Vec<CrashPoint>,
    hash: u64,
    end: Time,
    broken: Option<(Violation, failure::Failure)>,
    /// Whether it ends as the scenario expects.
    is_expected: bool,
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
    let first = options.seed.unwrap_or(scenario.schedule.seed);
    let seeds = options.seeds.max(1);
    let last =
        first.checked_add(seeds - 1).ok_or_else(|| format!("there are no {seeds} seeds from {first}"))?;
    let judge = Judge::new(&scenario, program)?;
    let blow = options.blow;
    if blow.needs_standby() && scenario.cluster.job_managers == 1 {
        return Err(format!("{blow}: nobody stands by; set job-managers = 2 in [cluster]"));
    }
    let threads = options.threads.unwrap_or_else(available_threads);

    let schedules = map(
        seeds as usize,
        threads,
        |index| Schedule::new(&scenario, first + index as u64, program, &judge),
        |_| (),
    );
    let other = schedules.iter().find(|schedule| !schedule.is_expected && schedule.broken.is_none());
    if let Some(schedule) = other {
        let expected = scenario.expect.outcome;
        return Err(format!(
            "with seed {} the run does not end as the scenario expects ({expected:?}) even without what is explored: \
             see it with `{}`, and mend [expect] or the faults",
            schedule.seed(),
            replay(options, schedule.seed(), &[])
        ));
    }
    let sound = schedules.iter().filter(|schedule| schedule.broken.is_none());
    let single = |schedule| move |point: &CrashPoint| Case { schedule, points: vec![point.clone()] };
    let mut all: Vec<Case> =
        sound.flat_map(|schedule| schedule.points.iter().map(single(schedule))).collect();
    if options.pairs.is_some() {
        all = pairs::of(&all, program, threads, blow);
    }
    let chosen = match options.pairs {
        Some(Pairs::Drawn(count)) => pairs::drawn(all.len(), count, first),
        Some(Pairs::All) | None => evenly(all.len(), options.limit),
    };
    let chosen: Vec<&Case> = chosen.into_iter().map(|index| &all[index]).collect();

    let bar = bar(chosen.len());
    let begin = Instant::now();
    let work = |index: usize| {
        let struck = chosen[index].scenario(blow);
        let run = |codec| run(&struck, program, &RunOptions { codec, ..RunOptions::default() });
        let mut surveyed = survey::survey(index, run, |outcome| judge.judge(outcome));
        if let (Some(folder), Finding::Failed { failure, .. }) = (&options.failures, &surveyed.finding) {
            surveyed.kept = Some(folder.keep(&struck.failing(failure.clone()))?);
        }
        Ok(surveyed)
    };
    let unkept = AtomicBool::new(false);
    let done = |surveyed: &Result<Surveyed, String>| {
        bar.inc(1);
        if surveyed.is_err() {
            unkept.store(true, Ordering::Relaxed);
        }
    };
    let is_stopped = || options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
    let go_on = || !unkept.load(Ordering::Relaxed) && !is_stopped();
    let surveyed = map_while(chosen.len(), threads, work, done, go_on);
    // Of one that was stopped some are missing.
    let tried: Vec<&Case> = chosen
        .iter()
        .zip(&surveyed)
        .filter(|(_, surveyed)| surveyed.is_some())
        .map(|(case, _)| *case)
        .collect();
    let (surveyed, unkept): (Vec<_>, Vec<_>) = surveyed.into_iter().flatten().partition(Result::is_ok);
    if !unkept.is_empty() {
        return Err(unkept.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("\n"));
    }
    let surveyed: Vec<Surveyed> = surveyed.into_iter().filter_map(Result::ok).collect();
    let took = begin.elapsed();
    bar.finish_and_clear();

    let mut report = Report::of(
        &surveyed,
        |index| tried[index].schedule.end,
        |index| replay(options, tried[index].schedule.seed(), &tried[index].points),
    );
    let mut broken = Vec::new();
    for schedule in &schedules {
        let Some((violation, failure)) = &schedule.broken else { continue };
        let replay = replay(options, schedule.seed(), &[]);
        let keep = |folder: &Folder| folder.keep(&schedule.scenario.failing(failure.clone()));
        let kept = options.failures.as_ref().map(keep).transpose()?;
        broken.push(Failure { oracle: violation.oracle, message: violation.to_string(), replay, kept });
    }
    report.failures.splice(0..0, broken);
    report.crash_free =
        schedules.iter().find_map(|schedule| schedule.broken.as_ref()).map(|(broken, _)| broken.to_string());
    report.bug = options.bug.map(bug_name);
    report.is_stopped = tried.len() < chosen.len();
    let schedule = match schedules.as_slice() {
        [one] => format!("of seed {first}, crash-free run of hash {:016x}", one.hash),
        _ => format!("of seeds {first} to {last}"),
    };
    Ok(Report { schedule, blow, points: all.len(), pairs: options.pairs.is_some(), took, threads, ..report })
}

impl Case<'_> {
    fn scenario(&self, blow: Blow) -> Scenario {
        let mut scenario = self.schedule.scenario.clone();
        scenario.faults.extend(self.points.iter().map(|point| blow.at(point.clone())));
        scenario
    }
}

impl Schedule {
    fn new(scenario: &Scenario, seed: u64, program: &Arc<Program>, judge: &Judge) -> Self {
        let mut scenario = scenario.clone();
        scenario.schedule.seed = seed;
        let collecting = RunOptions { collect: Collect::JobManagers, ..RunOptions::default() };
        let base = run(&scenario, program, &collecting);
        let broken = judge.judge(&base).err();
        let broken = broken.map(|violation| {
            let failure = failure::Failure::of(&base, &violation);
            (violation, failure)
        });
        let is_expected = scenario.expect.is_met(&base.ended);
        let points = base.detail.points.into_iter().map(|found| found.point).collect();
        Self { scenario, points, hash: base.hash, end: base.end, broken, is_expected }
    }

    const fn seed(&self) -> u64 {
        self.scenario.schedule.seed
    }
}

/// Indices of at most `limit` of `count` things, evenly spread and rising.
fn evenly(count: usize, limit: Option<usize>) -> Vec<usize> {
    let chosen = limit.unwrap_or(count).min(count);
    (0..chosen).map(|index| index * count / chosen).collect()
}

/// The command line of the run: with every option that makes it another run than the file's.
fn replay(options: &ExploreOptions, seed: u64, points: &[CrashPoint]) -> String {
    let mut line = format!("cargo sim run {}", for_shell(&options.file.to_string_lossy()));
    if options.seed.is_some() || options.seeds > 1 {
        let _ = write!(line, " --seed {seed}");
    }
    for point in points {
        let _ = write!(line, " {} {point}", options.blow.option());
    }
    if let Some(switch) = options.blow.switch().filter(|_| !points.is_empty()) {
        let _ = write!(line, " {switch}");
    }
    if let Some(bug) = options.bug {
        let _ = write!(line, " --bug {}", bug_name(bug));
    }
    line
}

/// In quotes if a shell would take it for more than a word.
pub(crate) fn for_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/+=:,@%".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
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
        PlantedBug::ForgetRecoveryResets => "forget-recovery-resets",
        PlantedBug::SkipInitializeScan => "skip-initialize-scan",
        PlantedBug::SkipCompletionCheck => "skip-completion-check",
        PlantedBug::WipeNewPartitions => "wipe-new-partitions",
        PlantedBug::FinishVacuously => "finish-vacuously",
        PlantedBug::DuplicateSplits => "duplicate-splits",
        PlantedBug::TellNoMoreSplitsOnce => "tell-no-more-splits-once",
        PlantedBug::AcknowledgeBeforeSync => "acknowledge-before-sync",
        PlantedBug::ForgetOlderFiles => "forget-older-files",
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
    fn the_name_of_a_file_is_one_word_for_a_shell() {
        assert_eq!(for_shell("scenarios/lineitem.toml"), "scenarios/lineitem.toml");
        assert_eq!(for_shell("a b/bug's.toml"), r"'a b/bug'\''s.toml'");
    }

    #[test]
    fn a_replay_line_names_all_that_the_run_depends_on() {
        let file = PathBuf::from("scenarios/lineitem.toml");
        let mut options = ExploreOptions { file, ..ExploreOptions::default() };
        let point: CrashPoint = "job-manager/1:master@57.1".parse().unwrap();
        let of_seed_9 = |options: &ExploreOptions| replay(options, 9, std::slice::from_ref(&point));
        let line = "cargo sim run scenarios/lineitem.toml";
        assert_eq!(replay(&options, 9, &[]), line);
        assert_eq!(of_seed_9(&options), format!("{line} --crash job-manager/1:master@57.1"));
        options.seeds = 2;
        let line = format!("{line} --seed 9");
        assert_eq!(replay(&options, 9, &[]), line);
        options.seeds = 1;
        options.seed = Some(9);
        options.blow = Blow::Crash { machine: true };
        assert_eq!(replay(&options, 9, &[]), line);
        let line = format!("{line} --crash job-manager/1:master@57.1 --machine");
        assert_eq!(of_seed_9(&options), line);
        options.bug = Some(PlantedBug::KeepSplits);
        assert_eq!(of_seed_9(&options), format!("{line} --bug keep-splits"));
        options.bug = None;
        let second: CrashPoint = "job-manager/2:writer@3.0".parse().unwrap();
        let twice = replay(&options, 9, &[point.clone(), second]);
        assert!(
            twice.ends_with("--crash job-manager/1:master@57.1 --crash job-manager/2:writer@3.0 --machine")
        );
        options.blow = Blow::ChangeLeader { notice: true };
        assert!(of_seed_9(&options).ends_with(" --change-leader job-manager/1:master@57.1"));
        options.blow = Blow::ChangeLeader { notice: false };
        assert!(of_seed_9(&options).ends_with(" --change-leader job-manager/1:master@57.1 --without-notice"));
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
