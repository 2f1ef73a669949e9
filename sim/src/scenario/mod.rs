//! A scenario: one run, written down completely.
//!
//! It names the job, the cluster, the configuration, the seed of the schedule, the network, the
//! disk, its input files and the faults. It is a plan, not dice: the run only executes it. Unknown keys are refused,
//! and it can be written back as TOML, so that what a search finds can be saved and replayed.

use std::collections::BTreeMap;
use std::time::Duration;

use revenant::config::{Configuration, JobArguments};
use revenant::disk::Volume;
use revenant::ids::ProcessId;
use revenant::planted::PlantedBug;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

mod clock_fault;
mod disk_fault;
mod duration;
mod fault;
mod input;
mod load;
mod options;
mod process_fault;

pub use clock_fault::{ClockError, ClockFault, ClockFaultKind, Drift, Skew};
pub use disk_fault::{DiskFault, DiskFaultKind};
pub use duration::{DurationRange, RestartAfter, Span};
pub use fault::{Action, Fault, Trigger};
pub use input::Input;
pub use load::ScenarioError;
pub use options::{Arguments, Options};
pub use process_fault::{ProcessFault, ProcessFaultKind};

/// What every simulated process can reach.
pub const VOLUMES: [Volume; 5] = [Volume::Local, Volume::Scratch, Volume::Ha, Volume::Output, Volume::Input];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// A bug planted by hand, which the testbed must notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted_bug: Option<PlantedBug>,
    pub job: Job,
    #[serde(default)]
    pub cluster: Cluster,
    #[serde(default)]
    pub config: Options,
    #[serde(default)]
    pub schedule: Schedule,
    #[serde(default)]
    pub network: Network,
    #[serde(default)]
    pub disk: Disk,
    /// By process: clocks that are wrong from the beginning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clock: BTreeMap<String, ClockError>,
    #[serde(default, rename = "input", skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Job {
    pub name: String,
    #[serde(default)]
    pub arguments: Arguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Cluster {
    pub task_managers: u32,
    /// Keep the results, with `shuffle.service = external`.
    pub shuffle_services: u32,
    /// How long a process that died stays down.
    pub restart_after: RestartAfter,
    /// Simulated time after which the run counts as stuck.
    pub time_limit: Span,
    /// Events after which the run counts as stuck: timers of a nanosecond never reach a time limit.
    pub event_limit: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            task_managers: 3,
            shuffle_services: 0,
            restart_after: RestartAfter::After(Duration::from_secs(1)),
            time_limit: Span(Duration::from_mins(20)),
            event_limit: 20_000_000,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Schedule {
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Network {
    pub latency: DurationRange,
    /// What becomes of messages under way when their sender dies.
    pub in_flight_at_crash: InFlight,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    #[default]
    Delivered,
    Lost,
}

impl Default for Network {
    fn default() -> Self {
        let (min, max) = (Duration::from_micros(200), Duration::from_millis(2));
        Self { latency: DurationRange { min, max }, in_flight_at_crash: InFlight::Delivered }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Disk {
    pub latency: DurationRange,
    /// Of syncs of files and directories.
    pub sync_latency: DurationRange,
    pub incomplete_at_crash: Incomplete,
    pub unsynced_at_machine_crash: Unsynced,
}

/// What became of operations under way when their process dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    Done,
    #[default]
    NotDone,
    /// An append is cut at a drawn byte, any other operation is done or not as drawn.
    Torn,
}

/// What becomes of what was not synced when its machine dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsynced {
    #[default]
    Lost,
    Kept,
    /// Files are cut at a drawn byte beyond what was synced, each directory entry is as drawn.
    Torn,
}

impl Default for Disk {
    fn default() -> Self {
        let range = |min, max| DurationRange { min, max };
        Self {
            latency: range(Duration::from_micros(50), Duration::from_micros(500)),
            sync_latency: range(Duration::from_micros(500), Duration::from_millis(5)),
            incomplete_at_crash: Incomplete::default(),
            unsynced_at_machine_crash: Unsynced::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Expect {
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    #[default]
    Finished,
    Failed,
    Canceled,
    Stuck,
}

impl Scenario {
    /// The job with its arguments, sorted by name.
    pub fn job(&self) -> JobArguments {
        let arguments = self.job.arguments.0.iter().map(|(name, value)| (name.clone(), value.clone()));
        JobArguments { name: self.job.name.clone(), arguments: arguments.collect() }
    }

    /// What every process is configured with.
    pub fn configuration(&self) -> Configuration {
        let mut config = self.config.configuration();
        config.job = Some(self.job());
        config.planted_bug = self.planted_bug;
        config
    }

    /// The clock of a process's machine, at the start.
    pub fn clock_of(&self, process: ProcessId) -> Clock {
        let error = self.clock.get(&process.to_string());
        let changes =
            |fault: &Fault| matches!(fault.action, Action::Clock(change) if change.process == process);
        match error {
            Some(error) => Clock::of(*error),
            None if self.faults.iter().any(changes) => Clock::of(ClockError::default()),
            None => Clock::default(),
        }
    }

    /// The processes of the cluster, in the order in which they are started: the JobManager last, so
    /// that whatever is to die together with it is alive.
    pub fn processes(&self) -> impl Iterator<Item = ProcessId> {
        [ProcessId::HighAvailability, ProcessId::Client]
            .into_iter()
            .chain((1..=self.cluster.task_managers).map(ProcessId::TaskManager))
            .chain((1..=self.cluster.shuffle_services).map(ProcessId::ShuffleService))
            .chain([ProcessId::JobManager])
    }

    /// As a TOML file that loads as the same scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every part of a scenario has a TOML form")
    }
}
