//! How triggers and actions are written: one table for errors, editors and the documentation.

use super::{clock_fault, disk_fault, fault, ha_fault, network_fault, process_fault};

/// One way to write a trigger or an action; what is in angle brackets, and every number, stands for others.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub text: &'static str,
    pub what: &'static str,
    /// What ends it: an action, or `restart-after`.
    pub heal: Option<&'static str>,
    pub is_heal: bool,
}

impl Form {
    /// Something that is over when it has happened.
    pub const fn once(text: &'static str, what: &'static str) -> Self {
        Self { text, what, heal: None, is_heal: false }
    }

    /// Something that lasts until it is healed.
    pub const fn healed(text: &'static str, what: &'static str, heal: &'static str) -> Self {
        Self { text, what, heal: Some(heal), is_heal: false }
    }

    pub const fn heal(text: &'static str, what: &'static str) -> Self {
        Self { text, what, heal: None, is_heal: true }
    }
}

/// What `at` can say.
pub const TRIGGERS: &[Form] = fault::TRIGGERS;

/// What `do` can say.
pub fn actions() -> impl Iterator<Item = &'static Form> {
    [
        fault::FORMS,
        process_fault::FORMS,
        clock_fault::FORMS,
        ha_fault::FORMS,
        network_fault::FORMS,
        disk_fault::FORMS,
    ]
    .into_iter()
    .flatten()
}

/// A form with something for each of its gaps.
#[cfg(test)]
pub fn filled(text: &str) -> String {
    let text = text.replace("<process>", "task-manager-1").replace("<other>", "job-manager");
    text.replace("<purpose>", "job_event").replace("<kind>", "SubmitTask")
}

/// Each is read, and displays as it was written.
#[cfg(test)]
pub fn read_back<T: std::str::FromStr<Err = String> + std::fmt::Display>(texts: &[&str]) {
    for text in texts {
        let read: T = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.to_string(), *text);
    }
}

/// All ways to write one of these, for an error.
pub fn listed<'a>(forms: impl Iterator<Item = &'a Form>) -> String {
    forms.map(|form| format!("'{}'", form.text)).collect::<Vec<_>>().join(", ")
}
