//! How large a scenario is, to say what shrinking came to.

use std::fmt;

use crate::scenario::Scenario;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub faults: usize,
    pub task_managers: u32,
    pub options: usize,
    /// Of the file, without what is said of the failure.
    pub lines: usize,
}

impl Size {
    pub fn of(scenario: &Scenario) -> Self {
        let plain = Scenario { failure: None, ..scenario.clone() };
        Self {
            faults: plain.faults.len(),
            task_managers: plain.cluster.task_managers,
            options: plain.config.values().count(),
            lines: plain.to_toml().lines().filter(|line| !line.is_empty()).count(),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { faults, task_managers, options, lines } = self;
        write!(f, "{faults} faults, {task_managers} TaskManagers, {options} options, {lines} lines")
    }
}
