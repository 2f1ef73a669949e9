//! `cargo sim shrink`: the smallest scenario that still fails in the same way.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use revenant::api::Program;
use revenant::planted::PlantedBug;

use super::out::say;
use super::search::keep_apart;
use super::{CliResult, load};
use crate::explore::{available_threads, for_shell};
use crate::failure::put;
use crate::scenario::Span;
use crate::shrink::{Limits, Size, shrink};

#[derive(Args)]
pub struct ShrinkArgs {
    /// A scenario that fails, as `explore` and `swarm` write them.
    file: PathBuf,
    /// Where the best so far is written; without it, beside the file, with `.min` in its name.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The time that it may take.
    #[arg(long, default_value = "5 min")]
    budget: Span,
    /// All cores, if not given.
    #[arg(long, value_parser = super::threads())]
    threads: Option<usize>,
    /// Give the engine a planted bug.
    #[arg(long, value_parser = crate::explore::parse_bug)]
    bug: Option<PlantedBug>,
}

pub fn run(args: &ShrinkArgs, program: &Arc<Program>) -> CliResult {
    let mut scenario = load(&args.file, program)?;
    if args.bug.is_some() {
        scenario.planted_bug = args.bug;
    }
    let out = args.out.clone().unwrap_or_else(|| args.file.with_extension("min.toml"));
    if args.out.is_some() {
        keep_apart(&[Some(&args.file), Some(&out)])?;
    }
    let begin = Instant::now();
    let threads = args.threads.unwrap_or_else(available_threads);
    let limits = Limits { threads, budget: Duration::max(args.budget.0, Duration::from_millis(1)) };
    let shrunk = shrink(&scenario, program, limits, |best| {
        put(&out, &best.to_toml()).map_err(|error| {
            format!("{} cannot be written: {error}; name another file with --out", out.display())
        })
    })?;
    if let Some(failure) = &shrunk.scenario.failure {
        say!("fails     {}: {}", failure.oracle, failure.message);
    }
    say!("before    {}", Size::of(&scenario));
    say!("after     {}", Size::of(&shrunk.scenario));
    say!("runs      {} in {:.1} s", shrunk.runs, begin.elapsed().as_secs_f64());
    if shrunk.is_minimal {
        say!("minimal   no single further step fails in the same way");
    } else {
        say!(
            "NOT minimal: the time of {} is over; go on with `cargo sim shrink {}`",
            args.budget,
            out.display()
        );
    }
    say!("  cargo sim replay {}", for_shell(&out.to_string_lossy()));
    Ok(ExitCode::SUCCESS)
}
