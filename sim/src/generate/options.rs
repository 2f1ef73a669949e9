//! Options of the engine, at their extremes and between. Whatever is drawn, a run that is left alone
//! ends well: what is waited for is longer than what a message takes.

use revenant::config::ShuffleServiceKind;

use super::stream::Stream;
use crate::scenario::Scenario;

/// Each is set in one scenario of two, to one of these.
pub const OPTIONS: [(&str, &[&str]); 19] = [
    ("execution.batch.job-recovery.previous-worker.recovery.timeout", &["0 s", "5 s", "5 min"]),
    ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", &["0 s", "10 ms", "1 h"]),
    ("job-event.store.write-buffer.size", &["1 b", "200 b", "1 mb"]),
    ("job-event.store.write-buffer.flush-interval", &["0 s", "1 ms", "1 h"]),
    ("job-event.store.volume", &["ha", "local"]),
    ("taskmanager.registration.timeout", &["1 s", "5 min", "1 h"]),
    ("taskmanager.numberOfTaskSlots", &["1", "2", "8"]),
    ("taskmanager.memory.segment-size", &["64 b", "256 b", "32 kb"]),
    ("taskmanager.network.memory.floating-buffers-per-gate", &["1", "2", "8"]),
    ("cluster.registration.error-delay", &["1 s", "10 s", "1 min"]),
    ("high-availability.session-timeout", &["3 s", "60 s", "10 min"]),
    ("execution.batch.adaptive.auto-parallelism.max-parallelism", &["1", "5", "16"]),
    ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", &["1 b", "200 b", "16 mb"]),
    ("execution.batch.adaptive.auto-parallelism.default-source-parallelism", &["0", "1", "8"]),
    ("execution.sort-partition.memory", &["64 b", "400 b", "1 mb"]),
    ("execution.sort-keyed-partition.memory", &["64 b", "400 b", "1 mb"]),
    ("heartbeat.interval", &["200 ms", "1 min"]),
    ("shuffle.service", &["task-manager", "external"]),
    ("execution.batch.job-recovery.enabled", &["false", "true"]),
];

pub fn draw(draws: &mut Stream, scenario: &mut Scenario) {
    for (key, values) in OPTIONS {
        let (is_set, value) = (draws.one_in(2), draws.one_of(values));
        if is_set {
            set(scenario, key, value);
        }
    }
    if scenario.cluster.job_managers > 1 {
        set(scenario, "job-event.store.volume", "ha");
    }
    let interval = scenario.config.configuration().heartbeat_interval;
    match interval.as_millis() {
        200 => set(scenario, "heartbeat.timeout", "2 s"),
        60_000 => set(scenario, "heartbeat.timeout", "10 min"),
        _ => {}
    }
    if !draws.one_in(10) {
        set(scenario, "execution.batch.job-recovery.enabled", "true");
    }
    let services = draws.between(1, 3);
    let is_external = scenario.config.configuration().shuffle_service == ShuffleServiceKind::External;
    scenario.cluster.shuffle_services = if is_external { services } else { 0 };
    strategy(draws, scenario);
}

/// None that gives up.
fn strategy(draws: &mut Stream, scenario: &mut Scenario) {
    let delay = draws.one_of(&["50 ms", "1 s", "30 s"]);
    match draws.below(3) {
        0 => {
            set(scenario, "restart-strategy.type", "fixed-delay");
            set(scenario, "restart-strategy.fixed-delay.attempts", "1000000");
            set(scenario, "restart-strategy.fixed-delay.delay", delay);
        }
        1 => {
            set(scenario, "restart-strategy.type", "failure-rate");
            set(scenario, "restart-strategy.failure-rate.max-failures-per-interval", "1000000");
            set(scenario, "restart-strategy.failure-rate.delay", delay);
        }
        _ => set(scenario, "restart-strategy.type", "exponential-delay"),
    }
}

fn set(scenario: &mut Scenario, key: &str, value: &str) {
    scenario.config.set(key, value).expect("the options of the table are right");
}
