//! Standing faults: which messages they take, from their beginning until they are healed.
//!
//! A partition or cut loses what is sent while it stands and what would arrive while it stands, so a
//! message must find the way open at both ends of its flight. A fault of one kind of message is met when
//! the message is sent.

use std::time::Duration;

use crate::scenario::{Flight, NetworkFault, Span};

#[derive(Debug)]
struct Rule {
    /// Position in the scenario.
    fault: usize,
    what: NetworkFault,
    /// Whether it has met a message.
    struck: bool,
}

#[derive(Debug, Default)]
pub struct Rules(Vec<Rule>);

/// What standing faults do to a message that is sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Departure {
    pub lost: bool,
    pub slower: Duration,
    /// The faults that met a message for the first time.
    pub fired: Vec<usize>,
}

impl Rules {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn begin(&mut self, fault: usize, what: NetworkFault) {
        self.0.push(Rule { fault, what, struck: false });
    }

    /// Ends what the heal names; says whether there was something.
    pub fn heal(&mut self, heal: NetworkFault) -> bool {
        let before = self.0.len();
        self.0.retain(|rule| !heal.heals(rule.what));
        self.0.len() < before
    }

    pub fn departure(&mut self, flight: Flight) -> Departure {
        let mut departure = Departure::default();
        for rule in &mut self.0 {
            let meets = match rule.what {
                NetworkFault::DropKind(kind, route) => kind == flight.kind && route.takes(flight),
                what => closes(what, flight),
            };
            let slower = match rule.what {
                NetworkFault::Slow(route, Span(by)) if route.takes(flight) => Some(by),
                _ => None,
            };
            departure.lost |= meets;
            departure.slower += slower.unwrap_or_default();
            if (meets || slower.is_some()) && !std::mem::replace(&mut rule.struck, true) {
                departure.fired.push(rule.fault);
            }
        }
        departure
    }

    /// Whether a message that is due now does not arrive, and the faults that met their first.
    pub fn arrival(&mut self, flight: Flight) -> Option<Vec<usize>> {
        let mut fired = Vec::new();
        let mut lost = false;
        for rule in self.0.iter_mut().filter(|rule| closes(rule.what, flight)) {
            lost = true;
            if !std::mem::replace(&mut rule.struck, true) {
                fired.push(rule.fault);
            }
        }
        lost.then_some(fired)
    }
}

/// Whether the way of the message is closed.
fn closes(what: NetworkFault, flight: Flight) -> bool {
    match what {
        NetworkFault::Partition(route) => route.takes(flight) || route.back().takes(flight),
        NetworkFault::Cut(route) => route.takes(flight),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use revenant::ids::ProcessId::{self, TaskManager};

    use super::*;
    use crate::scenario::Action;

    const JOB_MANAGER: ProcessId = ProcessId::JOB_MANAGER;

    fn fault(text: &str) -> NetworkFault {
        match text.parse() {
            Ok(Action::Network(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }

    fn flight(kind: &'static str, from: ProcessId, to: ProcessId) -> Flight {
        Flight { kind, from, to }
    }

    #[test]
    fn a_partition_closes_both_ways_and_a_cut_one() {
        let there = flight("SubmitTask", JOB_MANAGER, TaskManager(1));
        let back = flight("HeartbeatResponse", TaskManager(1), JOB_MANAGER);
        let other = flight("SubmitTask", JOB_MANAGER, TaskManager(2));
        for (text, lost) in [
            ("partition job-manager from task-manager-1", [true, true, false]),
            ("partition any from task-manager-2", [false, false, true]),
            ("cut job-manager to task-manager-1", [true, false, false]),
            ("cut any to any", [true, true, true]),
        ] {
            let mut rules = Rules::default();
            rules.begin(0, fault(text));
            assert_eq!([there, back, other].map(|flight| rules.departure(flight).lost), lost, "{text}");
            assert_eq!([there, back, other].map(|flight| rules.arrival(flight).is_some()), lost, "{text}");
        }
    }

    #[test]
    fn a_fault_of_a_kind_is_met_when_the_message_is_sent_only() {
        let mut rules = Rules::default();
        rules.begin(0, fault("drop SubmitTask to task-manager-1"));
        let met = flight("SubmitTask", JOB_MANAGER, TaskManager(1));
        assert!(rules.departure(met).lost);
        assert_eq!(rules.arrival(met), None);
        assert!(!rules.departure(flight("CancelTask", JOB_MANAGER, TaskManager(1))).lost);
        assert!(!rules.departure(flight("SubmitTask", JOB_MANAGER, TaskManager(2))).lost);
    }

    #[test]
    fn a_fault_fires_with_its_first_message_and_ends_with_its_heal() {
        let mut rules = Rules::default();
        rules.begin(4, fault("slow job-manager to any by 50 ms"));
        rules.begin(5, fault("slow any to task-manager-1 by 2 ms"));
        let both = flight("SubmitTask", JOB_MANAGER, TaskManager(1));
        let departure = rules.departure(flight("SubmitTask", JOB_MANAGER, TaskManager(2)));
        assert_eq!((departure.slower, departure.fired), (Duration::from_millis(50), vec![4]));
        let departure = rules.departure(both);
        assert_eq!((departure.slower, departure.fired), (Duration::from_millis(52), vec![5]));
        assert!(!rules.heal(fault("heal job-manager from task-manager-1")));
        assert!(rules.heal(fault("heal job-manager from any")));
        assert_eq!(rules.departure(both).slower, Duration::from_millis(2));
        assert!(rules.heal(fault("heal network")));
        assert!(rules.is_empty() && !rules.heal(fault("heal network")));
    }
}
