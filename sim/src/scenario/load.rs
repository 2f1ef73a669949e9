//! Reading and checking scenario files. Every error names file and line, what is wrong and what
//! would be right. Whether a crash point exists is known only after the run: see
//! [`crate::trace::RunOutcome::vacuous`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use revenant::actor::Time;
use revenant::api::Program;
use revenant::config::{Configuration, ShuffleServiceKind, nearest};
use revenant::disk::Volume;
use revenant::ids::ProcessId;
use revenant::job_manager::submission;
use serde::Deserialize;
use toml::Spanned;

use super::{
    Action, ClockFault, ClockFaultKind, DiskFault, DiskFaultKind, Fault, HaFault, Input, ProcessFault,
    ProcessFaultKind, RestartAfter, Scenario, Trigger, VOLUMES,
};
use crate::point::CrashPoint;

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
        if !(1..=9).contains(&self.cluster.job_managers) {
            let message = format!("job-managers = {} is not from 1 to 9", self.cluster.job_managers);
            return Err((Place::JobManagers, message));
        }
        let config = self.config.configuration();
        self.check_shuffle(config.shuffle_service)?;
        if self.cluster.job_managers > 1 && config.job_event_volume == Volume::Local {
            let message = "a standby cannot read the log on another machine's disk: with job-managers above 1, \
                           job-event.store.volume is ha";
            return Err((Place::Option("job-event.store.volume"), message.to_owned()));
        }
        if config.min_parallelism > config.max_parallelism {
            let message = format!(
                "min-parallelism {} is above max-parallelism {}",
                config.min_parallelism, config.max_parallelism
            );
            return Err((
                Place::Option("execution.batch.adaptive.auto-parallelism.min-parallelism"),
                message,
            ));
        }
        if let Some(process) = self.disk.shared_volumes_on.as_ref() {
            let known = process.parse().and_then(|process| self.check_process(process));
            known.map_err(|message| (Place::SharedVolumes, message))?;
        }
        self.check_rates().map_err(|(key, message)| (Place::Network(key), message))?;
        Input::check(&self.inputs).map_err(|(index, message)| (Place::Input(index), message))?;
        let graph = program.build(&self.job()).map_err(|error| {
            let message = error.to_string();
            (self.argument_in(&message).map_or(Place::Job, Place::Argument), message)
        })?;
        submission::check(&config, &graph, &VOLUMES)
            .map_err(|message| (option_in(&message).map_or(Place::Job, Place::Option), message))?;
        for name in self.clock.keys() {
            let known = name.parse().and_then(|process| self.check_process(process));
            known.map_err(|message| (Place::Clock(name.clone()), message))?;
        }
        for (index, fault) in self.faults.iter().enumerate() {
            self.check_action(fault).map_err(|message| (Place::FaultAction(index), message))?;
            self.check_trigger(fault).map_err(|message| (Place::FaultTrigger(index), message))?;
            if fault.restart_after.is_some() && !matches!(fault.action, Action::Crash { .. }) {
                let message =
                    format!("nothing starts again after '{}': leave restart-after out", fault.action);
                return Err((Place::FaultAction(index), message));
            }
        }
        Ok(())
    }

    /// Results are kept where there is somebody to keep them.
    fn check_shuffle(&self, kind: ShuffleServiceKind) -> Result<(), (Place, String)> {
        let services = self.cluster.shuffle_services;
        match (kind, services) {
            (ShuffleServiceKind::External, 0) => {
                let message = "shuffle.service = 'external' needs shuffle services: set shuffle-services in \
                               [cluster]";
                Err((Place::Option("shuffle.service"), message.to_owned()))
            }
            (ShuffleServiceKind::TaskManager, 1..) => {
                let message = format!(
                    "shuffle-services = {services} does nothing: set \"shuffle.service\" = 'external' in [config]"
                );
                Err((Place::ShuffleServices, message))
            }
            _ if services > 1000 => {
                Err((Place::ShuffleServices, format!("shuffle-services = {services} is not from 0 to 1000")))
            }
            _ => Ok(()),
        }
    }

    /// The argument that an error of the job names first, if it names one.
    fn argument_in(&self, message: &str) -> Option<String> {
        let names = self.job.arguments.0.keys();
        let named = names.filter_map(|name| Some((message.find(&format!("'{name}'"))?, name)));
        named.min().map(|(_, name)| name.clone())
    }

    /// Whether the cluster has such a process.
    pub fn check_process(&self, process: ProcessId) -> Result<(), String> {
        if self.processes().any(|known| known == process) {
            return Ok(());
        }
        let last = self.cluster.task_managers;
        let services = match self.cluster.shuffle_services {
            0 => String::new(),
            last => format!(" and shuffle-service-1 to shuffle-service-{last}"),
        };
        if let ProcessId::JobManager(_) = process {
            let count = self.cluster.job_managers;
            return Err(format!(
                "there is no process {process}: set job-managers in [cluster], which is {count}, to have standbys"
            ));
        }
        Err(format!(
            "there is no process {process}: the cluster has task-manager-1 to task-manager-{last}{services}"
        ))
    }

    /// Whether the cluster has such a process, and that such an actor. Whether it comes to the point
    /// is known only after the run.
    pub fn check_point(&self, point: &CrashPoint) -> Result<(), String> {
        self.check_process(point.process)?;
        point.check()
    }

    /// Whether what is undone at a certain time begins before, as far as times say that.
    fn begins_before(&self, heal: &Fault, breaks: impl Fn(&Fault) -> bool) -> Result<(), String> {
        let Trigger::Time(healed) = heal.at else { return Ok(()) };
        let begins = |fault: &Fault| match fault.at {
            Trigger::Time(time) => time <= healed,
            Trigger::Point(_) | Trigger::CrashOf { .. } | Trigger::Message(_) => true,
        };
        let mut all = self.faults.iter().filter(|fault| breaks(fault)).peekable();
        let Some(first) = all.peek().map(|fault| fault.action.to_string()) else { return Ok(()) };
        if all.any(begins) {
            return Ok(());
        }
        Err(format!("'{}' comes before what it undoes, '{first}': give it a later time", heal.action))
    }

    pub(crate) fn check_action(&self, fault: &Fault) -> Result<(), String> {
        if fault.action.does_nothing() {
            return Err(format!("'{}' changes nothing: write how much", fault.action));
        }
        if let Some(process) = fault.action.process() {
            self.check_process(process)?;
        }
        match fault.action {
            Action::Process(what) => {
                self.check_process_fault(what)?;
                let needed = what.kind.needs().map(|kind| Action::Process(ProcessFault { kind, ..what }));
                needed.map_or(Ok(()), |needed| self.begins_before(fault, |other| other.action == needed))
            }
            Action::HighAvailability(HaFault { successor: true, .. }) if self.cluster.job_managers == 1 => {
                Err("nobody stands by: set job-managers = 2 in [cluster], or write 'revoke leadership'"
                    .to_owned())
            }
            Action::Network(what) if fault.restart_after.is_none() => self.check_network_fault(fault, what),
            Action::Clock(ClockFault { process, kind: ClockFaultKind::Heal }) => {
                let goes_wrong = self.faults.iter().any(|other| {
                    matches!(other.action, Action::Clock(fault)
                        if fault.process == process && fault.kind != ClockFaultKind::Heal)
                });
                if self.clock.contains_key(&process.to_string()) {
                    return Ok(());
                }
                if goes_wrong {
                    return self.begins_before(fault, |other| {
                        matches!(other.action, Action::Clock(fault)
                            if fault.process == process && fault.kind != ClockFaultKind::Heal)
                    });
                }
                Err(format!(
                    "the clock of {process} is never wrong: no fault and no [clock.{process}] makes it so"
                ))
            }
            Action::Disk(disk) => {
                disk.process.map_or(Ok(()), |process| self.check_process(process))?;
                let breaks = |other: &Fault| {
                    matches!(other.action, Action::Disk(broken) if broken.kind != DiskFaultKind::Heal
                        && broken.purpose == disk.purpose
                        && broken.process == disk.process)
                };
                if disk.kind == DiskFaultKind::Heal && !self.faults.iter().any(breaks) {
                    let named = DiskFault { kind: DiskFaultKind::Fail, ..disk };
                    return Err(format!("no fault breaks what '{disk}' heals, as '{named}' would"));
                }
                if fault.restart_after.is_some() {
                    return Err("restart-after is for crashes: a disk is healed by another fault".to_owned());
                }
                if disk.kind == DiskFaultKind::Heal { self.begins_before(fault, breaks) } else { Ok(()) }
            }
            _ if fault.restart_after.is_some() && fault.action.process().is_none() => {
                Err(format!("nothing starts again after '{}': leave restart-after out", fault.action))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is what the fault undoes.
    fn check_process_fault(&self, fault: ProcessFault) -> Result<(), String> {
        let ProcessFault { kind, process } = fault;
        let is_disk = matches!(kind, ProcessFaultKind::SnapshotDisk | ProcessFaultKind::RestoreDisk);
        if is_disk && matches!(process, ProcessId::HighAvailability | ProcessId::Client) {
            return Err(format!(
                "{process} has no disk of its own that could be old: what it keeps is on a shared volume"
            ));
        }
        if let Some(kind) = kind.needs() {
            let needed = Action::Process(ProcessFault { kind, process });
            if self.faults.iter().all(|other| other.action != needed) {
                return Err(format!("'{fault}' has no effect without a fault '{needed}'"));
            }
        }
        if kind == ProcessFaultKind::Start {
            let stays_down = |other: &Fault| {
                let crashes = matches!(other.action, Action::Crash { process: dies, .. } if dies == process);
                crashes && other.restart_after == Some(RestartAfter::Never)
            };
            if self.cluster.restart_after != RestartAfter::Never && !self.faults.iter().any(stays_down) {
                return Err(format!(
                    "{process} never stays down: crash it with restart-after = 'never' before it is started"
                ));
            }
        }
        Ok(())
    }

    fn check_trigger(&self, fault: &Fault) -> Result<(), String> {
        if let (Trigger::Point(_) | Trigger::Message(_), Action::Process(ProcessFault { kind, process })) =
            (&fault.at, fault.action)
            && fault.at.process() == Some(process)
            && !matches!(kind, ProcessFaultKind::Pause | ProcessFaultKind::SnapshotDisk)
        {
            return Err(format!(
                "this can never happen: {process} passes no point while it is down or stands still"
            ));
        }
        match (&fault.at, fault.action.needs_alive()) {
            (Trigger::CrashOf { process, .. }, Some(dies)) if *process == dies => {
                return Err(format!(
                    "this can never happen: at the crash of {process}, {process} is dead already"
                ));
            }
            (Trigger::Time(Time(0)), Some(dies)) if dies != ProcessId::HighAvailability => {
                return Err(format!("this can never happen: at t = 0 s {dies} has not started yet"));
            }
            _ => {}
        }
        match &fault.at {
            Trigger::Point(point) => self.check_point(point),
            Trigger::CrashOf { process, .. } => self.check_process(*process),
            Trigger::Message(message) => self.check_message(message),
            Trigger::Time(time) if time.since(Time(0)) > self.cluster.time_limit.0 => {
                Err(format!("the run ends after time-limit = '{}', before this", self.cluster.time_limit))
            }
            Trigger::Time(_) => Ok(()),
        }
    }
}

/// The option that an error names first, if it names one.
fn option_in(message: &str) -> Option<&'static str> {
    let keys = Configuration::OPTIONS.iter().map(|option| option.key);
    let named = keys.filter_map(|key| Some((message.find(key)?, key)));
    named.min_by_key(|&(at, key)| (at, usize::MAX - key.len())).map(|(_, key)| key)
}

/// A part of the file that a check found wrong.
enum Place {
    Job,
    Argument(String),
    Option(&'static str),
    TaskManagers,
    JobManagers,
    ShuffleServices,
    Clock(String),
    SharedVolumes,
    Network(&'static str),
    Input(usize),
    FaultTrigger(usize),
    FaultAction(usize),
}

/// The same file, read only for where things are.
#[derive(Deserialize)]
struct Layout {
    job: JobLayout,
    cluster: Option<ClusterLayout>,
    disk: Option<DiskLayout>,
    #[serde(default)]
    config: TableLayout,
    #[serde(default)]
    clock: TableLayout,
    #[serde(default)]
    network: TableLayout,
    #[serde(default)]
    input: Vec<InputLayout>,
    #[serde(default)]
    fault: Vec<FaultLayout>,
}

#[derive(Deserialize)]
struct JobLayout {
    name: Spanned<String>,
    #[serde(default)]
    arguments: TableLayout,
}

type TableLayout = BTreeMap<String, Spanned<toml::Value>>;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterLayout {
    task_managers: Option<Spanned<i64>>,
    job_managers: Option<Spanned<i64>>,
    shuffle_services: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct DiskLayout {
    shared_volumes_on: Option<Spanned<String>>,
}

#[derive(Deserialize)]
struct InputLayout {
    path: Spanned<String>,
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
            Self::Argument(name) => layout.job.arguments.get(name)?.span(),
            Self::Option(key) => layout.config.get(*key)?.span(),
            Self::JobManagers => layout.cluster?.job_managers?.span(),
            Self::TaskManagers => layout.cluster?.task_managers?.span(),
            Self::ShuffleServices => layout.cluster?.shuffle_services?.span(),
            Self::SharedVolumes => layout.disk?.shared_volumes_on?.span(),
            Self::Clock(name) => layout.clock.get(name)?.span(),
            Self::Network(key) => layout.network.get(*key)?.span(),
            Self::Input(index) => layout.input.get(*index)?.path.span(),
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
    // These are the lists of a scenario.
    if message.starts_with("invalid type: map, expected a sequence") {
        return "there may be several of these: write [[fault]] or [[input]]".to_owned();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(word) = quoted.next() else { return message.to_owned() };
    match nearest(word, quoted) {
        Some(near) if message.starts_with("unknown ") => format!("{message}; did you mean '{near}'?"),
        _ => message.to_owned(),
    }
}
