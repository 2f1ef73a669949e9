//! The `revenant` program.

use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    revenant::runtime::cli::main(&Arc::new(revenant::jobs::registry()))
}
