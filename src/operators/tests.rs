//! Whole jobs run by hand: real task actors on a disk in memory, one vertex after the other.

mod chains;
mod cluster;
mod exchanges;
mod failures;
mod flink_values;
mod keyed;
mod rich;
mod sorts;
mod windows;

use serde::{Deserialize, Serialize};

pub use cluster::{Cluster, Outcome};

/// A row for tests: a number and a text that says where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub number: i64,
    pub text: String,
}

pub fn row(number: i64, text: impl std::fmt::Display) -> Row {
    Row { number, text: text.to_string() }
}
