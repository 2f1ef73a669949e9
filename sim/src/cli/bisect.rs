//! `cargo sim bisect`: where two runs that begin alike part.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use revenant::api::Program;

use super::out::say;
use super::{CliResult, load};
use crate::bisect::{Parting, parting};

#[derive(Args)]
pub struct BisectArgs {
    /// A scenario, or the file of a failing run.
    a: PathBuf,
    b: PathBuf,
}

/// The exit status is 0 if the runs are equal, event by event. Otherwise it prints the first event at which they
/// part, and what is different in the actors' states there.
pub fn run(args: &BisectArgs, program: &Arc<Program>) -> CliResult {
    let (a, b) = (load(&args.a, program)?, load(&args.b, program)?);
    let Some(Parting { alike, events, before, states }) = parting([&a, &b], program) else {
        say!("both runs have the same events");
        return Ok(ExitCode::SUCCESS);
    };
    say!("{alike} events are the same; event {} is the first that differs:", alike + 1);
    for (file, event) in [&args.a, &args.b].into_iter().zip(events) {
        say!("  {}: {}", file.display(), event.as_deref().unwrap_or("the run is over"));
    }
    let number = alike + 1;
    match (before, states.is_empty()) {
        (true, _) => say!("\nthe states differ before event {number} already:"),
        (false, false) => say!("\nthe states are the same before event {number}; after it:"),
        (false, true) => say!("\nthe states are the same before event {number} and after it"),
    }
    for (process, diff) in states {
        say!("\n{process}: - {}, + {}\n{diff}", args.a.display(), args.b.display());
    }
    Ok(ExitCode::FAILURE)
}
