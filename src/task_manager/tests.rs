//! A TaskExecutor driven by hand.

mod bench;
mod external;
mod leaders;
mod partitions;
mod tasks;
