//! The finished result partitions of a TaskManager or of a shuffle service, and the streams that
//! read them (Flink's ResultPartitionManager and its credit-based Netty server). It decides what is
//! read from disk and when a message goes out; only the worker of a shuffle service decides how long
//! a partition is kept, and what is not complete is never served.

mod partition;
mod pushed;
mod service;
mod stream;
#[cfg(test)]
mod tests;
mod worker;

pub use service::ShuffleService;
pub use worker::ShuffleWorker;
