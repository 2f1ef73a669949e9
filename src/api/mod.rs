//! What a job author writes.

mod program;
pub use program::{JobError, Program};
