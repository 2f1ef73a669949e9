//! The simulated network: when a message arrives.
//!
//! Messages between two incarnations of processes arrive in the order in which they were sent, as
//! over one TCP connection; so do messages between two actors of one process. Connections are
//! independent of each other. Whether the receiver still lives is decided when the message is due.
//!
//! What a scenario says can befall messages between processes: they are lost, late, repeated or come out
//! of order, one by one, by rate, or while a [standing fault](rules) lasts. Nothing befalls messages
//! within a process, and no message is changed.

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
use crate::draw::{Draw, Draws, Purpose};
use crate::scenario::{DurationRange, Flight, MessageFault, MessageTrigger, Scenario, Span, Trigger};
use crate::trace::What;

mod rates;
mod rules;

use rates::Rates;
use rules::{Departure, Rules};

/// Delay between two actors of one process.
const LOCAL_DELAY: DurationRange =
    DurationRange { min: Duration::from_micros(1), max: Duration::from_micros(20) };

/// One incarnation of a process.
pub type Incarnation = (ProcessIndex, u32);

/// A fault that waits for a message.
#[derive(Debug)]
struct Waiting {
    fault: usize,
    trigger: MessageTrigger,
    seen: u32,
}

/// How a message goes.
#[derive(Debug, Default)]
pub struct Passage {
    /// When it arrives, and its order among what is due then; nothing if it is lost.
    pub arrival: Option<(Time, u64)>,
    /// The same for its repetition.
    pub again: Option<(Time, u64)>,
    /// What befell it.
    pub what: Vec<What>,
    /// The faults that took effect with it.
    pub fired: Vec<usize>,
}

#[derive(Debug)]
pub struct NetworkState {
    pub rules: Rules,
    rates: Rates,
    waiting: Vec<Waiting>,
    draws: Draws,
    latency: DurationRange,
    /// When the last message of each connection arrives.
    connections: BTreeMap<(Incarnation, Incarnation), Time>,
    mailboxes: BTreeMap<(ProcessIndex, ActorId, ActorId), Time>,
    nodes: BTreeMap<NodeId, ProcessIndex>,
}

impl NetworkState {
    pub fn new(scenario: &Scenario) -> Self {
        let waiting = scenario.faults.iter().enumerate().filter_map(|(fault, at)| match at.at {
            Trigger::Message(trigger) => Some(Waiting { fault, trigger, seen: 0 }),
            _ => None,
        });
        Self { waiting: waiting.collect(), ..Self::calm(scenario.schedule.seed, &scenario.network) }
    }

    fn calm(seed: u64, network: &crate::scenario::Network) -> Self {
        Self {
            rules: Rules::default(),
            rates: Rates::new(network),
            waiting: Vec::new(),
            draws: Draws::new(seed),
            latency: network.latency,
            connections: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// The faults that wait for this message, which is about to leave.
    pub fn counted(&mut self, flight: Flight) -> Vec<usize> {
        let takes = self.waiting.iter_mut().filter(|waiting| waiting.trigger.takes(flight));
        takes
            .filter_map(|waiting| {
                waiting.seen += 1;
                (waiting.seen == waiting.trigger.occurrence).then_some(waiting.fault)
            })
            .collect()
    }

    /// When a message within a process that leaves now arrives, and its order among what is due then.
    pub fn local_arrival(
        &mut self,
        now: Time,
        process: ProcessIndex,
        from: Address,
        to: Address,
        kind: &'static str,
    ) -> (Time, u64) {
        let draw = self.draws.draw(Purpose::LocalDelay, (from, to, kind));
        let last = self.mailboxes.entry((process, from.actor, to.actor)).or_default();
        (in_order(last, now + draw.within(LOCAL_DELAY)), draw.order)
    }

    /// How a message between processes goes that leaves now, and these faults befall.
    pub fn send(
        &mut self,
        now: Time,
        (from, sender): (Address, Incarnation),
        (to, receiver): (Address, Incarnation),
        kind: &'static str,
        befalls: &[(usize, MessageFault)],
    ) -> Passage {
        let latency: Draw = self.draws.draw(Purpose::RemoteLatency, (from, to, kind));
        let drawn = self.rates.throw(now, &mut self.draws, (from, to, kind));
        let mut passage = Passage::default();
        let flight = Flight { kind, from: from.process, to: to.process };
        let departure =
            if self.rules.is_empty() { Departure::default() } else { self.rules.departure(flight) };
        passage.fired = departure.fired;
        if departure.lost {
            passage.what.push(What::Cut);
            return passage;
        }
        let (mut dropped, mut waits, mut late, mut again) =
            (drawn.drop, departure.slower, None, drawn.duplicate);
        if !waits.is_zero() {
            passage.what.push(What::Slowed(waits));
        }
        let (mut delay, mut overtaken) = (drawn.delay, drawn.overtake);
        for &(fault, what) in befalls {
            passage.fired.push(fault);
            match what {
                MessageFault::Drop => dropped = true,
                MessageFault::Delay(Span(by)) => *delay.get_or_insert_default() += by,
                MessageFault::Overtake(Span(by)) => *overtaken.get_or_insert_default() += by,
                MessageFault::Duplicate(Span(after)) => again = Some(after),
            }
        }
        if dropped {
            passage.what = vec![What::Dropped];
            return passage;
        }
        if let Some(by) = delay {
            waits += by;
            passage.what.push(What::Delayed(by));
        }
        if let Some(by) = overtaken {
            late = Some(by);
            passage.what.push(What::Overtaken(by));
        }
        let last = self.connections.entry((sender, receiver)).or_default();
        let arrival = in_order(last, now + latency.within(self.latency) + waits) + late.unwrap_or_default();
        passage.arrival = Some((arrival, latency.order));
        if let Some(after) = again {
            passage.again = Some((arrival + after, latency.order));
            passage.what.push(What::Repeated(after));
        }
        passage
    }

    /// The connections between these processes begin anew.
    pub fn begin_anew(&mut self, between: impl Fn(ProcessIndex, ProcessIndex) -> bool) {
        self.connections.retain(|(sender, receiver), _| !between(sender.0, receiver.0));
    }

    /// The keys of rates that never struck.
    pub fn idle_rates(&self) -> Vec<&'static str> {
        self.rates.idle()
    }

    fn forget(&mut self, process: ProcessIndex) {
        self.mailboxes.retain(|(owner, _, _), _| *owner != process);
        self.connections.retain(|(sender, receiver), _| sender.0 != process && receiver.0 != process);
    }
}

/// Not before what was sent earlier.
fn in_order(last: &mut Time, arrival: Time) -> Time {
    *last = arrival.max(Time(last.0 + 1));
    *last
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
        Self(Mutex::new(NetworkState::calm(0, &crate::scenario::Network::default())))
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
        NetworkState::calm(3, &crate::scenario::Network::default())
    }

    type End = (Address, Incarnation);

    fn sent(network: &mut NetworkState, now: u64, from: End, to: End, kind: &'static str) -> Time {
        network.send(Time(now), from, to, kind, &[]).arrival.unwrap().0
    }

    const MASTER: (Address, Incarnation) = (Address::MASTER, (1, 1));
    fn executor(n: u32) -> (Address, Incarnation) {
        (Address::executor(ProcessId::TaskManager(n)), (2 + n as usize, 1))
    }

    #[test]
    fn a_connection_keeps_its_order_whatever_is_drawn() {
        let mut network = network();
        let mut last = Time(0);
        for n in 0..300 {
            let kind = ["SubmitTask", "CancelTask"][n % 2];
            let at = sent(&mut network, n as u64, MASTER, executor(1), kind);
            assert!(at > last);
            last = at;
        }
        let other = sent(&mut network, 300, MASTER, executor(2), "SubmitTask");
        assert!(other.0 <= 2_000_300);
    }

    #[test]
    fn latencies_stay_in_their_range_and_local_messages_are_quick() {
        for n in 1..200 {
            let mut network = network();
            let remote = sent(&mut network, 0, MASTER, executor(n), "SubmitTask");
            assert!((200_000..=2_000_000).contains(&remote.0));
            let (local, _) =
                network.local_arrival(Time(0), 1, Address::MASTER, Address::WRITER, "WriteJobEvent");
            assert!((1_000..=20_000).contains(&local.0));
        }
    }

    #[test]
    fn a_new_incarnation_has_a_connection_of_its_own() {
        let mut network = network();
        for _ in 0..500 {
            sent(&mut network, 0, MASTER, executor(1), "SubmitTask");
        }
        let old = sent(&mut network, 0, MASTER, executor(1), "SubmitTask");
        let earliest = (0..200)
            .map(|n| sent(&mut network, 0, (Address::MASTER, (1, 2 + n)), executor(1), "SubmitTask"))
            .min();
        assert!(earliest.unwrap() < old);
    }

    /// When a message arrives that this befalls, and the next two of its connection.
    fn befallen(what: MessageFault) -> (Passage, [Time; 2]) {
        let mut network = network();
        let passage = network.send(Time(0), MASTER, executor(1), "SubmitTask", &[(7, what)]);
        (passage, [1, 2].map(|now| sent(&mut network, now, MASTER, executor(1), "SubmitTask")))
    }

    #[test]
    fn what_befalls_a_message_touches_the_others_only_if_they_must_wait() {
        let mut calm = network();
        let calm = [0, 1, 2].map(|now| sent(&mut calm, now, MASTER, executor(1), "SubmitTask"));
        let second = Duration::from_secs(1);

        let (dropped, others) = befallen(MessageFault::Drop);
        assert_eq!((dropped.arrival, dropped.what, dropped.fired), (None, vec![What::Dropped], vec![7]));
        assert!(others[0] <= calm[1] && others[1] <= calm[2]);

        let (delayed, others) = befallen(MessageFault::Delay(Span(second)));
        assert_eq!(delayed.arrival.unwrap().0, calm[0] + second);
        assert_eq!(others, [Time(calm[0].0 + 1) + second, Time(calm[0].0 + 2) + second]);

        let (overtaken, others) = befallen(MessageFault::Overtake(Span(second)));
        assert_eq!(overtaken.arrival.unwrap().0, calm[0] + second);
        assert_eq!(others, calm[1..]);

        let (repeated, others) = befallen(MessageFault::Duplicate(Span(second)));
        assert_eq!((repeated.arrival.unwrap().0, repeated.again.unwrap().0), (calm[0], calm[0] + second));
        assert_eq!(others, calm[1..]);
    }

    #[test]
    fn a_message_is_counted_by_who_waits_for_it() {
        let text = |at: &str| format!("[job]\nname = ''\n[[fault]]\nat = 'message {at}'\ndo = 'drop'\n");
        let flight =
            |n| Flight { kind: "SubmitTask", from: ProcessId::JOB_MANAGER, to: ProcessId::TaskManager(n) };
        for (at, counted) in [
            ("SubmitTask#2", [false, true, false, false]),
            ("SubmitTask#2 to task-manager-1", [false, false, true, false]),
            ("SubmitTask#1 from client", [false; 4]),
            ("CancelTask#1", [false; 4]),
        ] {
            let mut network = NetworkState::new(&Scenario::parse("", &text(at)).unwrap());
            assert_eq!([1, 2, 1, 1].map(|n| network.counted(flight(n)) == [0]), counted, "{at}");
        }
    }
}
