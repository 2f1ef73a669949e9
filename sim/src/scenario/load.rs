//! Reading and checking scenario files. Every error names file and line, what is wrong and what
//! would be right. Whether a crash point exists is known only after the run: see
//! [`crate::trace::RunOutcome::vacuous`].

use std::path::Path;
use std::sync::Arc;

use revenant::api::Program;
use revenant::config::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::{Scenario, Trigger};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", .line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct ScenarioError {
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
    pub message: String,
}

impl Scenario {
    /// Reads the file and checks it against the program.
    pub fn load(path: &Path, program: &Arc<Program>) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError {
            file: file.clone(),
            line: None,
            message: format!("cannot be read: {error}"),
        })?;
        let scenario = Self::parse(&file, &text)?;
        scenario.check_text(&file, &text, program)?;
        Ok(scenario)
    }

    /// Reads a scenario from text; `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError {
            file: file.to_owned(),
            line: error.span().map(|span| line_of(text, span.start)),
            message: with_suggestion(error.message()),
        })
    }

    /// Checks the scenario against the program and its parts against each other.
    pub fn check(&self, program: &Arc<Program>) -> Result<(), ScenarioError> {
        self.check_text("scenario", "", program)
    }

    /// As [`Self::check`], for a scenario that was read from `text`.
    pub fn check_text(&self, file: &str, text: &str, program: &Arc<Program>) -> Result<(), ScenarioError> {
        self.check_parts(program).map_err(|(place, message)| ScenarioError {
            file: file.to_owned(),
            line: place.find(text),
            message,
        })
    }

    /// What one part alone cannot know: whether the parts fit together.
    fn check_parts(&self, program: &Arc<Program>) -> Result<(), (Place, String)> {
        if !(1..=1000).contains(&self.cluster.task_managers) {
            let message = format!("task-managers = {} is not from 1 to 1000", self.cluster.task_managers);
            return Err((Place::TaskManagers, message));
        }
        program.build(&self.job()).map_err(|error| (Place::Job, error.to_string()))?;
        for (index, fault) in self.faults.iter().enumerate() {
            let exists = |process| {
                if self.processes().any(|known| known == process) {
                    return Ok(());
                }
                let last = self.cluster.task_managers;
                Err(format!(
                    "there is no process {process}: the cluster has task-manager-1 to task-manager-{last}"
                ))
            };
            exists(fault.action.process()).map_err(|message| (Place::FaultAction(index), message))?;
            if let Some(process) = fault.at.process() {
                exists(process).map_err(|message| (Place::FaultTrigger(index), message))?;
            }
            if let Trigger::Time(time) = fault.at
                && time.since(revenant::actor::Time(0)) > self.cluster.time_limit.0
            {
                let message =
                    format!("the run ends after time-limit = '{}', before this", self.cluster.time_limit);
                return Err((Place::FaultTrigger(index), message));
            }
        }
        Ok(())
    }
}

/// A part of the file that a check found wrong.
enum Place {
    Job,
    TaskManagers,
    FaultTrigger(usize),
    FaultAction(usize),
}

/// The same file, read only for where things are.
#[derive(Deserialize)]
struct Layout {
    job: JobLayout,
    cluster: Option<ClusterLayout>,
    #[serde(default)]
    fault: Vec<FaultLayout>,
}

#[derive(Deserialize)]
struct JobLayout {
    name: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterLayout {
    task_managers: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
struct FaultLayout {
    at: Spanned<String>,
    r#do: Spanned<String>,
}

impl Place {
    fn find(&self, text: &str) -> Option<usize> {
        let layout: Layout = toml::from_str(text).ok()?;
        let span = match self {
            Self::Job => layout.job.name.span(),
            Self::TaskManagers => layout.cluster?.task_managers?.span(),
            Self::FaultTrigger(index) => layout.fault.get(*index)?.at.span(),
            Self::FaultAction(index) => layout.fault.get(*index)?.r#do.span(),
        };
        Some(line_of(text, span.start))
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// "unknown field `latncy`, expected one of `latency`, …" gets "did you mean".
fn with_suggestion(message: &str) -> String {
    let message = message.trim_end();
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(word) = quoted.next() else { return message.to_owned() };
    match nearest(word, quoted) {
        Some(near) if message.starts_with("unknown ") => format!("{message}; did you mean '{near}'?"),
        _ => message.to_owned(),
    }
}
