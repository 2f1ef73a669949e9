//! One incarnation of a process: its actors, and how an event is handled.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use revenant::actor::{Actor, Boot, Effect, Event, Outbox, Time};
use revenant::ids::ActorId;
use revenant::message::Message;

use super::points::{Place, Points};
use super::profile;
use super::turn::Turn;
use super::world::Shared;
use crate::agenda::{Due, Entry, ProcessIndex};
use crate::scenario::MessageFault;
use crate::trace::{RunEnd, TraceKind};

/// Lives until it is killed: the future of a process's node.
pub async fn incarnation(shared: Arc<Shared>, index: ProcessIndex) {
    if let Some(mut process) = Process::boot(Arc::clone(&shared), index) {
        while let Some((time, entry)) = Turn::of(&shared, index).await {
            if process.happens(time, entry) == Fate::Dead {
                break;
            }
        }
    }
    // The process is killed or the run has stopped: nothing may leave any more, and the executor
    // drops this task when it sees the kill.
    let conductor = shared.process_count();
    shared.world().pass(conductor);
    std::future::pending::<()>().await;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    Alive,
    Dead,
}

pub struct ActorSlot {
    pub(super) actor: Box<dyn Actor>,
    /// Events that it has got.
    events: u64,
}

pub struct Process {
    pub(super) shared: Arc<Shared>,
    pub(super) index: ProcessIndex,
    pub(super) boot: Boot,
    pub(super) incarnation: u32,
    pub(super) actors: BTreeMap<ActorId, ActorSlot>,
    outbox: Outbox,
    points: Points,
    /// Effects that have not left, since the process was paused between two of them.
    held: Option<(Place, Vec<Effect>)>,
    /// Faults that befall the message that leaves next.
    pub(super) befalls: Vec<(usize, MessageFault)>,
}

impl Process {
    fn boot(shared: Arc<Shared>, index: ProcessIndex) -> Option<Self> {
        let (boot, incarnation) = shared.boot_record(index);
        let made = catch_unwind(AssertUnwindSafe(|| (shared.engine().actors)(&boot, &shared.program)));
        let collect = shared.options.collect.includes(boot.process);
        let points = Points::new(boot.process, incarnation, &shared.scenario.faults, collect);
        let mut process = Self {
            shared,
            index,
            boot,
            incarnation,
            actors: BTreeMap::new(),
            outbox: Outbox::new(),
            points,
            held: None,
            befalls: Vec::new(),
        };
        match made {
            Ok(actors) => {
                let now = process.shared.world().now;
                for (order, (id, actor)) in actors.into_iter().enumerate() {
                    process.add(id, actor, now, order as u64);
                }
                Some(process)
            }
            Err(panic) => {
                process.panicked(ActorId::Master, &*panic);
                None
            }
        }
    }

    /// Adds an actor, to be started at `at`.
    pub(super) fn add(&mut self, id: ActorId, actor: Box<dyn Actor>, at: Time, order: u64) {
        self.actors.insert(id, ActorSlot { actor, events: 0 });
        let entry = Entry { process: self.index, due: Due::Start { actor: id } };
        self.shared.agenda.lock().push(at, order, entry);
    }

    fn happens(&mut self, now: Time, entry: Entry) -> Fate {
        match entry.due {
            Due::Start { actor } => self.deliver(now, actor, Event::Start),
            Due::Message { from, actor, message, .. } => {
                self.deliver(now, actor, Event::Message { from, message })
            }
            Due::Timer { actor, timer } => self.deliver(now, actor, Event::Timer(timer)),
            Due::Disk { actor, op, ticket } => {
                let Some((result, happenings)) = self.shared.disks.lock().complete(ticket) else {
                    return Fate::Alive;
                };
                for (actor, what) in happenings {
                    let (process, incarnation) = (self.boot.process, self.incarnation);
                    self.shared.world().record.trace(now, process, incarnation, actor, what);
                }
                self.deliver(now, actor, Event::Disk { op, result })
            }
            Due::DiskDone { actor, op, result } => self.deliver(now, actor, Event::Disk { op, result }),
            Due::Resumed => match self.held.take() {
                Some((place, effects)) => self.leave(Place { time: now, ..place }, true, effects.into_iter()),
                None => Fate::Alive,
            },
            Due::Boot | Due::Fault(_) => Fate::Alive,
        }
    }

    /// Hands the event to its actor, if there is (still) one, and lets the effects leave.
    fn deliver(&mut self, now: Time, id: ActorId, event: Event) -> Fate {
        let Some(slot) = self.actors.get_mut(&id) else { return Fate::Alive };
        slot.events += 1;
        let (process, incarnation) = (self.boot.process, self.incarnation);
        let run_event = {
            let mut world = self.shared.world();
            if world.survivors.is_asked() {
                world.survivors.happened_in(self.index, &(now, incarnation, id, &event));
            }
            world.record.event(now, process, incarnation, id, &event)
        };
        if id == ActorId::Master && matches!(&event, Event::Message { message: Message::CancelJob(_), .. }) {
            self.shared.world().trace(self.index, TraceKind::CancelReached);
        }
        let _span =
            tracing::error_span!("handle", at = %now, by = %format_args!("{process}/{incarnation}:{id}"))
                .entered();
        tracing::trace!(?event, "event");
        let mut outbox = std::mem::take(&mut self.outbox);
        let measured = self.shared.options.profile.then(|| (profile::kind(&event), profile::Moment::now()));
        let local = self.shared.world().processes[self.index].clock.shows(now);
        let handled = catch_unwind(AssertUnwindSafe(|| slot.actor.handle(local, event, &mut outbox)));
        if let Some((kind, since)) = measured {
            self.shared.world().record.detail.profile.add(id, kind, since);
        }
        if let Err(panic) = handled {
            self.panicked(id, &*panic);
            return Fate::Dead;
        }
        let probes = outbox.take_probes();
        if !probes.is_empty() {
            let mut world = self.shared.world();
            for probe in probes {
                world.record.probe(probe);
            }
        }
        // What changes a state that matters says so by an effect. A large job that is measured is not looked at.
        let is_asked = !outbox.effects().is_empty() && !self.shared.options.profile;
        if let Some(message) = is_asked.then(|| slot.actor.contradiction()).flatten() {
            let end = RunEnd::Contradicted { process, actor: id, message };
            self.shared.world().stop(end);
            return Fate::Dead;
        }
        let place = Place { actor: id, event: slot.events, effect: 0, time: now, run_event };
        let fate = self.leave(place, false, outbox.drain());
        self.outbox = outbox;
        fate
    }

    /// Lets effects leave, one after the other, until the process dies or stands still. The point before
    /// the first of them was `passed` if it stood still there.
    fn leave(
        &mut self,
        mut place: Place,
        mut passed: bool,
        mut effects: impl Iterator<Item = Effect>,
    ) -> Fate {
        while let Some(effect) = effects.next() {
            if effect.counts() {
                if !std::mem::take(&mut passed)
                    && (self.passes(place, Some(&effect)) == Fate::Dead || self.sends(&effect) == Fate::Dead)
                {
                    return Fate::Dead;
                }
                if self.shared.is_paused(self.index) {
                    self.held = Some((place, std::iter::once(effect).chain(effects).collect()));
                    return Fate::Alive;
                }
                place.effect += 1;
            }
            if self.leaves(place.time, place.actor, effect) == Fate::Dead {
                return Fate::Dead;
            }
        }
        self.passes(place, None)
    }

    /// Passes a crash point, or dies at it.
    fn passes(&mut self, place: Place, next: Option<&Effect>) -> Fate {
        if self.points.idle() {
            return Fate::Alive;
        }
        let (fires, found) = self.points.before(place, next);
        if let Some(mut found) = found {
            if self.shared.options.survivors {
                self.shared.survivors_of(self.index, &mut found);
            }
            self.shared.world().record.point(found);
        }
        for (fault, point) in fires {
            self.shared.act(fault, Some(point));
        }
        if self.shared.world().processes[self.index].alive { Fate::Alive } else { Fate::Dead }
    }

    pub(super) fn panicked(&self, actor: ActorId, panic: &(dyn std::any::Any + Send)) {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        let end = RunEnd::Panicked { process: self.boot.process, actor, message: message.to_owned() };
        self.shared.world().stop(end);
    }
}
