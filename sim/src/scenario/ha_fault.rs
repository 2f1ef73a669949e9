//! Faults of high availability: leadership ends though its holder lives.

use std::fmt;

use super::forms::Form;

/// How such faults are written. A leader that follows ends each.
pub const FORMS: &[Form] = &[
    Form::once(
        "revoke leadership",
        "the HA service ends the lease: its watchers hear of no leader, then of the next contender, if there is one",
    ),
    Form::once(
        "change leader",
        "the standby that waits longest leads at once; watchers never hear of no leader. Needs job-managers from 2",
    ),
    Form::once(
        "revoke leadership without notice",
        "as without the last two words, but the old leader is not told: it learns of it when it renews its lease or is \
         fenced, and until then there are two",
    ),
    Form::once("change leader without notice", "the same of a change"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaFault {
    /// A standby leads at once.
    pub successor: bool,
    /// The old leader is told.
    pub notice: bool,
}

impl fmt::Display for HaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.successor { "change leader" } else { "revoke leadership" })?;
        if self.notice { Ok(()) } else { f.write_str(" without notice") }
    }
}

impl HaFault {
    /// The fault that the text says, if it says one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (what, notice) = match text.strip_suffix(" without notice") {
            Some(what) => (what, false),
            None => (text, true),
        };
        match what {
            "change leader" => Some(Self { successor: true, notice }),
            "revoke leadership" => Some(Self { successor: false, notice }),
            _ => None,
        }
    }
}
