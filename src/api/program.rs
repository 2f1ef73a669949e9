//! The registry of jobs that all processes of a cluster share: a job is found by its name and built
//! from its arguments, and building never runs anything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{JobArguments, nearest};
use crate::graph::JobGraph;

use super::{ArgumentInfo, JobParameters, StreamExecutionEnvironment};

/// What is wrong with a job or its arguments, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JobError(pub String);

/// Describes a job by its arguments and nothing else, so that every process comes to the same graph.
pub type JobFunction =
    dyn Fn(&mut StreamExecutionEnvironment, &JobParameters) -> Result<(), JobError> + Send + Sync;

/// An explicit registry of jobs. Each graph is built once per job and arguments and then shared.
///
/// ```
/// use revenant::api::{JobError, Program};
/// use revenant::config::JobArguments;
///
/// let program = Program::new().register("count", "Counts.", |env, job| {
///     let to = job.get("to", 10, "a whole number", |_: &i32| true)?;
///     env.from_collection("numbers", 0..to).collect("numbers");
///     Ok(())
/// });
/// assert_eq!(program.names().collect::<Vec<_>>(), ["count"]);
/// assert_eq!(program.docs().collect::<Vec<_>>(), [("count", "Counts.")]);
/// assert_eq!(program.arguments("count")?[0].default.as_deref(), Some("10"));
/// let graph = program.build(&JobArguments::new("count").with("to", 3))?;
/// assert_eq!(graph.vertices[0].name, "Source: numbers -> Sink: collect numbers");
/// let error = program.build(&JobArguments::new("cont")).unwrap_err().to_string();
/// assert!(error.contains("did you mean 'count'?"), "{error}");
/// # Ok::<(), JobError>(())
/// ```
#[derive(Default)]
pub struct Program {
    jobs: BTreeMap<&'static str, Job>,
    built: Mutex<BTreeMap<JobKey, Arc<JobGraph>>>,
}

type JobKey = (String, Vec<(String, String)>);

struct Job {
    doc: &'static str,
    function: Box<JobFunction>,
}

impl Program {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a job. `doc` says in a sentence what it does. What a closure holds must be the same in
    /// every process of the cluster, for every process builds the job for itself.
    ///
    /// # Panics
    /// If there is a job of this name already: which of them would run?
    #[must_use]
    pub fn register(
        mut self,
        name: &'static str,
        doc: &'static str,
        function: impl Fn(&mut StreamExecutionEnvironment, &JobParameters) -> Result<(), JobError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let earlier = self.jobs.insert(name, Job { doc, function: Box::new(function) });
        assert!(earlier.is_none(), "two jobs are named '{name}'");
        self
    }

    /// The names of all jobs, sorted, each with what it does.
    pub fn docs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.jobs.iter().map(|(name, job)| (*name, job.doc))
    }

    /// The names of all jobs, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.jobs.keys().copied()
    }

    /// The arguments that a job takes, in the order in which it asks for them.
    pub fn arguments(&self, name: &str) -> Result<Vec<ArgumentInfo>, JobError> {
        let parameters = JobParameters::default();
        (self.job(name)?.function)(&mut StreamExecutionEnvironment::new(), &parameters)?;
        Ok(parameters.into_asked())
    }

    /// The graph of the named job.
    pub fn build(&self, job: &JobArguments) -> Result<Arc<JobGraph>, JobError> {
        let key = (job.name.clone(), job.arguments.clone());
        if let Some(graph) = self.built().get(&key) {
            return Ok(Arc::clone(graph));
        }
        // Not under the lock: a job function may panic, and must not hold up others.
        let graph = Arc::new(self.describe(job)?);
        Ok(Arc::clone(self.built().entry(key).or_insert(graph)))
    }

    fn describe(&self, job: &JobArguments) -> Result<JobGraph, JobError> {
        let function = &self.job(&job.name)?.function;
        let of_job = |reason: String| JobError(format!("job '{}': {reason}", job.name));
        let mut environment = StreamExecutionEnvironment::new();
        let parameters = JobParameters::new(job.arguments.clone());
        function(&mut environment, &parameters).map_err(|error| of_job(error.0))?;
        parameters.refuse_unknown().map_err(|error| of_job(error.0))?;
        environment.job_graph(&job.name).map_err(|error| of_job(error.to_string()))
    }

    fn job(&self, name: &str) -> Result<&Job, JobError> {
        self.jobs.get(name).ok_or_else(|| {
            let meant = nearest(name, self.names())
                .map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
            let known: Vec<&str> = self.names().collect();
            let has = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            JobError(format!("there is no job '{name}'{meant}; this program has: {has}"))
        })
    }

    fn built(&self) -> MutexGuard<'_, BTreeMap<JobKey, Arc<JobGraph>>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectors::{CsvSink, NumberSequenceSource};

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    struct Row {
        number: i64,
    }

    fn count(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
        let to = job.get("to", 10, "a whole number from 1", |&to: &i64| to >= 1)?;
        let splits = job.get_optional("splits", "a whole number from 1", |&splits: &u32| splits >= 1)?;
        env.from_source("numbers", NumberSequenceSource::new(0, to, splits.unwrap_or(2)))
            .map(|number| Row { number })
            .sink_to(CsvSink::new("count"));
        Ok(())
    }

    fn program() -> Program {
        Program::new().register("count", "Counts.", count).register("nothing", "Has no sink.", |_, _| Ok(()))
    }

    fn arguments(name: &str, arguments: &[(&str, &str)]) -> JobArguments {
        JobArguments {
            name: name.to_owned(),
            arguments: arguments
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    fn error(name: &str, given: &[(&str, &str)]) -> String {
        program().build(&arguments(name, given)).unwrap_err().to_string()
    }

    #[test]
    fn a_graph_is_built_once_for_the_same_arguments() {
        let program = program();
        let first = program.build(&arguments("count", &[("to", "20")])).unwrap();
        let second = program.build(&arguments("count", &[("to", "20")])).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let other = program.build(&arguments("count", &[("to", "21")])).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(other.vertices[0].source.as_ref().unwrap().splits().len(), 2);
    }

    #[test]
    fn an_unknown_job_is_refused_with_the_one_that_was_meant() {
        assert_eq!(
            error("cont", &[]),
            "there is no job 'cont', did you mean 'count'?; this program has: count, nothing"
        );
    }

    #[test]
    fn an_unknown_argument_is_refused_with_the_one_that_was_meant() {
        assert_eq!(
            error("count", &[("split", "1")]),
            "job 'count': unknown argument 'split', did you mean 'splits'?; the job takes: to, splits"
        );
        assert_eq!(
            error("count", &[("colour", "red")]),
            "job 'count': unknown argument 'colour'; the job takes: to, splits"
        );
        assert_eq!(error("count", &[("to", "1"), ("to", "2")]), "job 'count': argument 'to' is given twice");
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_would_be_right() {
        for value in ["0", "-3", "many", ""] {
            assert_eq!(
                error("count", &[("to", value)]),
                format!(
                    "job 'count': argument 'to': '{value}' is not a whole number from 1, for example '10'"
                )
            );
        }
        assert_eq!(
            error("count", &[("splits", "0")]),
            "job 'count': argument 'splits': '0' is not a whole number from 1"
        );
    }

    #[test]
    fn a_job_without_a_sink_is_refused() {
        assert_eq!(
            error("nothing", &[]),
            "job 'nothing': it has no sink, so it would do nothing; end a stream with sink_to"
        );
    }

    #[test]
    fn a_closure_is_a_job_with_what_it_holds() {
        let splits = 3;
        let program = Program::new().register("held", "Counts.", move |env, _| {
            let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 10, splits));
            numbers.map(|number| Row { number }).sink_to(CsvSink::new("count"));
            Ok(())
        });
        let graph = program.build(&arguments("held", &[])).unwrap();
        assert_eq!(graph.vertices[0].source.as_ref().unwrap().splits().len(), 3);
    }

    #[test]
    fn a_program_lists_its_jobs_and_their_arguments() {
        let program = program();
        assert_eq!(program.docs().collect::<Vec<_>>(), [("count", "Counts."), ("nothing", "Has no sink.")]);
        let arguments = program.arguments("count").unwrap();
        assert_eq!(arguments[0].default.as_deref(), Some("10"));
        assert_eq!((arguments[1].name.as_str(), &arguments[1].default), ("splits", &None));
        assert!(program.arguments("none").is_err());
    }
}
