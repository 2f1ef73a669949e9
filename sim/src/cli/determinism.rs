//! `cargo sim determinism`: the same seeds in two operating-system processes, event by event.
//!
//! The first process runs seeds one after the other, the second on several threads and in reverse.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};

use clap::Args;
use revenant::api::Program;

use super::{CliResult, load, options};
use crate::digest::Digest;

#[derive(Args)]
pub struct HashesArgs {
    file: PathBuf,
    #[arg(long)]
    first: u64,
    #[arg(long)]
    seeds: u64,
    #[arg(long)]
    threads: usize,
    /// Print every event of the first seed instead.
    #[arg(long)]
    text: bool,
}

/// Prints, for each seed in order: seed, hash of the run, events, digest of the chain; or, with
/// `text`, for each event its chain value and its text.
pub fn hashes(args: &HashesArgs, program: &Arc<Program>) -> CliResult {
    let scenario = load(&args.file, program)?;
    let mut options = options();
    options.keep_chain = true;
    options.keep_text = args.text;
    let one = |seed| {
        let mut scenario = scenario.clone();
        scenario.schedule.seed = seed;
        crate::run::run(&scenario, program, &options)
    };
    let mut out = std::io::stdout().lock();
    let failed = |error: std::io::Error| format!("cannot write: {error}");
    if args.text {
        let outcome = one(args.first);
        for (chain, text) in outcome.detail.chain.iter().zip(&outcome.detail.text) {
            writeln!(out, "{chain:016x} {text}").map_err(failed)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let open: Mutex<Vec<u64>> = Mutex::new((args.first..args.first + args.seeds).collect());
    let lines: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                while let Some(seed) = open.lock().ok().and_then(|mut open| open.pop()) {
                    let outcome = one(seed);
                    let chain = Digest::of(0, &outcome.detail.chain);
                    let line = format!("{:016x} {} {chain:016x}", outcome.hash, outcome.events);
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
        writeln!(out, "{seed} {line}").map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn determinism(file: &Path, seeds: u64, threads: usize, program: &Arc<Program>) -> CliResult {
    let first = load(file, program)?.schedule.seed;
    let alone = other_process(file, first, seeds, 1, false)?;
    let together = other_process(file, first, seeds, threads, false)?;
    if alone == together && alone.lines().count() as u64 == seeds {
        println!(
            "{seeds} seeds from {first}: every event equal in two processes, on 1 and {threads} threads"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let differs = alone.lines().zip(together.lines()).find(|(a, b)| a != b);
    let Some((a, b)) = differs else {
        println!("a process ended early:\n{alone}\n{together}");
        return Ok(ExitCode::FAILURE);
    };
    println!("seed, hash, events and chain differ:\n  {a}\n  {b}");
    let seed = a.split(' ').next().and_then(|seed| seed.parse().ok()).unwrap_or(first);
    let a = other_process(file, seed, 1, 1, true)?;
    let b = other_process(file, seed, 1, 1, true)?;
    match a.lines().zip(b.lines()).enumerate().find(|(_, (a, b))| a != b) {
        Some((event, (a, b))) => println!("first at event {}:\n  {a}\n  {b}", event + 1),
        None => println!("two single runs of seed {seed} are equal: it takes other threads to differ"),
    }
    Ok(ExitCode::FAILURE)
}

fn other_process(file: &Path, first: u64, seeds: u64, threads: usize, text: bool) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.arg("hashes").arg(file);
    command.args(["--first", &first.to_string(), "--seeds", &seeds.to_string()]);
    command.args(["--threads", &threads.to_string()]);
    if text {
        command.arg("--text");
    }
    let output = command.output().map_err(|error| format!("cannot start another process: {error}"))?;
    if !output.status.success() {
        return Err(format!("another process failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
