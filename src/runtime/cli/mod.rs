//! The `revenant` program: what it can be asked, and how it answers wrong usage (exit code 2), a
//! failed job (1) and success (0). It checks everything before it starts anything.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::actor::ExitStatus;
use crate::api::Program;
use crate::config::Configuration;

mod arguments;
mod local;
mod member;
mod progress;
mod signals;

use arguments::{Cli, Command};

/// How a command ended.
enum End {
    Success,
    /// By the signal of this number.
    Interrupted(u8),
    Failed(String),
    /// The command was not right as it was given; nothing was begun.
    Usage(String),
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Success => Self::Success,
            ExitStatus::Failure(reason) => Self::Failed(reason),
            ExitStatus::Canceled => Self::Failed("the job was cancelled".to_owned()),
        }
    }
}

/// Runs the command line of this process.
pub fn main(program: &Arc<Program>) -> ExitCode {
    let cli = Cli::parse();
    let quiet = matches!(cli.command, Command::Local(_));
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(if quiet { "warn" } else { "info" }));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        // A log that cannot be written must not end the process.
        .log_internal_errors(false)
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return answer(End::Failed(format!("the system gives no threads: {error}"))),
    };
    let end = runtime.block_on(run(program, cli.command));
    runtime.shutdown_background();
    answer(end)
}

async fn run(program: &Arc<Program>, command: Command) -> End {
    signals::survive_file_size_limits();
    let end = match command {
        Command::Local(arguments) => local::run(program, arguments).await,
        Command::HighAvailability(arguments) => member::high_availability(arguments).await,
        Command::JobManager(arguments) => member::job_manager(program, arguments).await,
        Command::TaskManager(arguments) => member::task_manager(program, arguments).await,
        Command::ShuffleService(arguments) => member::shuffle_service(program, arguments).await,
        Command::Cancel(arguments) => member::cancel(arguments).await,
        Command::Options => Ok(print(Configuration::OPTIONS.iter().map(|option| {
            let doc = option.doc.trim();
            format!("{} (default {})\n    {doc} Takes {}.", option.key, option.default, option.expected)
        }))),
        Command::Jobs => Ok(print(program.docs().map(|(name, doc)| describe(program, name, doc)))),
    };
    end.unwrap_or_else(End::Usage)
}

/// A job with its arguments, for people.
fn describe(program: &Program, name: &str, doc: &str) -> String {
    let arguments = program.arguments(name).unwrap_or_default().into_iter().map(|argument| {
        let default = argument.default.map_or_else(String::new, |default| format!(" (default {default})"));
        format!("\n    --arg {}=…{default}: {}", argument.name, argument.expected)
    });
    format!("{name}\n    {doc}{}", arguments.collect::<String>())
}

/// Prints lines until nobody reads them any more.
fn print(lines: impl Iterator<Item = String>) -> End {
    let mut stdout = io::stdout().lock();
    for line in lines {
        if writeln!(stdout, "{line}").is_err() {
            break;
        }
    }
    End::Success
}

fn answer(end: End) -> ExitCode {
    match end {
        End::Success => ExitCode::SUCCESS,
        // As shells report it.
        End::Interrupted(number) => ExitCode::from(128 + number),
        End::Failed(reason) => {
            complain(&reason);
            ExitCode::FAILURE
        }
        End::Usage(reason) => {
            complain(&reason);
            ExitCode::from(2)
        }
    }
}

/// The terminal may be gone by now.
fn complain(reason: &str) {
    let _ = writeln!(io::stderr(), "revenant: {reason}");
}
