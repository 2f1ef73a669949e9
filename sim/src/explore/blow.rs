//! What befalls the cluster at a point of an exploration: the process that passes it dies, or another
//! JobManager is made the leader while the old one lives on.

use std::fmt;

use crate::point::CrashPoint;
use crate::scenario::{Action, Fault, HaFault, Trigger};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// With `machine`, what was not synced is lost too.
    Crash { machine: bool },
    /// A standby leads at once. Without `notice` the old leader is not told.
    ChangeLeader { notice: bool },
}

impl Default for Blow {
    fn default() -> Self {
        Self::Crash { machine: false }
    }
}

impl Blow {
    pub fn at(self, point: CrashPoint) -> Fault {
        match self {
            Self::Crash { machine } => Fault::crash_at(point, machine),
            Self::ChangeLeader { notice } => {
                let action = Action::HighAvailability(HaFault { successor: true, notice });
                Fault { at: Trigger::Point(point), action, restart_after: None }
            }
        }
    }

    pub const fn needs_standby(self) -> bool {
        matches!(self, Self::ChangeLeader { .. })
    }

    /// The option of `cargo sim run` that says a point at which this happens.
    pub const fn option(self) -> &'static str {
        match self {
            Self::Crash { .. } => "--crash",
            Self::ChangeLeader { .. } => "--change-leader",
        }
    }

    /// What else the command line says once.
    pub const fn switch(self) -> Option<&'static str> {
        match self {
            Self::Crash { machine: true } => Some("--machine"),
            Self::ChangeLeader { notice: false } => Some("--without-notice"),
            Self::Crash { machine: false } | Self::ChangeLeader { notice: true } => None,
        }
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crash { machine: false } => "crash",
            Self::Crash { machine: true } => "crash of the machine",
            Self::ChangeLeader { notice: true } => "change leader",
            Self::ChangeLeader { notice: false } => "change leader without notice",
        })
    }
}
