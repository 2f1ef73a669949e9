//! The door: how each effect of an actor leaves it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use revenant::actor::{Effect, Time};
use revenant::ids::{ActorId, Address};
use revenant::message::{JobStatus, Message};
use revenant::note::Note;

use super::process::{Fate, Process};
use crate::agenda::{Due, Entry};
use crate::draw::Purpose;
use crate::network::Passage;
use crate::trace::{RunEnd, Touched, TraceKind};

impl Process {
    /// Carries out one effect of `actor`.
    pub(super) fn leaves(&mut self, now: Time, actor: ActorId, effect: Effect) -> Fate {
        let shared = &self.shared;
        let from = Address::new(self.boot.process, actor);
        match effect {
            Effect::Send { to, message } => return self.send(now, from, to, message),
            Effect::SetTimer { timer, at } => {
                let (order, due) = {
                    let mut world = shared.world();
                    let order = world.draws.draw(Purpose::TimerOrder, from).order;
                    (order, world.processes[self.index].clock.reaches(at, now))
                };
                shared.agenda.lock().set_timer(at, due, order, (self.index, actor, timer));
            }
            Effect::CancelTimer { timer } => shared.agenda.lock().cancel_timer(self.index, actor, timer),
            Effect::Disk { op, volume, action, purpose } => {
                let (ticket, at, order) = shared.disks.lock().begin(now, from, volume, purpose, action);
                shared.disk_struck();
                let entry = Entry { process: self.index, due: Due::Disk { actor, op, ticket } };
                shared.agenda.lock().push(at, order, entry);
            }
            Effect::Spawn(task) => {
                let id = ActorId::Task(task.attempt);
                let make = shared.engine().task_actor;
                let made = catch_unwind(AssertUnwindSafe(|| make(&self.boot, &shared.program, *task)));
                let (at, order) = self.local_arrival(now, from, id, "spawn");
                match made {
                    Ok(task) => self.add(id, task, at, order),
                    Err(panic) => {
                        self.panicked(id, &*panic);
                        return Fate::Dead;
                    }
                }
            }
            Effect::Stop(id) => {
                self.actors.remove(&id);
                self.shared.agenda.lock().cancel_actor(self.index, id);
            }
            Effect::Note(note) => self.note(now, actor, note),
            Effect::Exit(status) => {
                shared.exit(self.index, status);
                return Fate::Dead;
            }
        }
        Fate::Alive
    }

    fn local_arrival(&self, now: Time, from: Address, to: ActorId, kind: &'static str) -> (Time, u64) {
        let to = Address::new(self.boot.process, to);
        self.shared.network.lock().local_arrival(now, self.index, from, to, kind)
    }

    /// A message goes to the incarnation that is alive now; if there is none, it is lost.
    fn send(&mut self, now: Time, from: Address, to: Address, mut message: Message) -> Fate {
        if self.shared.options.codec {
            match postcard::to_stdvec(&message).and_then(|bytes| postcard::from_bytes(&bytes)) {
                Ok(decoded) => message = decoded,
                Err(error) => {
                    let message = format!("{} cannot go over the wire: {error}", message.kind());
                    let process = self.boot.process;
                    self.shared.world().stop(RunEnd::Panicked { process, actor: from.actor, message });
                    return Fate::Dead;
                }
            }
        }
        let befalls = std::mem::take(&mut self.befalls);
        let Some(receiver) = self.shared.index_of(to.process) else { return Fate::Alive };
        let incarnation = {
            let world = self.shared.world();
            let receiver = &world.processes[receiver];
            if !receiver.alive {
                return Fate::Alive;
            }
            receiver.incarnation
        };
        let kind = message.kind();
        tracing::trace!(%to, kind, "send");
        let due = |message| Due::Message { from, sender: self.index, actor: to.actor, message };
        if receiver == self.index {
            let (at, order) = self.local_arrival(now, from, to.actor, kind);
            self.shared.agenda.lock().push(at, order, Entry { process: receiver, due: due(message) });
            return Fate::Alive;
        }
        {
            let mut world = self.shared.world();
            if world.survivors.is_asked() {
                world.survivors.left(self.index, &(now, from, to, &message));
            }
        }
        let sender = (self.index, self.incarnation);
        let receives = (to, (receiver, incarnation));
        let passage = self.shared.network.lock().send(now, (from, sender), receives, kind, &befalls);
        let Passage { arrival, again, what, fired } = passage;
        if !what.is_empty() {
            let mut world = self.shared.world();
            self.shared.fired(&mut world, &fired);
            let (process, incarnation, actor) = (self.boot.process, self.incarnation, Some(from.actor));
            for what in what {
                let touched = TraceKind::Message(Touched { kind, from, to, what });
                world.record.trace(now, process, incarnation, actor, touched);
            }
        }
        let mut agenda = self.shared.agenda.lock();
        if let Some((at, order)) = again {
            agenda.push(at, order, Entry { process: receiver, due: due(message.clone()) });
        }
        if let Some((at, order)) = arrival {
            agenda.push(at, order, Entry { process: receiver, due: due(message) });
        }
        Fate::Alive
    }

    fn note(&self, now: Time, actor: ActorId, note: Note) {
        let detail = matches!(
            note,
            Note::EventBuffered { .. }
                | Note::EventsDurable { .. }
                | Note::SplitAssigned { .. }
                | Note::TaskStarted { .. }
        );
        if detail {
            tracing::debug!(target: "revenant::note", "{note:?}");
        } else {
            tracing::info!(target: "revenant::note", "{note:?}");
        }
        let mut world = self.shared.world();
        if matches!(note, Note::JobStatusChanged { status: JobStatus::Running, .. }) {
            world.record.detail.profile.recovery_ends();
        }
        world.record.trace(now, self.boot.process, self.incarnation, Some(actor), TraceKind::Note(note));
    }
}
