//! The cluster and its world: how many processes, how far apart, how slow the disks, how wrong the
//! clocks, and what a crash leaves.

use std::time::Duration;

use revenant::actor::Time;

use super::stream::Stream;
use crate::scenario::{
    ClockError, Drift, DurationRange, InFlight, Incomplete, Network, Profile, Rate, RestartAfter, Scenario,
    Skew, Span, Unsynced,
};
use crate::trace::RunOutcome;

/// Nothing that a recoverable scenario has to wait for takes longer.
const PATIENCE: Duration = Duration::from_hours(3);

/// How often a job may run as a whole before it counts as one that does not end: L1 allows twice its time for each fault,
/// and again for each leader and failure that follow from it.
const REPETITIONS: u32 = 24;

/// A job that takes an hour without any fault may take many with some.
pub fn allow_repetitions(scenario: &mut Scenario, calm: &RunOutcome) {
    let cluster = &mut scenario.cluster;
    let length = Duration::from_secs(calm.end.since(Time(0)).as_secs());
    cluster.time_limit = Span(cluster.time_limit.0.max(length * REPETITIONS));
    cluster.event_limit = cluster.event_limit.max(calm.events * u64::from(REPETITIONS));
}

pub fn draw(draws: &mut Stream, profile: Profile, scenario: &mut Scenario) {
    let cluster = &mut scenario.cluster;
    cluster.task_managers = draws.between(1, 5);
    cluster.restart_after = RestartAfter::After(Duration::from_millis(draws.one_of(&[100, 1000, 5000])));
    (cluster.time_limit, cluster.event_limit) = match profile {
        Profile::Recoverable => (Span(PATIENCE), 3_000_000),
        Profile::Hostile => (Span(Duration::from_mins(10)), 300_000),
    };
    let range =
        |(min, max)| DurationRange { min: Duration::from_micros(min), max: Duration::from_micros(max) };
    scenario.network.latency = range(draws.one_of(&[(0, 0), (200, 2000), (1, 50_000), (100_000, 100_000)]));
    scenario.network.in_flight_at_crash = draws.one_of(&[InFlight::Delivered, InFlight::Lost]);
    scenario.disk.latency = range(draws.one_of(&[(0, 0), (50, 500), (50, 20_000)]));
    scenario.disk.sync_latency = range(draws.one_of(&[(0, 0), (500, 5000), (500, 100_000)]));
    scenario.disk.incomplete_at_crash = draws.one_of(&Incomplete::ALL);
    scenario.disk.unsynced_at_machine_crash = draws.one_of(&Unsynced::ALL);
    let owner = draws.one_of(&["high-availability", "job-manager", "task-manager-1"]);
    if draws.one_in(4) {
        scenario.disk.shared_volumes_on = Some(owner.to_owned());
    }
    scenario.cluster.job_managers = draws.one_of(&[1, 1, 2, 3]);
    let wrong = draws.one_in(8);
    let skew = Skew(draws.one_of(&[-5_000_000_000, 10_000_000, 300_000_000_000]));
    let drift = Drift(draws.one_of(&[-20_000, 0, 100, 20_000]));
    let processes: Vec<String> = scenario.processes().map(|process| process.to_string()).collect();
    let process = draws.one_of(&processes);
    if wrong {
        scenario.clock.insert(process, ClockError { skew, drift });
    }
    if draws.one_in(8) {
        rates(draws, profile, &mut scenario.network);
    }
}

/// Some of the messages are lost, late or come twice, for some time.
fn rates(draws: &mut Stream, profile: Profile, network: &mut Network) {
    let mut rate = || if draws.one_in(2) { Rate(draws.one_of(&[2_000, 20_000, 100_000])) } else { Rate(0) };
    (network.drop_rate, network.duplicate_rate) = (rate(), rate());
    (network.delay_rate, network.overtake_rate) = (rate(), rate());
    if network.has_rates() && (profile == Profile::Recoverable || draws.one_in(2)) {
        network.rates_until = Some(Span(Duration::from_secs(draws.one_of(&[1, 10, 120]))));
    }
}

/// Leaves a rate out that strikes no message.
pub fn leave_out(network: &mut Network, key: &str) {
    let rate = match key {
        "drop-rate" => &mut network.drop_rate,
        "duplicate-rate" => &mut network.duplicate_rate,
        "delay-rate" => &mut network.delay_rate,
        _ => &mut network.overtake_rate,
    };
    *rate = Rate::default();
    if !network.has_rates() {
        network.rates_until = None;
    }
}
