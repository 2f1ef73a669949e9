//! The finished result partitions of a TaskManager and the streams that read them (Flink's
//! ResultPartitionManager and its credit-based Netty server). It decides what is read from disk and
//! when a message goes out; it never decides how long a partition is kept, and never serves one that
//! is not complete.

mod partition;
mod service;
mod stream;
#[cfg(test)]
mod tests;

pub use service::ShuffleService;
