//! The command line of the testbed: `cargo sim <command>`.
//!
//! Exit status: 0 if all is as expected, 1 if a run shows something else, 2 if the command line or
//! the scenario is wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use revenant::api::Program;
use revenant::ids::ProcessId;
use revenant::planted::PlantedBug;

use crate::point::CrashPoint;
use crate::run::RunOptions;
use crate::scenario::Scenario;

mod bench;
mod determinism;
mod explore;
mod points;
mod run;

#[derive(Parser)]
#[command(name = "cargo sim", about = "Runs the engine on a simulated network, clock and disk, and kills it")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario once and say what happened.
    Run(RunArgs),
    /// List the crash points that a scenario passes.
    Points {
        file: PathBuf,
        #[arg(long, default_value = "job-manager")]
        process: ProcessId,
    },
    /// Crash the JobManager at every point of the crash-free schedule, one run each, and judge it.
    Explore(explore::ExploreArgs),
    /// Run seeds twice in different processes and compare every event.
    Determinism(determinism::DeterminismArgs),
    /// Measure runs that crash the JobManager and recover.
    Bench {
        file: PathBuf,
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// One side of `determinism`.
    #[command(hide = true)]
    Hashes(determinism::HashesArgs),
}

#[derive(Args)]
struct RunArgs {
    file: PathBuf,
    /// Crash at this point, as `points` lists them.
    #[arg(long)]
    crash: Option<CrashPoint>,
    /// The crash takes the machine, with what was not synced.
    #[arg(long, requires = "crash")]
    machine: bool,
    /// In place of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Encode and decode every message.
    #[arg(long)]
    codec: bool,
    /// Give the engine a planted bug.
    #[arg(long, value_parser = crate::explore::parse_bug)]
    bug: Option<PlantedBug>,
    /// Log to standard error (RUST_LOG says more).
    #[arg(long)]
    log: bool,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let program = Arc::new(revenant::jobs::registry());
    let outcome = match cli.command {
        Command::Run(args) => run::run(&args, &program),
        Command::Points { file, process } => points::points(&file, process, &program),
        Command::Explore(args) => explore::run(args, &program),
        Command::Determinism(args) => determinism::determinism(&args, &program),
        Command::Bench { file, seconds } => bench::bench(&file, seconds, &program),
        Command::Hashes(args) => determinism::hashes(&args, &program),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Says what to do; the exit status is 2.
type CliResult = Result<ExitCode, String>;

fn load(file: &Path, program: &Arc<Program>) -> Result<Scenario, String> {
    Scenario::load(file, program).map_err(|error| error.to_string())
}

fn options() -> RunOptions {
    RunOptions::default()
}
