//! Revenant: a batch dataflow engine whose jobs survive the death of their JobManager.
//!
//! The engine implements FLIP-380 (full-window partitions on a non-keyed DataStream) and FLIP-383
//! (a batch job recovers from a JobMaster failure). Every part of it is an [`actor`]: a plain
//! struct that turns one event into effects. ARCHITECTURE.md has the map.

pub mod actor;
pub mod api;
pub mod client;
pub mod config;
pub mod connectors;
pub mod coordinator;
pub mod disk;
mod framed_log;
pub mod graph;
pub mod high_availability;
pub mod ids;
pub mod job_event;
pub mod job_manager;
pub mod jobs;
pub mod message;
pub mod note;
pub mod operators;
pub mod planted;
pub mod probe;
pub mod process;
pub mod runtime;
pub mod scheduler;
pub mod shuffle;
pub mod task;
pub mod task_manager;
mod worker;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
