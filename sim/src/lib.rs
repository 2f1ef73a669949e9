//! The deterministic testbed of Revenant.

#[cfg(not(madsim))]
compile_error!("build with --cfg madsim; see .cargo/config.toml");

pub mod oracle;
pub mod reference;
pub mod trace;
