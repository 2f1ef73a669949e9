//! The jobs that come with the engine.

use crate::api::Program;

/// All of them.
pub fn registry() -> Program {
    Program::new()
}
