//! The registry of jobs that all processes of a cluster share: a job is found by its name and built
//! from its arguments, and building never runs anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::config::JobArguments;
use crate::graph::JobGraph;

/// What is wrong with a job or its arguments, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JobError(pub String);

/// Builds a job's graph from its arguments.
pub type JobFunction = fn(&JobArguments) -> Result<JobGraph, JobError>;

/// An explicit registry of jobs. Each graph is built once per job and arguments and then shared.
pub struct Program {
    jobs: BTreeMap<&'static str, JobFunction>,
    built: Mutex<BTreeMap<(String, Vec<(String, String)>), Arc<JobGraph>>>,
}

impl Program {
    /// A program that has these jobs.
    pub fn new(jobs: impl IntoIterator<Item = (&'static str, JobFunction)>) -> Self {
        Self { jobs: jobs.into_iter().collect(), built: Mutex::new(BTreeMap::new()) }
    }

    /// The graph of the named job.
    pub fn build(&self, job: &JobArguments) -> Result<Arc<JobGraph>, JobError> {
        let key = (job.name.clone(), job.arguments.clone());
        if let Some(graph) = self.built.lock().expect("no panic under this lock").get(&key) {
            return Ok(Arc::clone(graph));
        }
        let function = self.jobs.get(job.name.as_str()).ok_or_else(|| {
            let known: Vec<&str> = self.jobs.keys().copied().collect();
            JobError(format!("there is no job '{}'; this program has: {}", job.name, known.join(", ")))
        })?;
        let graph = Arc::new(function(job)?);
        self.built.lock().expect("no panic under this lock").insert(key, Arc::clone(&graph));
        Ok(graph)
    }
}
