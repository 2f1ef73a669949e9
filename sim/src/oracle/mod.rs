//! The judges of a run. Each oracle is one file that looks at one promise of the protocol; all of
//! them read the same [`History`]. They know the trace, the bytes of the event log and the job
//! graph's shape, and never the engine's scheduler, replay or operators: a judge that shared code
//! with the accused would be wrong together with it.

use std::fmt;
use std::sync::Arc;

use revenant::actor::Time;
use revenant::api::Program;
use revenant::graph::JobGraph;

use crate::reference::Reference;
use crate::scenario::{Profile, Scenario};
use crate::trace::{RunEnd, RunOutcome};

mod durable;
mod e1_rerun;
mod e2_rerun;
mod equivalence;
mod history;
mod index;
mod l1_termination;
mod l4_leftovers;
mod l6_cancel;
mod log;
mod s11_release;
mod s13_attempts;
mod s1_output;
mod s2_splits;
mod s3_attempts;
mod s4_ranges;
mod s5_stable_decisions;
mod s7_kept;
mod s8_cut;
mod s9_fencing;
#[cfg(test)]
mod testing;
mod witness;

pub use durable::{FinishClass, Finishes};
pub use history::{History, Patience};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the oracle, as in `S11`.
    pub oracle: &'static str,
    pub at: Time,
    /// Index into the trace.
    pub event: usize,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} (trace event {}): {}", self.oracle, self.at, self.event, self.message)
    }
}

impl std::error::Error for Violation {}

/// What a run that kept all promises amounts to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Task starts beyond the first of each subtask.
    pub rerun: u32,
    /// Finishes that new leaders had to keep, and kept: durable, with partitions that were alive.
    pub kept: u32,
    /// Crashes of the JobManager that took effect.
    pub crashes: u32,
    /// What was finished at the first of them.
    pub finishes: Finishes,
}

/// Knows what runs of one scenario's job must have kept to, at any seed and under any fault.
pub struct Judge {
    graph: Arc<JobGraph>,
    reference: Reference,
    patience: Patience,
    profile: Profile,
}

impl Judge {
    /// An error says what is wrong with the job.
    pub fn new(scenario: &Scenario, program: &Program) -> Result<Self, String> {
        let job = scenario.job();
        let graph = program.build(&job).map_err(|error| error.to_string())?;
        let reference = Reference::new(&graph, &job, &scenario.configuration(), &scenario.inputs)?;
        Ok(Self { graph, reference, patience: Patience::of(scenario), profile: scenario.expect.profile })
    }

    /// Judges a run by every oracle. The first broken promise is returned.
    pub fn judge(&self, outcome: &RunOutcome) -> Result<Verdict, Violation> {
        judge(&self.graph, &self.reference, self.patience, self.profile, outcome)
    }
}

/// Judges a run by every oracle. The first broken promise is returned: causes come before effects,
/// so that a re-run that should not be is named before the output that it spoils. Where nothing is made
/// good, only what must never happen is judged: no L is.
fn judge(
    graph: &JobGraph,
    reference: &Reference,
    patience: Patience,
    profile: Profile,
    outcome: &RunOutcome,
) -> Result<Verdict, Violation> {
    let history = History::new(graph, reference.shape(), patience, outcome);
    s9_fencing::check(&history)?;
    s13_attempts::check(&history)?;
    s4_ranges::check(&history)?;
    s5_stable_decisions::check(&history)?;
    s7_kept::check(&history)?;
    s8_cut::check(&history)?;
    s11_release::check(&history)?;
    e1_rerun::check(&history)?;
    e2_rerun::check(&history)?;
    l1_termination::check_panics(&history)?;
    if profile == Profile::Recoverable {
        l6_cancel::check(&history)?;
        l1_termination::check(&history)?;
    }
    s2_splits::check(&history)?;
    s3_attempts::check(&history)?;
    match (outcome.ended == RunEnd::Finished, profile) {
        (true, Profile::Recoverable) if !l4_leftovers::may_stay(&history) => {
            s1_output::check(&history, reference)?;
        }
        (true, _) => s1_output::check_committed(&history, reference)?,
        (false, _) => s1_output::check_unfinished(&history, reference)?,
    }
    if profile == Profile::Recoverable {
        l4_leftovers::check(&history)?;
    }
    Ok(durable::verdict(&history))
}
