//! `cargo sim explore`: every crash point of a schedule, judged.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use revenant::api::Program;
use revenant::planted::PlantedBug;

use super::{CliResult, load};
use crate::explore::{ExploreOptions, explore, parse_bug};

#[derive(Args)]
pub struct ExploreArgs {
    file: PathBuf,
    /// All cores, if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Try only so many points, evenly spread.
    #[arg(long)]
    limit: Option<usize>,
    /// Give the engine a planted bug, which the exploration must notice.
    #[arg(long, value_parser = parse_bug)]
    bug: Option<PlantedBug>,
}

pub fn run(args: ExploreArgs, program: &Arc<Program>) -> CliResult {
    let scenario = load(&args.file, program)?;
    let ExploreArgs { file, threads, limit, bug } = args;
    let report = explore(&scenario, program, &ExploreOptions { file, threads, limit, bug })?;
    print!("{report}");
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
