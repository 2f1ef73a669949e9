//! Faults: when something breaks, and what.

use std::fmt;
use std::str::FromStr;

use revenant::actor::Time;
use revenant::ids::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock_fault::{ClockFault, ClockFaultKind, Drift, Skew};
use super::disk_fault::{DiskFault, DiskFaultKind};
use super::duration::{RestartAfter, Span, text_form};
use super::forms::{self, Form, listed};
use super::ha_fault::HaFault;
use super::network_fault::{MessageFault, MessageTrigger, NetworkFault};
use super::process_fault::{ProcessFault, ProcessFaultKind};
use crate::point::{CrashPoint, parse_incarnation};

/// How triggers are written.
pub const TRIGGERS: &[Form] = &[
    Form::once(
        "job-manager/1:master@57.1",
        "the process's first incarnation, event 57 of that actor, after 1 of its effects has left; `cargo sim points` \
         lists these",
    ),
    Form::once(
        "job-manager/1:job_event.sync#3.before",
        "before (or `.after`) the third effect of that name leaves the first incarnation",
    ),
    Form::once("t = 12.5s", "at this simulated time"),
    Form::once("crash of job-manager/1", "together with the crash of this incarnation, whatever its cause"),
    Form::once(
        "message SubmitTask#3 from job-manager to task-manager-1",
        "right before the third such message between these processes leaves; without `from` or `to`, whoever \
         sends or gets it. What befalls a message befalls this one",
    ),
];

/// How crashes and what users do are written.
pub const FORMS: &[Form] = &[
    Form::healed(
        "crash <process>",
        "the process dies, with all its actors; what it has written stays, synced or not",
        "restart-after",
    ),
    Form::healed(
        "crash machine of <process>",
        "its machine dies with it: what was not synced on the process's own volumes is at the disk's mercy",
        "restart-after",
    ),
    Form::once("cancel job", "the client is told to cancel the job"),
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fault {
    /// When it strikes.
    pub at: Trigger,
    /// What happens.
    #[serde(rename = "do")]
    pub action: Action,
    /// How long the process stays down. For crashes only; without it, the cluster's `restart-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_after: Option<RestartAfter>,
}

impl Fault {
    /// The point's process dies at the point, with `machine` its machine too.
    pub const fn crash_at(point: CrashPoint, machine: bool) -> Self {
        let action = Action::Crash { process: point.process, machine };
        Self { at: Trigger::Point(point), action, restart_after: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Trigger {
    Point(CrashPoint),
    Time(Time),
    /// Together with the crash of an incarnation, whatever its cause.
    CrashOf {
        process: ProcessId,
        incarnation: u32,
    },
    /// Right before a message leaves for another process.
    Message(MessageTrigger),
}

impl Trigger {
    /// The process that does what it waits for.
    pub const fn process(&self) -> Option<ProcessId> {
        match self {
            Self::Point(point) => Some(point.process),
            Self::Time(_) => None,
            Self::Message(message) => message.route.from,
            Self::CrashOf { process, .. } => Some(*process),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(point) => point.fmt(f),
            Self::Time(time) => write!(f, "t = {}", Span(time.since(Time(0)))),
            Self::CrashOf { process, incarnation } => write!(f, "crash of {process}/{incarnation}"),
            Self::Message(message) => message.fmt(f),
        }
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(time) = text.strip_prefix("t =").or_else(|| text.strip_prefix("t=")) {
            return time.parse().map(|Span(duration)| Self::Time(Time(0) + duration));
        }
        if let Some(incarnation) = text.strip_prefix("crash of ") {
            let (process, incarnation) = parse_incarnation(incarnation.trim())?;
            return Ok(Self::CrashOf { process, incarnation });
        }
        if let Some(message) = text.strip_prefix("message ") {
            return MessageTrigger::parse(message).map(Self::Message);
        }
        text.parse().map(Self::Point).map_err(|error| {
            format!("{error}; or 't = 12.5s', or 'crash of job-manager/1', or 'message SubmitTask#3'")
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Action {
    /// With `machine`, what was not synced on the process's own volumes is at the disk's mercy.
    Crash {
        process: ProcessId,
        machine: bool,
    },
    Process(ProcessFault),
    Clock(ClockFault),
    HighAvailability(HaFault),
    Disk(DiskFault),
    Network(NetworkFault),
    /// The client is told to cancel the job.
    CancelJob,
}

impl Action {
    /// The process that it befalls.
    pub const fn process(self) -> Option<ProcessId> {
        match self {
            Self::Crash { process, .. } => Some(process),
            Self::Process(fault) => Some(fault.process),
            Self::Clock(fault) => Some(fault.process),
            Self::CancelJob => Some(ProcessId::Client),
            Self::HighAvailability(_) => Some(ProcessId::HighAvailability),
            Self::Disk(_) | Self::Network(_) => None,
        }
    }

    /// Whether it is written with an amount of nothing.
    pub const fn does_nothing(&self) -> bool {
        match self {
            Self::Clock(ClockFault {
                kind: ClockFaultKind::Jump(Skew(0)) | ClockFaultKind::Drift(Drift(0)),
                ..
            }) => true,
            Self::Disk(DiskFault { kind: DiskFaultKind::Slow(by), .. })
            | Self::Network(
                NetworkFault::Slow(_, by)
                | NetworkFault::Message(MessageFault::Delay(by) | MessageFault::Overtake(by)),
            ) => by.0.is_zero(),
            _ => false,
        }
    }

    /// Whether it ends what another fault began.
    pub const fn is_heal(self) -> bool {
        match self {
            Self::Process(fault) => matches!(fault.kind, ProcessFaultKind::Resume | ProcessFaultKind::Start),
            Self::Clock(fault) => matches!(fault.kind, ClockFaultKind::Heal),
            Self::Disk(fault) => matches!(fault.kind, DiskFaultKind::Heal),
            Self::Network(fault) => fault.is_heal(),
            Self::Crash { .. } | Self::HighAvailability(_) | Self::CancelJob => false,
        }
    }

    /// The process that must be alive for it.
    pub const fn needs_alive(self) -> Option<ProcessId> {
        match self {
            Self::Process(ProcessFault { kind: ProcessFaultKind::Pause, process }) => Some(process),
            Self::Process(_) | Self::Clock(_) | Self::Network(_) => None,
            Self::Crash { .. } | Self::CancelJob | Self::HighAvailability(_) | Self::Disk(_) => {
                self.process()
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { process, machine: false } => write!(f, "crash {process}"),
            Self::Crash { process, machine: true } => write!(f, "crash machine of {process}"),
            Self::Process(fault) => fault.fmt(f),
            Self::Clock(fault) => fault.fmt(f),
            Self::HighAvailability(fault) => fault.fmt(f),
            Self::Disk(fault) => fault.fmt(f),
            Self::Network(fault) => fault.fmt(f),
            Self::CancelJob => f.write_str("cancel job"),
        }
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("disk") {
            return text.parse().map(Self::Disk);
        }
        if text == "cancel job" {
            return Ok(Self::CancelJob);
        }
        if let Some(fault) = ProcessFault::parse(text) {
            return fault.map(Self::Process);
        }
        if let Some(fault) = HaFault::parse(text) {
            return Ok(Self::HighAvailability(fault));
        }
        if let Some(fault) = ClockFault::parse(text) {
            return fault.map(Self::Clock);
        }
        if let Some(fault) = NetworkFault::parse(text) {
            return fault.map(Self::Network);
        }
        let process = text.strip_prefix("crash ").ok_or_else(|| {
            format!("unknown action '{text}': expected one of {}", listed(forms::actions()))
        })?;
        let (process, machine) =
            process.strip_prefix("machine of ").map_or((process, false), |process| (process, true));
        Ok(Self::Crash { process: process.trim().parse()?, machine })
    }
}

text_form! {
    Trigger: "when a fault strikes", "job-manager/1:job_event.sync#3.before";
    Action: "what happens", "crash job-manager";
}

#[cfg(test)]
mod tests {
    use super::super::forms::read_back;
    use super::*;

    #[test]
    fn triggers_and_actions_read_back_what_they_display() {
        read_back::<Trigger>(&["t = 12500 ms", "crash of job-manager/1", "job-manager/1:master@3.0"]);
        read_back::<Action>(&[
            "crash job-manager",
            "crash machine of task-manager-2",
            "start shuffle-service-1",
        ]);
    }

    #[test]
    fn a_wrong_trigger_or_action_says_what_would_be_right() {
        let error = "explode job-manager".parse::<Action>().unwrap_err();
        assert!(error.contains("expected one of 'crash <process>'"), "{error}");
        assert!("pause jobmanager".parse::<Action>().unwrap_err().contains("task-manager-N"));
        assert!("crash jobmanager".parse::<Action>().unwrap_err().contains("task-manager-N"));
        assert!("noon".parse::<Trigger>().unwrap_err().contains("'t = 12.5s'"));
        assert!("t = noon".parse::<Trigger>().unwrap_err().contains("'250 ms'"));
    }
}
