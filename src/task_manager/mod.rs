//! The TaskManager: it runs the tasks that a JobManager submits, keeps what they produced, and
//! outlives its JobManagers (Flink's TaskExecutor; FLIP-383, "TaskManager"). It decides what happens
//! to tasks and partitions when a leader comes or goes; it never decides what the job needs next.

mod executor;
mod registrations;
mod tasks;
#[cfg(test)]
mod tests;

pub use executor::TaskExecutor;
