//! `cargo sim explore`: every crash point of a schedule, judged.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use revenant::api::Program;
use revenant::planted::PlantedBug;

use super::interrupt::stop_on_interrupt;
use super::search::{self, SearchArgs};
use super::{CliResult, load, out};
use crate::explore::{Blow, ExploreOptions, Pairs, explore, parse_bug};

#[derive(Args)]
pub struct ExploreArgs {
    file: PathBuf,
    /// All cores, if not given.
    #[arg(long, value_parser = super::threads())]
    threads: Option<usize>,
    /// Try only so many points, evenly spread.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: Option<usize>,
    /// Give the engine a planted bug, which the exploration must notice.
    #[arg(long, value_parser = parse_bug)]
    bug: Option<PlantedBug>,
    /// What happens at each point.
    #[arg(long, value_enum, default_value_t = ExploreAction::Crash)]
    action: ExploreAction,
    /// The crash takes the JobManager's machine, with what was not synced.
    #[arg(long)]
    machine: bool,
    /// In place of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Explore so many schedules, those of this seed and of the following ones.
    #[arg(long, default_value_t = 1, value_parser = super::seeds())]
    seeds: u64,
    /// Do it twice in each run: at all pairs of points, or at so many drawn uniformly.
    #[arg(long, value_name = "all|N", value_parser = parse_pairs, conflicts_with = "limit")]
    pairs: Option<Pairs>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    failures: super::FailuresArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum ExploreAction {
    /// The JobManager that passes the point dies.
    Crash,
    /// A standby leads from then on, and the old leader is told.
    ChangeLeader,
    /// A standby leads from then on, and the old leader is not told: for a while there are two.
    ChangeLeaderWithoutNotice,
}

fn blow(action: ExploreAction, machine: bool) -> Result<Blow, String> {
    let notice = match action {
        ExploreAction::Crash => return Ok(Blow::Crash { machine }),
        ExploreAction::ChangeLeader => true,
        ExploreAction::ChangeLeaderWithoutNotice => false,
    };
    if machine {
        return Err("--machine is for crashes: a leader that is replaced keeps its machine".to_owned());
    }
    Ok(Blow::ChangeLeader { notice })
}

fn parse_pairs(text: &str) -> Result<Pairs, String> {
    match text {
        "all" => Ok(Pairs::All),
        count => count
            .parse()
            .ok()
            .filter(|&count| count > 0)
            .map(Pairs::Drawn)
            .ok_or_else(|| format!("'{text}' is neither 'all' nor a whole number from 1")),
    }
}

pub fn run(args: ExploreArgs, program: &Arc<Program>) -> CliResult {
    let mut scenario = load(&args.file, program)?;
    if let Some(budget) = args.search.budget {
        if let Some(seed) = args.seed {
            scenario.schedule.seed = seed;
        }
        if args.bug.is_some() {
            scenario.planted_bug = args.bug;
        }
        let ExploreArgs { file, threads, search, failures, .. } = &args;
        return search::run(file, &scenario, budget.0, *threads, search, failures, program);
    }
    let ExploreArgs { file, threads, limit, bug, action, machine, seed, seeds, pairs, failures, .. } = args;
    let blow = blow(action, machine)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let failures = Some(failures.folder(&stem)?);
    let stop = Some(stop_on_interrupt()?);
    let options = ExploreOptions { file, threads, limit, bug, blow, seed, seeds, pairs, failures, stop };
    let report = explore(&scenario, program, &options)?;
    out::write(format_args!("{report}"))?;
    Ok(if report.is_as_expected() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
