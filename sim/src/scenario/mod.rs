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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::failure::Failure;
use crate::trace::RunEnd;

mod clock_fault;
mod disk_fault;
mod duration;
mod fault;
mod forms;
mod ha_fault;
mod input;
mod load;
mod network_check;
mod network_fault;
mod options;
mod process_fault;
mod rate;
mod schema;
#[cfg(test)]
mod shown;

pub use clock_fault::{ClockError, ClockFault, ClockFaultKind, Drift, Skew};
pub use disk_fault::{DiskFault, DiskFaultKind, OPERATIONS, PURPOSES};
pub use duration::{DurationRange, RestartAfter, Span};
pub use fault::{Action, Fault, Trigger};
pub use forms::{Form, TRIGGERS, actions};
pub use ha_fault::HaFault;
pub use input::Input;
pub use load::ScenarioError;
pub use network_fault::{Flight, MessageFault, MessageTrigger, NetworkFault, Route};
pub use options::{Arguments, Options};
pub use process_fault::{ProcessFault, ProcessFaultKind};
pub use rate::Rate;
pub use schema::{page, schema};

/// What every simulated process can reach.
pub const VOLUMES: [Volume; 5] = [Volume::Local, Volume::Scratch, Volume::Ha, Volume::Output, Volume::Input];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// A bug planted by hand, which the testbed must notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub planted_bug: Option<PlantedBug>,
    /// What runs: a job of the registry, as `cargo run -- jobs` lists them.
    pub job: Job,
    /// The processes.
    #[serde(default)]
    pub cluster: Cluster,
    /// Options of the engine by their names, of every process; `cargo run -- options` lists them.
    #[serde(default)]
    pub config: Options,
    /// What is left to chance.
    #[serde(default)]
    pub schedule: Schedule,
    /// How messages travel.
    #[serde(default)]
    pub network: Network,
    /// How disks work, and what crashes leave on them.
    #[serde(default)]
    pub disk: Disk,
    /// By process, as in `[clock.task-manager-1]`: clocks that are wrong from the beginning.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clock: BTreeMap<String, ClockError>,
    /// A file on the input volume before anything starts; there may be several.
    #[serde(default, rename = "input", skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Something that goes wrong, or is healed; there may be several.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// How it should end.
    #[serde(default)]
    pub expect: Expect,
    /// Only in a file that a search wrote: what the run showed that broke a promise. `cargo sim replay` compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Job {
    /// Its name in the registry.
    pub name: String,
    /// Its arguments by their names.
    #[serde(default)]
    pub arguments: Arguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Cluster {
    /// How many there are, from 1 to 9. One leads, the others stand by.
    pub job_managers: u32,
    /// How many there are, from 1.
    pub task_managers: u32,
    /// How many there are. They keep the results, with `shuffle.service = external`.
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
            job_managers: 1,
            task_managers: 3,
            shuffle_services: 0,
            restart_after: RestartAfter::After(Duration::from_secs(1)),
            time_limit: Span(Duration::from_mins(20)),
            event_limit: 20_000_000,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Schedule {
    /// From which everything that is drawn follows: two runs of a scenario are the same.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Network {
    /// What a message between two processes takes; each is drawn.
    pub latency: DurationRange,
    /// What becomes of messages under way when their sender dies.
    pub in_flight_at_crash: InFlight,
    /// How many of the messages between processes are lost.
    #[serde(skip_serializing_if = "Rate::is_never")]
    pub drop_rate: Rate,
    /// How many arrive twice.
    #[serde(skip_serializing_if = "Rate::is_never")]
    pub duplicate_rate: Rate,
    /// How much later they arrive again; each is drawn.
    #[serde(skip_serializing_if = "is_late")]
    #[schemars(extend("default" = late()))]
    pub duplicate_after: DurationRange,
    /// How many are late, and with them all that follows on their connection.
    #[serde(skip_serializing_if = "Rate::is_never")]
    pub delay_rate: Rate,
    /// How late they are; each is drawn.
    #[serde(skip_serializing_if = "is_late")]
    #[schemars(extend("default" = late()))]
    pub delay_by: DurationRange,
    /// How many are late alone, so that what follows them arrives before them.
    #[serde(skip_serializing_if = "Rate::is_never")]
    pub overtake_rate: Rate,
    /// How late they are; each is drawn.
    #[serde(skip_serializing_if = "is_late")]
    #[schemars(extend("default" = late()))]
    pub overtake_by: DurationRange,
    /// Simulated time from which on no rate strikes any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates_until: Option<Span>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// They arrive.
    #[default]
    Delivered,
    /// They are gone.
    Lost,
}

impl Network {
    /// The same network, in which nothing befalls messages.
    pub fn without_rates(&self) -> Self {
        let Self { latency, in_flight_at_crash, .. } = *self;
        Self { latency, in_flight_at_crash, ..Self::default() }
    }

    /// Whether anything befalls messages by rate.
    pub fn has_rates(&self) -> bool {
        let rates = [self.drop_rate, self.duplicate_rate, self.delay_rate, self.overtake_rate];
        !rates.iter().all(Rate::is_never)
    }
}

/// How late messages are that a rate strikes, if nothing else is said.
const fn late() -> DurationRange {
    DurationRange { min: Duration::from_millis(1), max: Duration::from_secs(1) }
}

fn is_late(range: &DurationRange) -> bool {
    *range == late()
}

impl Default for Network {
    fn default() -> Self {
        let (min, max) = (Duration::from_micros(200), Duration::from_millis(2));
        Self {
            latency: DurationRange { min, max },
            in_flight_at_crash: InFlight::Delivered,
            drop_rate: Rate::default(),
            duplicate_rate: Rate::default(),
            duplicate_after: late(),
            delay_rate: Rate::default(),
            delay_by: late(),
            overtake_rate: Rate::default(),
            overtake_by: late(),
            rates_until: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Disk {
    /// What an operation takes; each is drawn.
    pub latency: DurationRange,
    /// What a sync of a file or directory takes.
    pub sync_latency: DurationRange,
    /// What becomes of operations under way when their process dies.
    pub incomplete_at_crash: Incomplete,
    /// What becomes of what was not synced when its machine dies.
    pub unsynced_at_machine_crash: Unsynced,
    /// The process on whose machine the shared volumes lie: its crash takes what was not synced there,
    /// too. Without it they die with no machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_volumes_on: Option<String>,
}

/// What became of operations under way when their process dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// They are done.
    Done,
    /// They never happened.
    #[default]
    NotDone,
    /// An append is cut at a drawn byte, any other operation is done or not as drawn.
    Torn,
    /// As `torn`, but an append is cut where a sector of 512 bytes ends.
    Sector,
}

impl Incomplete {
    pub const ALL: [Self; 4] = [Self::Done, Self::NotDone, Self::Torn, Self::Sector];
}

/// What becomes of what was not synced when its machine dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unsynced {
    /// All of it is gone.
    #[default]
    Lost,
    /// All of it is there.
    Kept,
    /// Files are cut at a drawn byte beyond what was synced, each directory entry is as drawn.
    Torn,
    /// As `torn`, but files are cut where a drawn append ended.
    Record,
    /// As `torn`, but files are cut where a sector of 512 bytes ends.
    Sector,
    /// Files have their length, but from a drawn byte beyond what was synced they hold zeros; each
    /// directory entry is as drawn.
    Zeros,
    /// Directory entries are there, as of renames and new files, but no byte that was not synced.
    NamesWithoutData,
    /// Bytes are there, but no directory entry that was not synced: new files and new names are gone.
    DataWithoutNames,
    /// Of each file and each directory entry, any of these as drawn.
    Any,
}

impl Unsynced {
    /// `any`, which stands for the others, is the last.
    pub const ALL: [Self; 9] = [
        Self::Lost,
        Self::Kept,
        Self::Torn,
        Self::Record,
        Self::Sector,
        Self::Zeros,
        Self::NamesWithoutData,
        Self::DataWithoutNames,
        Self::Any,
    ];
}

impl Default for Disk {
    fn default() -> Self {
        let range = |min, max| DurationRange { min, max };
        Self {
            latency: range(Duration::from_micros(50), Duration::from_micros(500)),
            sync_latency: range(Duration::from_micros(500), Duration::from_millis(5)),
            incomplete_at_crash: Incomplete::default(),
            unsynced_at_machine_crash: Unsynced::default(),
            shared_volumes_on: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Expect {
    /// What the client sees. Of a hostile scenario it may be anything.
    pub outcome: Outcome,
    /// Whether all that breaks is made good.
    pub profile: Profile,
}

impl Expect {
    /// Whether a run may end in this way.
    pub const fn is_met(&self, ended: &RunEnd) -> bool {
        matches!(self.profile, Profile::Hostile)
            || matches!(
                (ended, self.outcome),
                (RunEnd::Finished, Outcome::Finished)
                    | (RunEnd::Failed { .. }, Outcome::Failed)
                    | (RunEnd::Canceled, Outcome::Canceled)
                    | (RunEnd::Stuck { .. }, Outcome::Stuck)
            )
    }
}

/// What faults leave of the cluster, and with it what is promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Every fault is healed, and as much survives as the job needs: it ends as expected.
    #[default]
    Recoverable,
    /// Nothing is made good: the job may end in any way, or never, but not with wrong output.
    Hostile,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The job is finished.
    #[default]
    Finished,
    /// The job failed.
    Failed,
    /// The job was cancelled.
    Canceled,
    /// Nothing, until the time limit.
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

    /// The processes of the cluster, in the order in which they are started: the JobManagers last, so
    /// that whatever is to die together with them is alive.
    pub fn processes(&self) -> impl Iterator<Item = ProcessId> {
        [ProcessId::HighAvailability, ProcessId::Client]
            .into_iter()
            .chain((1..=self.cluster.task_managers).map(ProcessId::TaskManager))
            .chain((1..=self.cluster.shuffle_services).map(ProcessId::ShuffleService))
            .chain((1..=self.cluster.job_managers).map(ProcessId::JobManager))
    }

    /// As a TOML file that loads as the same scenario. What has its default is left out.
    pub fn to_toml(&self) -> String {
        let Self { planted_bug, job, cluster, config, schedule, network, disk, clock, .. } = self;
        let Self { inputs, faults, expect, failure, .. } = self;
        let mut text = String::new();
        if let Some(bug) = planted_bug {
            text += &table("planted-bug", bug);
            text.push('\n');
        }
        let job_table = table("job", job);
        text += job_table.strip_suffix("\n[job.arguments]\n").unwrap_or(&job_table);
        text += &section("cluster", cluster, &Cluster::default());
        text += &section("config", config, &Options::default());
        text += &section("schedule", schedule, &Schedule::default());
        text += &section("network", network, &Network::default());
        text += &section("disk", disk, &Disk::default());
        for (has, table) in [
            (!clock.is_empty(), table("clock", clock)),
            (!inputs.is_empty(), table("input", inputs)),
            (!faults.is_empty(), table("fault", faults)),
        ] {
            if has {
                text.push('\n');
                text += &table;
            }
        }
        text += &section("expect", expect, &Expect::default());
        if let Some(failure) = failure {
            text.push('\n');
            text += &table("failure", failure);
        }
        text
    }
}

fn table(name: &str, value: &impl Serialize) -> String {
    toml::to_string(&BTreeMap::from([(name, value)])).expect("every part of a scenario has a TOML form")
}

/// Those keys of a table that are not as by default, each a line.
fn section<T: Serialize>(name: &str, value: &T, default: &T) -> String {
    let default = table(name, default);
    let differs = |line: &&str| !default.lines().any(|known| known == *line);
    let text = table(name, value);
    let lines: Vec<&str> = text.lines().skip(1).filter(differs).collect();
    if lines.is_empty() { String::new() } else { format!("\n[{name}]\n{}\n", lines.join("\n")) }
}
