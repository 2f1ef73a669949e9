//! The judges of a run. Each oracle is one file that looks at one promise of the protocol; all of
//! them read the same [`History`]. They know the trace, the bytes of the event log and the job
//! graph's shape, and never the engine's scheduler, replay or operators: a judge that shared code
//! with the accused would be wrong together with it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use revenant::actor::Time;
use revenant::api::Program;
use revenant::graph::JobGraph;

use crate::reference::Reference;
use crate::run::{RunOptions, run};
use crate::scenario::Scenario;
use crate::trace::RunOutcome;

mod disturbance;
mod durable;
mod e1_rerun;
mod e2_rerun;
mod equivalence;
mod history;
mod index;
mod l1_termination;
mod l2_reconciling;
mod l3_progress;
mod l4_leftovers;
mod l5_store;
mod l6_cancel;
mod l7_claimed;
mod lineage;
mod log;
mod missed;
mod p1_records;
mod p2_empty;
mod p3_sorted;
mod p4_user_failure;
#[cfg(test)]
mod planted;
mod registry;
mod s10_complete;
mod s11_release;
mod s12_terminal;
mod s13_attempts;
mod s14_clean_start;
mod s15_foreign;
mod s16_state;
mod s1_output;
mod s2_splits;
mod s3_attempts;
mod s4_ranges;
mod s5_stable_decisions;
mod s6_recovered;
mod s7_kept;
mod s8_cut;
mod s9_fencing;
#[cfg(test)]
pub(crate) mod testing;
mod witness;

pub use durable::{FinishClass, Finishes};
pub use history::{History, Patience};
pub(crate) use log::file_of;
pub use registry::page;

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
    /// What was finished at the first of them, or when leadership was taken first.
    pub finishes: Finishes,
}

/// Knows what runs of one scenario's job must have kept to, at any seed and under any fault.
pub struct Judge {
    graph: Arc<JobGraph>,
    reference: Reference,
    patience: Patience,
    /// To see how long the job takes without faults, should that matter.
    scenario: Scenario,
    program: Arc<Program>,
    calm: OnceLock<Duration>,
}

impl Judge {
    /// An error says what is wrong with the job.
    pub fn new(scenario: &Scenario, program: &Arc<Program>) -> Result<Self, String> {
        let job = scenario.job();
        let graph = program.build(&job).map_err(|error| error.to_string())?;
        let reference = Reference::new(&graph, &job, &scenario.configuration(), &scenario.inputs)?;
        let patience = Patience::of(scenario);
        let (scenario, program) = (scenario.clone(), Arc::clone(program));
        Ok(Self { graph, reference, patience, scenario, program, calm: OnceLock::new() })
    }

    /// Judges a run by every oracle. The first broken promise is returned.
    pub fn judge(&self, outcome: &RunOutcome) -> Result<Verdict, Violation> {
        let mut patience = self.patience;
        if l1_termination::since_last_fault(outcome).is_some_and(|(_, took)| took > patience.waits) {
            patience.calm = *self.calm.get_or_init(|| self.calm());
        }
        judge(&self.graph, &self.reference, patience, outcome)
    }

    /// How long the job takes if nothing goes wrong.
    fn calm(&self) -> Duration {
        let mut scenario = self.scenario.clone();
        scenario.faults.clear();
        scenario.network = scenario.network.without_rates();
        scenario.planted_bug = None;
        run(&scenario, &self.program, &RunOptions::default()).end.since(Time(0))
    }
}

/// Judges a run by every oracle. The violation that came first is returned; of several by the same event
/// causes come before effects, so that a re-run that should not be is named before the output that it spoils.
fn judge(
    graph: &JobGraph,
    reference: &Reference,
    patience: Patience,
    outcome: &RunOutcome,
) -> Result<Verdict, Violation> {
    let history = History::new(graph, reference.shape(), patience, outcome);
    registry::first_violation(&history, reference)?;
    Ok(durable::verdict(&history))
}
