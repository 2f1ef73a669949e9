//! The jobs that this program can run.

use crate::api::Program;

/// The registry of the built-in jobs.
pub fn program() -> Program {
    Program::new([])
}
