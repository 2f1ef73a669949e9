//! Clocks that are wrong: `[clock.task-manager-1]` from the beginning, or by a fault.
//!
//! A clock belongs to a machine and shows the same to every incarnation of its process. Actors know no
//! other time: their timers go by it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use revenant::ids::ProcessId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{Span, text_form};
use super::forms::Form;

/// No clock is ever wrong by more than this.
const SKEW_MAX: Duration = Duration::from_hours(1);
/// A clock that is this slow stands half still.
const DRIFT_MAX: i32 = 500_000;

/// How wrong a clock is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClockError {
    /// How far it is ahead of the true time at the start, at most an hour; behind it with a minus.
    pub skew: Skew,
    /// How much faster it runs, at most half as fast again; slower with a minus.
    pub drift: Drift,
}

/// So far ahead of the true time, in nanoseconds; behind it if negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Skew(pub i64);

/// So much faster than true time, in millionths; slower if negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Drift(pub i32);

/// How such faults are written.
pub const FORMS: &[Form] = &[
    Form::healed(
        "clock of <process> jump +5 s",
        "the clock of its machine shows so much more from one moment to the next, or less with a minus",
        "heal clock of <process>",
    ),
    Form::healed(
        "clock of <process> drift +100 ppm",
        "it runs so much faster from now on, or slower with a minus",
        "heal clock of <process>",
    ),
    Form::heal("heal clock of <process>", "it shows the true time again and runs as it should"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFault {
    pub process: ProcessId,
    pub kind: ClockFaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFaultKind {
    /// From one moment to the next it shows so much more, or less.
    Jump(Skew),
    /// From now on it runs so much faster, or slower.
    Drift(Drift),
    /// It shows the true time again, and runs as it should.
    Heal,
}

/// A number with its sign, which must be there.
fn signed(text: &str) -> Option<(i64, &str)> {
    let text = text.trim();
    text.strip_prefix('+').map(|rest| (1, rest)).or_else(|| text.strip_prefix('-').map(|rest| (-1, rest)))
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{}", Span(Duration::from_nanos(self.0.unsigned_abs())))
    }
}

impl FromStr for Skew {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let max = Span(SKEW_MAX);
            format!(
                "'{text}' is not how far a clock is ahead or behind, for example '+5 s' or '-250 ms', at most {max}"
            )
        };
        let (sign, span) = signed(text).ok_or_else(wrong)?;
        let Span(by) = span.parse().map_err(|_| wrong())?;
        if by > SKEW_MAX {
            return Err(wrong());
        }
        Ok(Self(sign * by.as_nanos() as i64))
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+} ppm", self.0)
    }
}

impl FromStr for Drift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is not how much faster or slower a clock runs, for example '+100 ppm' or '-20000 ppm', at \
                 most {DRIFT_MAX}"
            )
        };
        let (sign, rest) = signed(text).ok_or_else(wrong)?;
        let ppm = rest.strip_suffix("ppm").and_then(|ppm| ppm.trim().parse().ok());
        let ppm: i32 = ppm.filter(|ppm| (0..=DRIFT_MAX).contains(ppm)).ok_or_else(wrong)?;
        Ok(Self(sign as i32 * ppm))
    }
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = self.process;
        match self.kind {
            ClockFaultKind::Jump(by) => write!(f, "clock of {process} jump {by}"),
            ClockFaultKind::Drift(by) => write!(f, "clock of {process} drift {by}"),
            ClockFaultKind::Heal => write!(f, "heal clock of {process}"),
        }
    }
}

impl ClockFault {
    /// The fault that the text says, if it begins as one does.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        if let Some(process) = text.strip_prefix("heal clock of ") {
            return Some(process.trim().parse().map(|process| Self { process, kind: ClockFaultKind::Heal }));
        }
        Some(Self::parse_change(text.strip_prefix("clock of ")?))
    }

    fn parse_change(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'clock of {text}' is not a fault of a clock; expected 'clock of <process> jump +5 s', 'clock of \
                 <process> drift -100 ppm' or 'heal clock of <process>'"
            )
        };
        let (process, change) = text.trim().split_once(' ').ok_or_else(wrong)?;
        let (what, by) = change.trim().split_once(' ').ok_or_else(wrong)?;
        let kind = match what {
            "jump" => ClockFaultKind::Jump(by.parse()?),
            "drift" => ClockFaultKind::Drift(by.parse()?),
            _ => return Err(wrong()),
        };
        Ok(Self { process: process.parse()?, kind })
    }
}

text_form! {
    Skew: "a duration with its sign", "+5 s";
    Drift: "parts per million with their sign", "-200 ppm";
}

#[cfg(test)]
mod tests {
    use super::super::forms::read_back;
    use super::*;
    use crate::scenario::Action;

    #[test]
    fn a_fault_reads_back_what_it_displays() {
        read_back::<Action>(&[
            "clock of task-manager-2 jump -250 ms",
            "clock of client drift -20000 ppm",
            "heal clock of high-availability",
        ]);
        assert!(ClockFault::parse("pause job-manager").is_none());
    }

    #[test]
    fn a_wrong_fault_says_what_would_be_right() {
        for (text, why) in [
            ("clock of job-manager", "expected 'clock of <process> jump +5 s'"),
            ("clock of job-manager stop now", "expected 'clock of <process> jump +5 s'"),
            ("clock of job-manager jump 5 s", "'+5 s' or '-250 ms'"),
            ("clock of job-manager jump +2 h", "at most 1 h"),
            ("clock of job-manager drift +600000 ppm", "at most 500000"),
            ("clock of job-manager drift +-5 ppm", "'+100 ppm'"),
            ("clock of jobmanager jump +5 s", "unknown process 'jobmanager'"),
            ("heal clock of jobmanager", "unknown process 'jobmanager'"),
        ] {
            let error = ClockFault::parse(text).unwrap_or_else(|| panic!("{text}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
