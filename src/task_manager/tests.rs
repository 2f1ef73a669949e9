//! A TaskExecutor driven by hand.

mod bench;
mod leaders;
mod partitions;
mod tasks;
