//! What the processes that keep partitions have in common, TaskManagers and shuffle services: how
//! they find and keep their JobManager, which partitions they keep for whom, and how files that
//! nobody needs are deleted. Nothing here knows of tasks or readers.

mod connection;
mod files;
mod partitions;

pub use connection::{Connection, HEARTBEAT, RETRY};
pub use files::{Files, Place};
pub use partitions::{RETENTION, TrackedPartitions};
