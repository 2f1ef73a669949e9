//! `cargo sim determinism`: the same seeds in two operating-system processes, event by event.
//!
//! Each seed is run twice: as the scenario says, and with a crash of the JobManager somewhere in its
//! course, from which it recovers; or, with `--generated`, once as the scenario that follows from it. The
//! first process runs the seeds one after the other, the second
//! in reverse and on several threads; it may be another build of this program (`--against`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};

use clap::Args;
use revenant::api::Program;

use revenant::ids::{ActorId, ProcessId};

use super::out::say;
use super::{CliResult, load, options};
use crate::digest::Digest;
use crate::generate::generate;
use crate::point::{CrashPoint, PointAt};
use crate::scenario::{Fault, Profile, Scenario};
use crate::trace::RunOutcome;

/// What is run: a scenario, or those that follow from seeds.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct What {
    file: Option<PathBuf>,
    /// In place of a file: the generated scenarios of this profile, `recoverable` or `hostile`.
    #[arg(long, value_name = "PROFILE", value_parser = super::swarm::parse_profile)]
    generated: Option<Profile>,
}

#[derive(Args)]
pub struct HashesArgs {
    #[command(flatten)]
    what: What,
    #[arg(long)]
    first: u64,
    #[arg(long, value_parser = super::seeds())]
    seeds: u64,
    #[arg(long, value_parser = super::threads())]
    threads: usize,
    /// Print every event of the first seed instead.
    #[arg(long)]
    text: bool,
}

/// Prints, for each seed in order: seed, hash of the run, events, digest of the chain; or, with
/// `text`, for each event its chain value and its text.
pub fn hashes(args: &HashesArgs, program: &Arc<Program>) -> CliResult {
    let given = args.what.file.as_ref().map(|file| load(file, program)).transpose()?;
    let mut options = options();
    options.keep_chain = true;
    options.keep_text = args.text;
    let run = |scenario: &Scenario| crate::run::run(scenario, program, &options);
    let runs = |seed| -> Result<Vec<RunOutcome>, String> {
        let Some(mut scenario) = given.clone() else {
            let generated = generate(seed, args.what.generated.unwrap_or_default(), program)?;
            return Ok(vec![run(&generated.scenario)]);
        };
        scenario.schedule.seed = seed;
        let calm = run(&scenario);
        scenario.faults.push(Fault::crash_at(crash_of(seed), false));
        Ok(vec![calm, run(&scenario)])
    };
    if args.text {
        for outcome in runs(args.first)? {
            for (chain, text) in outcome.detail.chain.iter().zip(&outcome.detail.text) {
                say!("{chain:016x} {text}");
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let end = last_seed(args.first, args.seeds)?;
    let open: Mutex<Vec<u64>> = Mutex::new((args.first..=end).collect());
    let lines: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                while let Some(seed) = open.lock().ok().and_then(|mut open| open.pop()) {
                    let of_run = |outcome: RunOutcome| {
                        let chain = Digest::of(0, &outcome.detail.chain);
                        format!("{:016x} {} {chain:016x}", outcome.hash, outcome.events)
                    };
                    let line = match runs(seed) {
                        Ok(outcomes) => outcomes.into_iter().map(of_run).collect::<Vec<_>>().join(" "),
                        Err(error) => error,
                    };
                    if let Ok(mut lines) = lines.lock() {
                        lines.push((seed, line));
                    }
                }
            });
        }
    });
    let mut lines = lines.into_inner().map_err(|_| "a run panicked".to_owned())?;
    lines.sort();
    for (seed, line) in lines {
        say!("{seed} {line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn last_seed(first: u64, seeds: u64) -> Result<u64, String> {
    first.checked_add(seeds - 1).ok_or_else(|| format!("there are no {seeds} seeds from {first}"))
}

/// Where the JobManager dies under a seed: at one of its first sixty events.
fn crash_of(seed: u64) -> CrashPoint {
    CrashPoint {
        process: ProcessId::JOB_MANAGER,
        incarnation: 1,
        at: PointAt::Number { actor: ActorId::Master, event: 1 + seed % 60 * 7 % 60, effect: 0 },
    }
}

#[derive(Args)]
pub struct DeterminismArgs {
    #[command(flatten)]
    what: What,
    /// The first seed; without it, the scenario's.
    #[arg(long)]
    first: Option<u64>,
    #[arg(long, default_value_t = 50, value_parser = super::seeds())]
    seeds: u64,
    /// Threads of the second process; the first has one.
    #[arg(long, default_value_t = 4, value_parser = super::threads())]
    threads: usize,
    /// Another build of this program for the second process, such as target/debug/revenant-sim.
    #[arg(long)]
    against: Option<PathBuf>,
}

pub fn determinism(args: &DeterminismArgs, program: &Arc<Program>) -> CliResult {
    let DeterminismArgs { what, first, seeds, threads, against } = args;
    let (seeds, threads) = (*seeds, *threads);
    let own = what.file.as_ref().map(|file| load(file, program)).transpose()?;
    let first = first.or(own.map(|scenario| scenario.schedule.seed)).unwrap_or_default();
    last_seed(first, seeds)?;
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let against = against.as_ref().unwrap_or(&this);
    let alone = other_process(&this, what, first, seeds, 1, false)?;
    let together = other_process(against, what, first, seeds, threads, false)?;
    if alone == together && alone.lines().count() as u64 == seeds {
        let each = if what.generated.is_some() { "each generated" } else { "each calm and with a crash" };
        say!(
            "{seeds} seeds from {first}, {each}: every event equal in two processes, \
             on 1 and {threads} threads (digest of all: {:016x})",
            Digest::of(0, alone.as_bytes())
        );
        return Ok(ExitCode::SUCCESS);
    }
    let differs = alone.lines().zip(together.lines()).find(|(a, b)| a != b);
    let Some((a, b)) = differs else {
        say!("a process ended early:\n{alone}\n{together}");
        return Ok(ExitCode::FAILURE);
    };
    say!("seed, hash, events and chain differ:\n  {a}\n  {b}");
    let seed = a.split(' ').next().and_then(|seed| seed.parse().ok()).unwrap_or(first);
    let a = other_process(&this, what, seed, 1, 1, true)?;
    let b = other_process(against, what, seed, 1, 1, true)?;
    match a.lines().zip(b.lines()).enumerate().find(|(_, (a, b))| a != b) {
        Some((event, (a, b))) => say!("first at event {}:\n  {a}\n  {b}", event + 1),
        None => say!("two single runs of seed {seed} are equal: it takes other threads to differ"),
    }
    Ok(ExitCode::FAILURE)
}

fn other_process(
    program: &Path,
    what: &What,
    first: u64,
    seeds: u64,
    threads: usize,
    text: bool,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("hashes").args(&what.file);
    if let Some(profile) = what.generated {
        command.args(["--generated", super::swarm::profile_name(profile)]);
    }
    command.args(["--first", &first.to_string(), "--seeds", &seeds.to_string()]);
    command.args(["--threads", &threads.to_string()]);
    if text {
        command.arg("--text");
    }
    let output = command.output().map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("another process failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
