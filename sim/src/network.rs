//! The simulated network: when a message arrives.
//!
//! Messages between two incarnations of processes arrive in the order in which they were sent, as
//! over one TCP connection; so do messages between two actors of one process. Connections are
//! independent of each other. It never loses, changes or repeats a message: whether the receiver
//! still lives is decided when the message is due.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use madsim::Config;
use madsim::plugin::Simulator;
use madsim::rand::GlobalRng;
use madsim::task::NodeId;
use madsim::time::TimeHandle;
use revenant::actor::Time;
use revenant::ids::{ActorId, Address};

use crate::agenda::ProcessIndex;
use crate::draw::{Draws, Purpose};
use crate::scenario::DurationRange;

/// Delay between two actors of one process.
const LOCAL_DELAY: DurationRange =
    DurationRange { min: Duration::from_micros(1), max: Duration::from_micros(20) };

/// One incarnation of a process.
pub type Incarnation = (ProcessIndex, u32);

#[derive(Debug)]
pub struct NetworkState {
    draws: Draws,
    latency: DurationRange,
    /// When the last message of each connection arrives.
    connections: BTreeMap<(Incarnation, Incarnation), Time>,
    mailboxes: BTreeMap<(ProcessIndex, ActorId, ActorId), Time>,
    nodes: BTreeMap<NodeId, ProcessIndex>,
}

impl NetworkState {
    pub fn new(seed: u64, latency: DurationRange) -> Self {
        Self {
            draws: Draws::new(seed),
            latency,
            connections: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// When a message that leaves now arrives, and its order among what is due at that time.
    pub fn arrival(
        &mut self,
        now: Time,
        (from, sender): (Address, Incarnation),
        (to, receiver): (Address, Incarnation),
        kind: &'static str,
    ) -> (Time, u64) {
        let local = from.process == to.process;
        let (purpose, range) =
            if local { (Purpose::LocalDelay, LOCAL_DELAY) } else { (Purpose::RemoteLatency, self.latency) };
        let draw = self.draws.draw(purpose, (from, to, kind));
        let last = if local {
            self.mailboxes.entry((sender.0, from.actor, to.actor)).or_default()
        } else {
            self.connections.entry((sender, receiver)).or_default()
        };
        let arrival = (now + draw.within(range)).max(Time(last.0 + 1));
        *last = arrival;
        (arrival, draw.order)
    }

    fn forget(&mut self, process: ProcessIndex) {
        self.mailboxes.retain(|(owner, _, _), _| *owner != process);
        self.connections.retain(|(sender, receiver), _| sender.0 != process && receiver.0 != process);
    }
}

#[derive(Debug)]
pub struct Network(Mutex<NetworkState>);

impl Network {
    pub fn lock(&self) -> MutexGuard<'_, NetworkState> {
        self.0.lock().expect("no panic under this lock")
    }

    pub fn add_node(&self, node: NodeId, process: ProcessIndex) {
        self.lock().nodes.insert(node, process);
    }
}

impl Simulator for Network {
    fn new(_: &GlobalRng, _: &TimeHandle, _: &Config) -> Self {
        let none = DurationRange { min: Duration::ZERO, max: Duration::ZERO };
        Self(Mutex::new(NetworkState::new(0, none)))
    }

    fn reset_node(&self, node: NodeId) {
        let mut network = self.lock();
        if let Some(&process) = network.nodes.get(&node) {
            network.forget(process);
        }
    }
}

#[cfg(test)]
mod tests {
    use revenant::ids::ProcessId;

    use super::*;

    fn network() -> NetworkState {
        let latency = DurationRange { min: Duration::from_micros(200), max: Duration::from_millis(2) };
        NetworkState::new(3, latency)
    }

    const MASTER: (Address, Incarnation) = (Address::MASTER, (1, 1));
    const WRITER: (Address, Incarnation) = (Address::WRITER, (1, 1));

    fn executor(n: u32) -> (Address, Incarnation) {
        (Address::executor(ProcessId::TaskManager(n)), (2 + n as usize, 1))
    }

    #[test]
    fn a_connection_keeps_its_order_whatever_is_drawn() {
        let mut network = network();
        let mut last = Time(0);
        for n in 0..300 {
            let kind = ["SubmitTask", "CancelTask"][n % 2];
            let (at, _) = network.arrival(Time(n as u64), MASTER, executor(1), kind);
            assert!(at > last);
            last = at;
        }
        let (other, _) = network.arrival(Time(300), MASTER, executor(2), "SubmitTask");
        assert!(other.0 <= 2_000_300);
    }

    #[test]
    fn latencies_stay_in_their_range_and_local_messages_are_quick() {
        for n in 1..200 {
            let mut network = network();
            let (remote, _) = network.arrival(Time(0), MASTER, executor(n), "SubmitTask");
            assert!((200_000..=2_000_000).contains(&remote.0));
            let (local, _) = network.arrival(Time(0), MASTER, WRITER, "WriteJobEvent");
            assert!((1_000..=20_000).contains(&local.0));
        }
    }

    #[test]
    fn a_new_incarnation_has_a_connection_of_its_own() {
        let mut network = network();
        for _ in 0..500 {
            network.arrival(Time(0), MASTER, executor(1), "SubmitTask");
        }
        let (old, _) = network.arrival(Time(0), MASTER, executor(1), "SubmitTask");
        let earliest = (0..200)
            .map(|n| network.arrival(Time(0), (Address::MASTER, (1, 2 + n)), executor(1), "SubmitTask").0)
            .min();
        assert!(earliest.unwrap() < old);
    }
}
