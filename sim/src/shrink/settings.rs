//! Fewer options, fewer processes, and a network, disks and clocks with nothing special.

use std::collections::BTreeMap;
use std::sync::Arc;

use revenant::api::Program;

use crate::scenario::{Cluster, Disk, Network, Scenario, Schedule};

pub fn plainer(scenario: &Scenario, _: &Arc<Program>) -> Vec<Scenario> {
    let mut plainer = Vec::new();
    let mut with = |change: &dyn Fn(&mut Scenario)| {
        let mut changed = scenario.clone();
        change(&mut changed);
        plainer.push(changed);
    };
    with(&|s| s.network = Network::default());
    with(&|s| s.disk = Disk::default());
    with(&|s| s.clock = BTreeMap::new());
    let few = [1, 2, scenario.cluster.task_managers / 2, scenario.cluster.task_managers - 1];
    for count in few.into_iter().filter(|count| (1..scenario.cluster.task_managers).contains(count)) {
        with(&|s| s.cluster.task_managers = count);
    }
    with(&|s| s.cluster.job_managers = 1);
    with(&|s| {
        s.cluster.shuffle_services = 0;
        s.config = s.config.without("shuffle.service");
    });
    with(&|s| s.cluster.shuffle_services = s.cluster.shuffle_services.min(1));
    let Cluster { restart_after, time_limit, event_limit, .. } = Cluster::default();
    with(&|s| s.cluster.restart_after = restart_after);
    with(&|s| (s.cluster.time_limit, s.cluster.event_limit) = (time_limit, event_limit));
    for (name, _) in scenario.config.values() {
        with(&|s| s.config = s.config.without(name));
    }
    let Network { latency, in_flight_at_crash, drop_rate, .. } = Network::default();
    with(&|s| s.network.latency = latency);
    with(&|s| s.network.in_flight_at_crash = in_flight_at_crash);
    with(&|s| s.network = s.network.without_rates());
    with(&|s| s.network.drop_rate = drop_rate);
    with(&|s| s.network.duplicate_rate = drop_rate);
    with(&|s| s.network.delay_rate = drop_rate);
    with(&|s| s.network.overtake_rate = drop_rate);
    let disk = Disk::default();
    with(&|s| s.disk.latency = disk.latency);
    with(&|s| s.disk.sync_latency = disk.sync_latency);
    with(&|s| s.disk.incomplete_at_crash = disk.incomplete_at_crash);
    with(&|s| s.disk.unsynced_at_machine_crash = disk.unsynced_at_machine_crash);
    with(&|s| s.disk.shared_volumes_on = None);
    for process in scenario.clock.keys() {
        with(&|s| _ = s.clock.remove(process));
    }
    if scenario.schedule.seed > 0 {
        with(&|s| s.schedule = Schedule { seed: 0 });
    }
    plainer
}
