//! The deterministic testbed of Revenant: it runs the engine's actors unchanged on a simulated
//! network, clock and disk, kills them where a scenario says so, and records what happened.
//!
//! [`run::run`] executes one [`scenario::Scenario`]; everything else serves it or reads its
//! [`trace::RunOutcome`]. Nothing here decides anything that the engine should decide.

#[cfg(not(madsim))]
compile_error!("build with --cfg madsim; see .cargo/config.toml");

pub mod agenda;
pub mod bisect;
pub mod cli;
pub mod clock;
pub mod digest;
pub mod disk;
pub mod draw;
pub mod dump;
pub mod explore;
pub mod failure;
pub mod generate;
pub mod log;
pub mod network;
pub mod oracle;
pub mod point;
pub mod reference;
pub mod run;
pub mod scenario;
pub mod search;
pub mod shrink;
pub mod story;
pub mod trace;
