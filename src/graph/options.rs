//! What a job says of options: some describe the job itself, some are the cluster's and other ones
//! for this job. Decides which of them a job may set at all: what several processes must agree on
//! before there is a job is the cluster's alone.

use crate::config::{Configuration, MAX_PARALLELISM, nearest};

use super::{GraphError, NodeKind, StreamGraph};

const DEFAULT_PARALLELISM: &str = "parallelism.default";
const RUNTIME_MODE: &str = "execution.runtime-mode";

/// How the options of the cluster begin that a job may set for itself.
const OF_A_JOB: [&str; 3] = ["execution.batch.adaptive.", "execution.sort-", "restart-strategy."];

/// The options of a job, checked.
#[derive(Debug)]
pub(super) struct JobOptions {
    /// Of operators that say none.
    pub parallelism: Option<u32>,
    /// Options of the cluster.
    pub cluster: Vec<(String, String)>,
}

impl JobOptions {
    pub fn of(graph: &StreamGraph) -> Result<Self, GraphError> {
        let mut options = Self { parallelism: graph.default_parallelism, cluster: Vec::new() };
        let mut config = Configuration::default();
        for (key, value) in &graph.options {
            match key.as_str() {
                DEFAULT_PARALLELISM => {
                    options.parallelism = Some(parse_parallelism(value)?);
                }
                RUNTIME_MODE => check_mode(graph, value)?,
                key if OF_A_JOB.iter().any(|prefix| key.starts_with(prefix)) => {
                    config.set(key, value).map_err(|error| GraphError::Option(error.to_string()))?;
                    options.cluster.push((key.to_owned(), value.clone()));
                }
                key => return Err(GraphError::Option(not_of_a_job(key))),
            }
        }
        Ok(options)
    }
}

fn parse_parallelism(value: &str) -> Result<u32, GraphError> {
    value.parse().ok().filter(|parallelism| (1..=MAX_PARALLELISM).contains(parallelism)).ok_or_else(|| {
        GraphError::Option(format!(
            "option '{DEFAULT_PARALLELISM}': '{value}' is not a whole number from 1 to {MAX_PARALLELISM}, for example '4'"
        ))
    })
}

fn check_mode(graph: &StreamGraph, value: &str) -> Result<(), GraphError> {
    match value {
        // All inputs end, so this is what Flink's AUTOMATIC comes to.
        "BATCH" | "AUTOMATIC" => Ok(()),
        "STREAMING" => {
            let window = graph.nodes.iter().find(|node| matches!(node.kind, NodeKind::Window { .. }));
            Err(window.map_or(GraphError::Streaming, |node| GraphError::WindowInStreaming {
                operator: node.name.clone(),
            }))
        }
        _ => Err(GraphError::Option(format!(
            "option '{RUNTIME_MODE}': '{value}' is not BATCH or AUTOMATIC, for example 'BATCH'"
        ))),
    }
}

fn not_of_a_job(key: &str) -> String {
    if Configuration::OPTIONS.iter().any(|option| option.key == key) {
        return format!(
            "option '{key}' is the cluster's, not a job's; give it to the cluster, for example by --set {key}=…"
        );
    }
    let known = Configuration::OPTIONS.iter().map(|option| option.key);
    let of_a_job = known.filter(|key| OF_A_JOB.iter().any(|prefix| key.starts_with(prefix)));
    let meant = nearest(key, of_a_job.chain([DEFAULT_PARALLELISM, RUNTIME_MODE]));
    let meant = meant.map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
    format!("unknown option '{key}'{meant}; `revenant options` lists all")
}
