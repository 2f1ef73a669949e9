//! Everything that is going to happen, in the order in which it will.
//!
//! The one order of a run is (time, drawn order, sequence of insertion). The agenda decides what
//! is next and nothing else; time is what it says, and madsim's clock follows. It is a madsim
//! [`Simulator`]: when a node is killed, what was due for it, and its timers, are gone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Mutex, MutexGuard};

use madsim::Config;
use madsim::plugin::Simulator;
use madsim::rand::GlobalRng;
use madsim::task::NodeId;
use madsim::time::TimeHandle;
use revenant::actor::{DiskOpId, Time, TimerId};
use revenant::disk::DiskResult;
use revenant::ids::{ActorId, Address};
use revenant::message::Message;

/// Position of a process in the run's list of processes.
pub type ProcessIndex = usize;

pub type TimerKey = (ProcessIndex, ActorId, TimerId);

#[derive(Debug)]
pub enum Due {
    Start {
        actor: ActorId,
    },
    Message {
        from: Address,
        sender: ProcessIndex,
        actor: ActorId,
        message: Message,
    },
    Timer {
        actor: ActorId,
        timer: TimerId,
    },
    Disk {
        actor: ActorId,
        op: DiskOpId,
        ticket: u64,
    },
    /// A disk operation that is complete since a time at which the process stood still.
    DiskDone {
        actor: ActorId,
        op: DiskOpId,
        result: DiskResult,
    },
    /// The process was resumed and goes on where it stopped.
    Resumed,
    /// A first or later start of the process.
    Boot,
    /// A fault of the scenario whose time has come.
    Fault(usize),
}

/// Something that will happen to a process (or, for [`Due::Fault`], to the run).
#[derive(Debug)]
pub struct Entry {
    pub process: ProcessIndex,
    pub due: Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Time,
    order: u64,
    sequence: u64,
    slot: u32,
}

/// Names an entry for cancelling it.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    slot: u32,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    local: Time,
    at: Time,
    order: u64,
    ticket: Ticket,
}

#[derive(Debug, Default)]
pub struct AgendaState {
    heap: BinaryHeap<Reverse<Key>>,
    /// A slot is freed when its key leaves the heap, so a cancelled entry leaves an empty slot.
    slots: Vec<Option<(u64, Entry)>>,
    free: Vec<u32>,
    sequence: u64,
    /// Entries that are not timers.
    pub work: usize,
    /// Entries that start a process.
    starts: usize,
    /// With the time that each was set for, by the clock of its process.
    timers: BTreeMap<TimerKey, Timer>,
    /// What became due for processes while they stood still, in that order.
    parked: Vec<Entry>,
    nodes: BTreeMap<NodeId, ProcessIndex>,
    /// Whether what a process has sent dies with it.
    pub sent_dies_with_sender: bool,
}

impl AgendaState {
    pub fn push(&mut self, time: Time, order: u64, entry: Entry) -> Ticket {
        self.sequence += 1;
        self.work += usize::from(!matches!(entry.due, Due::Timer { .. }));
        self.starts += usize::from(matches!(entry.due, Due::Boot));
        let sequence = self.sequence;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some((sequence, entry));
        self.heap.push(Reverse(Key { time, order, sequence, slot }));
        Ticket { slot, sequence }
    }

    /// The next thing and its time.
    pub fn peek(&mut self) -> Option<(Time, &Entry)> {
        while let Some(Reverse(key)) = self.heap.peek().copied() {
            if self.slots[key.slot as usize].is_some() {
                return self.slots[key.slot as usize].as_ref().map(|(_, entry)| (key.time, entry));
            }
            self.heap.pop();
            self.free.push(key.slot);
        }
        None
    }

    /// How many starts of processes are to come.
    pub const fn starts(&self) -> usize {
        self.starts
    }

    pub fn pop(&mut self) -> Option<(Time, Entry)> {
        self.peek()?;
        let Reverse(key) = self.heap.pop()?;
        let (_, entry) = self.slots[key.slot as usize].take()?;
        self.free.push(key.slot);
        if let Due::Timer { actor, timer } = entry.due {
            self.timers.remove(&(entry.process, actor, timer));
        } else {
            self.work -= 1;
            self.starts -= usize::from(matches!(entry.due, Due::Boot));
        }
        Some((key.time, entry))
    }

    fn cancel(&mut self, ticket: Ticket) {
        let slot = &mut self.slots[ticket.slot as usize];
        if slot.as_ref().is_some_and(|(sequence, _)| *sequence == ticket.sequence) {
            self.work -=
                usize::from(!matches!(slot.take(), Some((_, Entry { due: Due::Timer { .. }, .. })) | None));
        }
    }

    /// Sets a timer for the time `local` of its process's clock, which shows it at `at`.
    pub fn set_timer(&mut self, local: Time, at: Time, order: u64, (process, actor, timer): TimerKey) {
        self.cancel_timer(process, actor, timer);
        let ticket = self.push(at, order, Entry { process, due: Due::Timer { actor, timer } });
        self.timers.insert((process, actor, timer), Timer { local, at, order, ticket });
    }

    pub fn cancel_timer(&mut self, process: ProcessIndex, actor: ActorId, timer: TimerId) {
        if let Some(Timer { ticket, .. }) = self.timers.remove(&(process, actor, timer)) {
            self.cancel(ticket);
        }
    }

    /// Moves the timers of a process whose clock has changed to when it will show their times.
    pub fn move_timers(&mut self, process: ProcessIndex, at: impl Fn(Time) -> Time) {
        let of_process = self.timers.iter().filter(|((owner, ..), _)| *owner == process);
        let timers: Vec<(TimerKey, Timer)> = of_process.map(|(key, timer)| (*key, *timer)).collect();
        for (key, Timer { local, order, .. }) in timers {
            self.set_timer(local, at(local), order, key);
        }
    }

    /// The process does not start at the times at which it was going to.
    pub fn cancel_starts(&mut self, process: ProcessIndex) {
        for slot in &mut self.slots {
            if matches!(slot, Some((_, entry)) if entry.process == process && matches!(entry.due, Due::Boot))
            {
                *slot = None;
                self.work -= 1;
                self.starts -= 1;
            }
        }
    }

    /// Keeps what is due for a process that stands still.
    pub fn park(&mut self, entry: Entry) {
        self.parked.push(entry);
    }

    /// Takes away the messages under way between different processes of which `between` says so.
    pub fn lose(&mut self, between: impl Fn(ProcessIndex, ProcessIndex) -> bool) -> Vec<(ProcessIndex, Due)> {
        let mut lost = Vec::new();
        for slot in &mut self.slots {
            let gone = slot.take_if(|(_, entry)| match entry.due {
                Due::Message { sender, .. } => sender != entry.process && between(sender, entry.process),
                _ => false,
            });
            if let Some((sequence, entry)) = gone {
                self.work -= 1;
                lost.push((sequence, entry));
            }
        }
        lost.sort_by_key(|(sequence, _)| *sequence);
        lost.into_iter().map(|(_, entry)| (entry.process, entry.due)).collect()
    }

    /// What waited for a process that goes on is due now, in its order; first of all the process itself.
    pub fn resume(&mut self, now: Time, process: ProcessIndex) {
        self.push(now, 0, Entry { process, due: Due::Resumed });
        let waited: Vec<Entry> = self.parked.extract_if(.., |entry| entry.process == process).collect();
        for (order, entry) in (1..).zip(waited) {
            match entry.due {
                Due::Timer { actor, timer } => self.set_timer(Time(0), now, order, (process, actor, timer)),
                _ => {
                    self.push(now, order, entry);
                }
            }
        }
    }

    /// Cancels all timers of an actor that was stopped.
    pub fn cancel_actor(&mut self, process: ProcessIndex, actor: ActorId) {
        let range = (process, actor, TimerId(0))..=(process, actor, TimerId(u64::MAX));
        let timers: Vec<TimerId> = self.timers.range(range).map(|((_, _, timer), _)| *timer).collect();
        for timer in timers {
            self.cancel_timer(process, actor, timer);
        }
    }

    pub fn timers(&self) -> impl Iterator<Item = (ProcessIndex, ActorId, TimerId, Time)> {
        self.timers.iter().map(|((process, actor, timer), set)| (*process, *actor, *timer, set.at))
    }

    /// Forgets what dies with a process: all that is due for it except its next start, and with
    /// [`Self::sent_dies_with_sender`] what it has sent and what is not yet delivered.
    fn forget(&mut self, process: ProcessIndex) {
        for slot in &mut self.slots {
            let Some((_, entry)) = slot else { continue };
            let gone = match entry.due {
                Due::Boot | Due::Fault(_) => false,
                Due::Message { sender, .. } => {
                    entry.process == process || sender == process && self.sent_dies_with_sender
                }
                _ => entry.process == process,
            };
            if gone {
                self.work -= usize::from(!matches!(entry.due, Due::Timer { .. }));
                *slot = None;
            }
        }
        self.timers.retain(|(owner, _, _), _| *owner != process);
        self.parked.retain(|entry| entry.process != process);
    }
}

#[derive(Debug, Default)]
pub struct Agenda(Mutex<AgendaState>);

impl Agenda {
    pub fn lock(&self) -> MutexGuard<'_, AgendaState> {
        self.0.lock().expect("no panic under this lock")
    }

    pub fn add_node(&self, node: NodeId, process: ProcessIndex) {
        self.lock().nodes.insert(node, process);
    }
}

impl Simulator for Agenda {
    fn new(_: &GlobalRng, _: &TimeHandle, _: &Config) -> Self {
        Self::default()
    }

    fn reset_node(&self, node: NodeId) {
        let mut agenda = self.lock();
        if let Some(&process) = agenda.nodes.get(&node) {
            agenda.forget(process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(process: ProcessIndex) -> Entry {
        Entry { process, due: Due::Boot }
    }

    fn order(agenda: &mut AgendaState) -> Vec<(u64, ProcessIndex)> {
        std::iter::from_fn(|| agenda.pop()).map(|(time, entry)| (time.0, entry.process)).collect()
    }

    #[test]
    fn the_order_is_time_then_draw_then_insertion() {
        let mut agenda = AgendaState::default();
        for (process, (time, draw)) in [(5, 0), (3, 9), (3, 1), (3, 1), (1, 7)].into_iter().enumerate() {
            agenda.push(Time(time), draw, boot(process));
        }
        assert_eq!(order(&mut agenda), [(1, 4), (3, 2), (3, 3), (3, 1), (5, 0)]);
        assert_eq!(agenda.work, 0);
    }

    #[test]
    fn a_timer_that_is_set_again_moves_and_a_cancelled_one_never_fires() {
        let mut agenda = AgendaState::default();
        let actor = ActorId::Master;
        agenda.set_timer(Time(5), Time(5), 0, (0, actor, TimerId(1)));
        agenda.set_timer(Time(9), Time(9), 0, (0, actor, TimerId(1)));
        agenda.set_timer(Time(7), Time(7), 0, (1, actor, TimerId(2)));
        agenda.set_timer(Time(8), Time(8), 0, (2, actor, TimerId(2)));
        agenda.cancel_timer(1, actor, TimerId(2));
        agenda.cancel_actor(2, actor);
        agenda.cancel_timer(2, actor, TimerId(77));
        assert_eq!(agenda.work, 0);
        assert_eq!(order(&mut agenda), [(9, 0)]);
    }

    #[test]
    fn what_waited_for_a_process_that_stood_still_comes_in_its_order_and_only_to_it() {
        let mut agenda = AgendaState::default();
        let timer = |timer| Due::Timer { actor: ActorId::Master, timer: TimerId(timer) };
        let start = || Due::Start { actor: ActorId::Master };
        for (process, due) in [(0, timer(1)), (1, start()), (0, start()), (0, timer(2))] {
            agenda.park(Entry { process, due });
        }
        agenda.push(Time(9), 0, Entry { process: 0, due: start() });
        agenda.resume(Time(7), 0);
        let order = std::iter::from_fn(|| agenda.pop()).map(|(time, entry)| match entry.due {
            Due::Timer { timer, .. } => (time.0, timer.0),
            Due::Resumed => (time.0, 0),
            _ => (time.0, 99),
        });
        assert_eq!(order.collect::<Vec<_>>(), [(7, 0), (7, 1), (7, 99), (7, 2), (9, 99)]);
    }

    #[test]
    fn a_cancelled_entry_whose_place_is_taken_again_stays_cancelled() {
        let mut agenda = AgendaState::default();
        agenda.set_timer(Time(1), Time(1), 0, (0, ActorId::Master, TimerId(1)));
        assert!(agenda.pop().is_some());
        agenda.push(Time(2), 0, boot(3));
        agenda.cancel_timer(0, ActorId::Master, TimerId(1));
        assert_eq!(order(&mut agenda), [(2, 3)]);
    }

    #[test]
    fn what_is_due_for_a_dead_process_is_gone_but_not_its_next_start() {
        let mut agenda = AgendaState::default();
        agenda.push(Time(1), 0, boot(1));
        agenda.push(Time(2), 0, Entry { process: 1, due: Due::Start { actor: ActorId::Master } });
        agenda.set_timer(Time(3), Time(3), 0, (1, ActorId::Master, TimerId(1)));
        agenda.push(Time(4), 0, Entry { process: 2, due: Due::Start { actor: ActorId::Master } });
        agenda.forget(1);
        assert_eq!(agenda.work, 2);
        assert_eq!(order(&mut agenda), [(1, 1), (4, 2)]);
    }
}
