//! Every single crash of a JobManager: at each point with other survivors its process dies once, and its machine
//! once with each other image that this leaves of what was not synced.

use std::collections::BTreeSet;

use revenant::config::RestartStrategy;
use revenant::ids::ProcessId;

use super::{Case, Ground, Strategy};
use crate::point::PointAt;
use crate::run::{Collect, RunOptions, run};
use crate::scenario::{Fault, Scenario};
use crate::trace::FoundPoint;

#[derive(Debug, Default)]
pub struct Once {
    is_over: bool,
    points: u64,
}

impl Strategy for Once {
    fn more(&mut self, ground: &Ground<'_>) -> Vec<Case> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        let found = points(ground.scenario, ground, Collect::JobManagers);
        self.points = found.iter().map(|found| 1 + found.images.len() as u64).sum();
        let mut seen = BTreeSet::new();
        let mut cases = Vec::new();
        for found in &found {
            if seen.insert(found.survivors) {
                let scenario = with(ground.scenario, Fault::crash_at(found.point.clone(), false));
                cases.push(Case { scenario, class: class(found) });
            }
            for &(image, survivors) in &found.images {
                if seen.insert(survivors) {
                    let mut scenario = with(ground.scenario, Fault::crash_at(found.point.clone(), true));
                    scenario.disk.unsynced_at_machine_crash = image;
                    cases.push(Case { scenario, class: format!("{}, machine, {image:?}", class(found)) });
                }
            }
        }
        cases
    }

    fn points(&self) -> u64 {
        self.points
    }

    fn left(&self) -> Option<u64> {
        self.is_over.then_some(0)
    }
}

/// The points that a scenario passes, each with what would live on there.
pub fn points(scenario: &Scenario, ground: &Ground<'_>, collect: Collect) -> Vec<FoundPoint> {
    let options = RunOptions { collect, survivors: true, ..RunOptions::default() };
    run(scenario, ground.program, &options).detail.points
}

/// What was about to happen at a point, without numbers: `job-manager before job_event.sync`.
pub fn class(found: &FoundPoint) -> String {
    let process = match found.point.process {
        ProcessId::TaskManager(_) => "task-manager".to_owned(),
        ProcessId::ShuffleService(_) => "shuffle-service".to_owned(),
        ProcessId::JobManager(_) => "job-manager".to_owned(),
        other => other.to_string(),
    };
    let recovery = if found.point.incarnation > 1 { " again" } else { "" };
    let place = match found.names.last().map(|name| &name.at) {
        Some(PointAt::Name { name, after: false, .. }) => format!("before {name}"),
        Some(PointAt::Name { name, after: true, .. }) => format!("after {name}"),
        _ => "between events".to_owned(),
    };
    format!("{process}{recovery} {place}")
}

/// One more fault.
pub fn with(scenario: &Scenario, fault: Fault) -> Scenario {
    let mut more = scenario.clone();
    more.faults.push(fault);
    more
}

/// Whether the job may fail as often as a few deaths of workers make it fail.
fn survives_failures(ground: &Ground<'_>) -> bool {
    const ENOUGH: u32 = 10;
    let config = ground.scenario.configuration();
    match config.restart_strategy {
        RestartStrategy::None => false,
        RestartStrategy::FixedDelay => config.restart_attempts >= ENOUGH,
        RestartStrategy::FailureRate => config.failure_rate_max >= ENOUGH,
        RestartStrategy::ExponentialDelay => true,
    }
}

/// Those whose death is worth a case: the client and the HA service only keep what they are given. The death of a
/// worker is a failure of its tasks: without a restart strategy it is the job's end.
pub fn may_die(process: ProcessId, ground: &Ground<'_>) -> bool {
    match process {
        ProcessId::JobManager(_) => true,
        ProcessId::TaskManager(_) | ProcessId::ShuffleService(_) => survives_failures(ground),
        ProcessId::Client | ProcessId::HighAvailability => false,
    }
}
