//! Passing the baton: who goes on, and with what.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use revenant::actor::Time;

use super::world::{Shared, who_waits};
use crate::agenda::{Due, Entry, ProcessIndex};
use crate::trace::RunEnd;

/// Waits for the baton and for the next thing that is due for its holder; `None` when the run is
/// over, which only the conductor sees.
pub struct Turn<'a> {
    shared: &'a Shared,
    me: ProcessIndex,
}

impl<'a> Turn<'a> {
    pub const fn of(shared: &'a Shared, process: ProcessIndex) -> Self {
        Self { shared, me: process }
    }

    /// The task that starts processes and fires faults at given times.
    pub fn conductor(shared: &'a Shared) -> Self {
        Self { shared, me: shared.process_count() }
    }
}

impl Future for Turn<'_> {
    type Output = Option<(Time, Entry)>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let conductor = self.shared.process_count();
        let mut world = self.shared.world();
        if world.baton == self.me {
            let mut agenda = self.shared.agenda.lock();
            let next = loop {
                if self.shared.options.until.is_some_and(|until| world.record.events >= until) {
                    world.cut();
                }
                if world.ended.is_some() && world.settled(&mut agenda) {
                    if self.me == conductor {
                        return Poll::Ready(None);
                    }
                    break conductor;
                }
                let Some((time, entry)) = agenda.peek() else {
                    let why = who_waits(&world, &agenda, "nothing is left that could happen");
                    world.stop(RunEnd::Stuck { why });
                    continue;
                };
                let limit = self.shared.scenario.cluster.time_limit;
                if time.since(Time(0)) > limit.0 {
                    let why = format!("the time limit of {limit} is reached");
                    let why = who_waits(&world, &agenda, &why);
                    world.stop(RunEnd::Stuck { why });
                    continue;
                }
                let limit = self.shared.scenario.cluster.event_limit;
                if world.record.events >= limit {
                    let why =
                        format!("the limit of {limit} events is reached; is a pause or timeout too short?");
                    let why = who_waits(&world, &agenda, &why);
                    world.stop(RunEnd::Stuck { why });
                    continue;
                }
                if self.shared.loses(&mut world, time, entry) {
                    agenda.pop();
                    continue;
                }
                let owner = match entry.due {
                    Due::Boot | Due::Fault(_) => conductor,
                    _ if world.processes[entry.process].paused => {
                        if let Some((time, entry)) = agenda.pop() {
                            self.shared.park(&mut world, &mut agenda, time, entry);
                        }
                        continue;
                    }
                    _ => entry.process,
                };
                if owner != self.me {
                    break owner;
                }
                let due = agenda.pop();
                world.now = time;
                self.shared.advance_clock(time);
                return Poll::Ready(due);
            };
            world.pass(next);
        }
        let slot = &mut world.wakers[self.me];
        if slot.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            *slot = Some(context.waker().clone());
        }
        Poll::Pending
    }
}
