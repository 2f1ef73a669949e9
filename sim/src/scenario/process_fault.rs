//! Faults of a process other than its crash: `pause job-manager`, and what ends them.

use std::fmt;
use std::str::FromStr;

use revenant::ids::ProcessId;

use super::forms::Form;

/// How such faults are written.
pub const FORMS: &[Form] = &[
    Form::healed(
        "pause <process>",
        "stands still: messages and timers wait for it, what it has asked of the disk goes on",
        "resume <process>",
    ),
    Form::heal("resume <process>", "goes on, with all that waited for it in the order in which it came"),
    Form::heal("start <process>", "starts a process that is down, also one that should stay down"),
    Form::once("snapshot disk of <process>", "remembers what is durable on the process's own volumes"),
    Form::once(
        "restore disk of <process>",
        "the process, while it is down, gets the disk that was remembered: it comes back with an old one",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessFault {
    pub kind: ProcessFaultKind,
    pub process: ProcessId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessFaultKind {
    /// The process stands still, as after SIGSTOP: messages and timers wait for it, and what it has
    /// asked of the disk goes on.
    Pause,
    /// It goes on with all that waited for it, in the order in which it came.
    Resume,
    /// A process that is down starts again, also one that should stay down.
    Start,
    /// Remembers the content of the process's own volumes.
    SnapshotDisk,
    /// The process's own volumes, while it is down, are what they were when they were remembered: the
    /// machine comes back with an old disk.
    RestoreDisk,
}

impl ProcessFaultKind {
    pub const ALL: [Self; 5] =
        [Self::Pause, Self::Resume, Self::Start, Self::SnapshotDisk, Self::RestoreDisk];

    /// What the text of such a fault begins with.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Start => "start",
            Self::SnapshotDisk => "snapshot disk of",
            Self::RestoreDisk => "restore disk of",
        }
    }

    /// The fault without which this one can never take effect.
    pub const fn needs(self) -> Option<Self> {
        match self {
            Self::Resume => Some(Self::Pause),
            Self::RestoreDisk => Some(Self::SnapshotDisk),
            Self::Pause | Self::Start | Self::SnapshotDisk => None,
        }
    }
}

impl fmt::Display for ProcessFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.words(), self.process)
    }
}

impl ProcessFault {
    /// The fault that the text says, if it begins as one does.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        ProcessFaultKind::ALL.into_iter().find_map(|kind| {
            let process = text.strip_prefix(kind.words())?.strip_prefix(' ')?;
            Some(ProcessId::from_str(process.trim()).map(|process| Self { kind, process }))
        })
    }
}
