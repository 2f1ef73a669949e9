//! `cargo sim replay`: the file of a failing run, run again and compared.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use revenant::api::Program;

use super::out::{self, say};
use super::{CliResult, load, options};
use crate::dump::dump;
use crate::explore::for_shell;
use crate::failure::Failure;
use crate::oracle::Judge;
use crate::story;
use crate::trace::RunOutcome;

#[derive(Args)]
pub struct ReplayArgs {
    /// A file that `explore`, `swarm` or `shrink` wrote.
    file: PathBuf,
    /// Print what happened, line by line, with the messages that carry the protocol.
    #[arg(long)]
    log: bool,
    /// Print the job event log, too: every file that was written, and its records.
    #[arg(long)]
    events: bool,
    /// Stop after so many events and print what every actor then knows. Reports and `points` say of what happened
    /// which event it was.
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    until: Option<u64>,
}

/// The exit status is 0 if the run is the same, bit for bit, and fails as it did.
pub fn run(args: &ReplayArgs, program: &Arc<Program>) -> CliResult {
    let scenario = load(&args.file, program)?;
    let file = args.file.display();
    let Some(expected) = &scenario.failure else {
        return Err(format!(
            "{file} is not the file of a failing run: it has no [failure]; run it with `cargo sim run {file}`"
        )
        .into());
    };
    let mut options = options();
    options.keep_messages = args.log;
    options.until = args.until;
    options.keep_text = true;
    let outcome = crate::run::run(&scenario, program, &options);
    if args.log {
        out::write(format_args!("{}\n", story::story(&outcome)))?;
    }
    if args.events {
        say!("{}", dump(&outcome));
    }
    if let Some(until) = args.until {
        return stopped(until, &outcome);
    }
    for &fault in &outcome.vacuous {
        let fault = &scenario.faults[fault];
        say!("VACUOUS: the fault at '{}' ({}) never fired", fault.at, fault.action);
    }
    let Err(violation) = Judge::new(&scenario, program)?.judge(&outcome) else {
        say!("GONE: the run keeps all promises; it was {}: {}", expected.oracle, expected.message);
        version(expected)?;
        return Ok(ExitCode::FAILURE);
    };
    let found = Failure::of(&outcome, &violation);
    say!("BROKEN: {violation}");
    let until = outcome.detail.delivered_at(violation.event);
    say!(
        "to see what every actor then knew: cargo sim replay {} --until {until}",
        for_shell(&file.to_string())
    );
    if found == *expected {
        say!("the same run, bit for bit: hash {}", found.hash);
        return Ok(ExitCode::SUCCESS);
    }
    let Failure { oracle, place, event, message, hash, version: _ } = expected;
    for (what, now, then) in [
        ("hash", &found.hash, hash),
        ("oracle", &found.oracle, oracle),
        ("place", &found.place, place),
        ("event", &found.event.to_string(), &event.to_string()),
        ("message", &found.message, message),
    ] {
        if now != then {
            say!("DIFFERS: {what} is {now}, it was {then}");
        }
    }
    version(expected)?;
    Ok(ExitCode::FAILURE)
}

/// What the run looks like where it was stopped.
fn stopped(until: u64, outcome: &RunOutcome) -> CliResult {
    if outcome.events < until {
        return Err(format!("the run has {} events: --until cannot be {until}", outcome.events).into());
    }
    for states in &outcome.detail.states {
        out::write(format_args!("{states}\n"))?;
    }
    let last = outcome.detail.text.last().map_or("", String::as_str);
    say!("stopped after event {until} of the run: {last}");
    Ok(ExitCode::SUCCESS)
}

/// Another version may well run differently.
fn version(failure: &Failure) -> Result<(), out::Stop> {
    let own = env!("CARGO_PKG_VERSION");
    if failure.version != own {
        say!("it was written by version {}, this is {own}", failure.version);
    }
    Ok(())
}
