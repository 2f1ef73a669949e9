//! How a job ended that ran on a mini cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::ids::ProcessId;
use crate::message::Accumulators;

use super::super::directories::WorkingDirectory;
use super::super::results::{self, ResultError};

/// Why there is no result.
///
/// ```
/// use revenant::runtime::{JobExecutionError, run};
///
/// let failed = run(|env| {
///     let numbers = env.from_collection("numbers", [1, 0]);
///     numbers.map(|n| 6 / n).name("Divide").collect("parts");
///     Ok(())
/// });
/// let Err(JobExecutionError::Failed { reason, .. }) = failed else { panic!("it divided by zero") };
/// assert!(reason.contains("(subtask 0, attempt v0.0.e1a1): operator 'Divide': panicked:"), "{reason}");
///
/// let refused = run(|_| Ok(()));
/// let Err(JobExecutionError::Refused(reason)) = refused else { panic!("there is nothing to run") };
/// assert!(reason.contains("it has no sink"), "{reason}");
/// ```
#[derive(thiserror::Error)]
pub enum JobExecutionError {
    /// Nothing was started: the job, an option or a directory is not right.
    #[error("{0}")]
    Refused(String),
    /// The job failed more often than its restart strategy allows. The reason names operator, subtask
    /// and attempt.
    #[error("job '{job}' failed: {reason}")]
    Failed { job: String, reason: String },
    #[error("job '{job}' was cancelled")]
    Canceled { job: String },
    /// Not the job, but the cluster failed.
    #[error("the cluster that ran job '{job}' failed: {reason}")]
    Cluster { job: String, reason: String },
    #[error(transparent)]
    Result(#[from] ResultError),
}

/// The same words as for people: a `main` that returns the error shows it in this way.
impl fmt::Debug for JobExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a job that finished gives back (Flink's class of this name). A temporary output directory goes
/// with it.
///
/// ```
/// let result = revenant::runtime::run(|env| {
///     let numbers = env.from_collection("numbers", [2, 3]);
///     numbers.collect("numbers");
///     numbers.print();
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("numbers")?, [2, 3]);
/// assert_eq!(result.printed(), ["2", "3"]);
/// assert!(result.accumulators().is_empty() && result.restarts().is_empty());
/// assert!(result.files()?.iter().all(|file| result.output().join(file).exists()));
/// # Ok::<(), revenant::runtime::JobExecutionError>(())
/// ```
pub struct JobExecutionResult {
    job: String,
    net_runtime: Duration,
    accumulators: Accumulators,
    restarts: BTreeMap<ProcessId, u32>,
    printed: Vec<String>,
    output: WorkingDirectory,
}

impl JobExecutionResult {
    pub(super) fn new(
        job: String,
        net_runtime: Duration,
        accumulators: Accumulators,
        restarts: BTreeMap<ProcessId, u32>,
        output: WorkingDirectory,
    ) -> Result<Self, ResultError> {
        let mut printed = Vec::new();
        results::printed(output.path(), |line| printed.push(line))?;
        Ok(Self { job, net_runtime, accumulators, restarts, printed, output })
    }

    pub fn job(&self) -> &str {
        &self.job
    }

    /// From the first process's start to the last one's end.
    pub fn net_runtime(&self) -> Duration {
        self.net_runtime
    }

    /// The records collected under `name`, in the order of the subtasks. `T` is the type that was
    /// collected.
    pub fn collected<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, ResultError> {
        results::collected(self.output(), name)
    }

    /// All printed lines: of each print sink in the order in which the job describes them, those with a
    /// name behind and sorted by it; of each subtask.
    pub fn printed(&self) -> &[String] {
        &self.printed
    }

    /// The job's sums, by name.
    pub fn accumulators(&self) -> &Accumulators {
        &self.accumulators
    }

    /// The processes that were started again, and how often.
    pub fn restarts(&self) -> &BTreeMap<ProcessId, u32> {
        &self.restarts
    }

    /// The output directory.
    pub fn output(&self) -> &Path {
        self.output.path()
    }

    /// The files in the output directory, relative to it and sorted.
    pub fn files(&self) -> Result<Vec<PathBuf>, ResultError> {
        results::files(self.output())
    }
}
