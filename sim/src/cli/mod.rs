//! The command line of the testbed: `cargo sim <command>`.
//!
//! Exit status: 0 if all is as expected, 1 if a run shows something else, 2 if the command line or
//! the scenario is wrong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{RangedU64ValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use revenant::api::Program;
use revenant::ids::ProcessId;
use revenant::planted::PlantedBug;

use crate::failure::Folder;
use crate::point::CrashPoint;
use crate::run::RunOptions;
use crate::scenario::Scenario;
use out::Stop;

mod bench;
mod bisect;
mod determinism;
mod explore;
mod interrupt;
mod memory;
mod out;
mod points;
mod replay;
mod run;
mod scale;
mod search;
mod shrink;
mod swarm;

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
    /// Run the file of a failing run again and compare.
    Replay(replay::ReplayArgs),
    /// Make a failing scenario as small as it still fails.
    Shrink(shrink::ShrinkArgs),
    /// List the crash points that a scenario passes.
    Points {
        file: PathBuf,
        #[arg(long, default_value = "job-manager")]
        process: ProcessId,
    },
    /// Crash the JobManager, or change the leader, at every point of the crash-free schedule, one run each, and judge it.
    Explore(explore::ExploreArgs),
    /// Add up the parts of a search that `explore --budget … --shard … --json …` wrote.
    Merge(search::MergeArgs),
    /// Say at which event two runs part, and what is different in their actors there.
    Bisect(bisect::BisectArgs),
    /// Run seeds twice in different processes and compare every event.
    Determinism(determinism::DeterminismArgs),
    /// Measure runs that crash the JobManager and recover.
    Bench(bench::BenchArgs),
    /// Print the grammar of scenario files as a JSON schema, for editors.
    Schema {
        /// As the page of the documentation instead.
        #[arg(long)]
        page: bool,
    },
    /// Print the scenario of a seed: job, data, cluster, options and faults.
    Generate(swarm::GenerateArgs),
    /// Run and judge the scenarios of many seeds, and say what occurred in them.
    Swarm(swarm::SwarmArgs),
    /// Print the table of the oracles by which runs are judged, as docs/oracles.md has it.
    Oracles,
    /// Measure a large job and the recovery of its JobManager beside a smaller one.
    Scale(scale::ScaleArgs),
    /// One run of `scale`.
    #[command(hide = true)]
    Measure(scale::MeasureArgs),
    /// One side of `determinism`.
    #[command(hide = true)]
    Hashes(determinism::HashesArgs),
}

/// What an exploration did, to do it again.
#[derive(Args)]
struct BlowArgs {
    /// Crash at this point, as `points` lists them. May be given several times.
    #[arg(long)]
    crash: Vec<CrashPoint>,
    /// The crash takes the machine, with what was not synced.
    #[arg(long, requires = "crash")]
    machine: bool,
    /// Make a standby the leader at this point. May be given several times.
    #[arg(long)]
    change_leader: Vec<CrashPoint>,
    /// The old leader is not told that it is replaced.
    #[arg(long, requires = "change_leader")]
    without_notice: bool,
}

/// Where failing runs go.
#[derive(Args)]
struct FailuresArgs {
    /// The folder in which failing runs are kept, each as a scenario for `cargo sim replay`.
    #[arg(long, value_name = "FOLDER", default_value = "target/failures")]
    failures: PathBuf,
}

impl FailuresArgs {
    /// Tried out at once; `stem` is what the names of its files begin with.
    fn folder(&self, stem: &str) -> Result<Folder, String> {
        Folder::open(&self.failures, stem)
    }
}

#[derive(Args)]
struct RunArgs {
    file: PathBuf,
    #[command(flatten)]
    blows: BlowArgs,
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
    /// Print the job event log, too: every file that was written, and its records.
    #[arg(long)]
    events: bool,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let program = Arc::new(revenant::jobs::registry());
    let outcome = match cli.command {
        Command::Run(args) => run::run(&args, &program),
        Command::Replay(args) => replay::run(&args, &program),
        Command::Shrink(args) => shrink::run(&args, &program),
        Command::Points { file, process } => points::points(&file, process, &program),
        Command::Explore(args) => explore::run(args, &program),
        Command::Merge(args) => search::run_merge(&args),
        Command::Bisect(args) => bisect::run(&args, &program),
        Command::Determinism(args) => determinism::determinism(&args, &program),
        Command::Bench(args) => bench::bench(&args, &program),
        Command::Schema { page } => schema(page),
        Command::Generate(args) => swarm::print(&args, &program),
        Command::Swarm(args) => swarm::run(&args, &program),
        Command::Oracles => oracles(),
        Command::Scale(args) => scale::scale(&args),
        Command::Measure(args) => scale::measure(&args, &program),
        Command::Hashes(args) => determinism::hashes(&args, &program),
    };
    out::status(outcome)
}

/// Says what to do; the exit status is 2.
type CliResult = Result<ExitCode, Stop>;

fn schema(page: bool) -> CliResult {
    if page {
        out::write(format_args!("{}", crate::scenario::page()))?;
    } else {
        out::say!("{:#}", crate::scenario::schema());
    }
    Ok(ExitCode::SUCCESS)
}

fn oracles() -> CliResult {
    out::write(format_args!("{}", crate::oracle::page()))?;
    Ok(ExitCode::SUCCESS)
}

fn load(file: &Path, program: &Arc<Program>) -> Result<Scenario, String> {
    Scenario::load(file, program).map_err(|error| error.to_string())
}

fn options() -> RunOptions {
    RunOptions::default()
}

fn threads() -> impl TypedValueParser<Value = usize> {
    RangedU64ValueParser::<usize>::new().range(1..=1024)
}

fn seeds() -> impl TypedValueParser<Value = u64> {
    RangedU64ValueParser::<u64>::new().range(1..=1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_make_no_sense_are_refused() {
        for line in [
            "explore FILE --limit 0",
            "explore FILE --threads 0",
            "explore FILE --threads 1025",
            "explore FILE --seeds 0",
            "explore FILE --seeds 1000001",
            "determinism FILE --seeds 0",
            "determinism FILE --threads 0",
            "bench FILE --seconds 0",
        ] {
            let words = ["sim"].into_iter().chain(line.split(' '));
            let error = Cli::try_parse_from(words).err().expect(line).to_string();
            assert!(error.contains("is not in 1.."), "{error}");
        }
        assert!(Cli::try_parse_from(["sim", "explore", "FILE", "--threads", "1024", "--limit", "1"]).is_ok());
    }
}
