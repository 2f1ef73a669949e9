//! Faults of the network carried out: those that begin and end, and what they do to messages.

use revenant::actor::{Effect, Time};
use revenant::ids::{Address, ProcessId};

use super::process::{Fate, Process};
use super::world::{Shared, World};
use crate::agenda::{Due, Entry};
use crate::scenario::{Action, Flight, NetworkFault};
use crate::trace::{Touched, TraceKind, What};

impl Shared {
    /// Begins or ends a standing fault, or resets connections; says whether it could be.
    pub(super) fn break_network(&self, fault: usize, what: NetworkFault) -> bool {
        let mut world = self.world();
        if world.fired[fault] {
            return false;
        }
        let process = self.scenario.faults[fault].at.process().unwrap_or(ProcessId::JOB_MANAGER);
        let Some(teller) = self.index_of(process) else { return false };
        let mut lost = Vec::new();
        match what {
            NetworkFault::Message(_) => return false,
            NetworkFault::Heal(_) | NetworkFault::HealAll => {
                if !self.network.lock().rules.heal(what) {
                    return false;
                }
            }
            NetworkFault::Reset(route) => {
                let crosses = |from: ProcessId, to: ProcessId| {
                    let flight = Flight { kind: "", from, to };
                    route.takes(flight) || route.back().takes(flight)
                };
                let ids: Vec<ProcessId> = world.processes.iter().map(|process| process.id).collect();
                lost = self.agenda.lock().lose(|sender, receiver| crosses(ids[sender], ids[receiver]));
                if lost.is_empty() {
                    return false;
                }
                self.network.lock().begin_anew(|sender, receiver| crosses(ids[sender], ids[receiver]));
            }
            _ => self.network.lock().rules.begin(fault, what),
        }
        world.trace(teller, TraceKind::NetworkFault(what));
        world.stirred();
        // Others fire when they meet a message.
        if !what.stands() {
            self.fired(&mut world, &[fault]);
        }
        for (receiver, due) in lost {
            if let Due::Message { from, actor, message, .. } = due {
                let to = Address::new(world.processes[receiver].id, actor);
                let touched = Touched { kind: message.kind(), from, to, what: What::Reset };
                world.trace(receiver, TraceKind::Message(touched));
            }
        }
        true
    }

    /// These faults have taken effect.
    pub(super) fn fired(&self, world: &mut World, faults: &[usize]) {
        for &fault in faults {
            let process = self.scenario.faults[fault].at.process().unwrap_or(ProcessId::JOB_MANAGER);
            let Some(process) = self.index_of(process) else { continue };
            world.fired[fault] = true;
            world.record.fold(&("fault", fault as u64));
            world.trace(process, TraceKind::FaultFired { fault });
        }
    }

    /// Whether what is due is a message whose way is closed; then it is lost, and told so.
    pub(super) fn loses(&self, world: &mut World, now: Time, entry: &Entry) -> bool {
        let Due::Message { from, sender, actor, message } = &entry.due else { return false };
        if *sender == entry.process {
            return false;
        }
        let to = Address::new(world.processes[entry.process].id, *actor);
        let flight = Flight { kind: message.kind(), from: from.process, to: to.process };
        let Some(fired) = self.network.lock().rules.arrival(flight) else { return false };
        world.now = now;
        self.fired(world, &fired);
        let touched = Touched { kind: flight.kind, from: *from, to, what: What::LostOnTheWay };
        world.trace(entry.process, TraceKind::Message(touched));
        true
    }
}

impl Process {
    /// Fires the faults that wait for this message; those that befall the message wait until it leaves.
    pub(super) fn sends(&mut self, effect: &Effect) -> Fate {
        let Effect::Send { to, message } = effect else { return Fate::Alive };
        if to.process == self.boot.process {
            return Fate::Alive;
        }
        let flight = Flight { kind: message.kind(), from: self.boot.process, to: to.process };
        let waiting = self.shared.network.lock().counted(flight);
        for fault in waiting {
            match self.shared.scenario.faults[fault].action {
                Action::Network(NetworkFault::Message(what)) => self.befalls.push((fault, what)),
                _ => {
                    self.shared.act(fault, None);
                }
            }
        }
        if self.shared.world().processes[self.index].alive { Fate::Alive } else { Fate::Dead }
    }
}
