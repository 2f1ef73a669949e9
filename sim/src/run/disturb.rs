//! Faults that leave a process alive, or bring one back: it stands still and goes on, starts again,
//! finds an old disk, or its clock is wrong.

use std::time::Duration;

use revenant::actor::Time;

use super::world::{Shared, World};
use crate::agenda::{AgendaState, Due, Entry, ProcessIndex};
use crate::scenario::{ClockFault, ProcessFault, ProcessFaultKind};
use crate::trace::TraceKind;

impl Shared {
    pub fn is_paused(&self, process: ProcessIndex) -> bool {
        self.world().processes[process].paused
    }

    /// Carries out a fault of a process, if it is as the fault needs it.
    pub(super) fn disturb(&self, fault: usize, ProcessFault { kind, process }: ProcessFault) -> bool {
        let fires = self.fires_if(fault, process, |state| match kind {
            ProcessFaultKind::Pause => state.alive && !state.paused,
            ProcessFaultKind::Resume => state.alive && state.paused,
            ProcessFaultKind::Start => !state.alive && state.incarnation > 0,
            ProcessFaultKind::RestoreDisk => !state.alive && self.disks.lock().has_snapshot(process),
            ProcessFaultKind::SnapshotDisk => true,
        });
        let Some(index) = fires else { return false };
        match kind {
            ProcessFaultKind::Pause => {
                let mut world = self.world();
                world.processes[index].paused = true;
                world.trace(index, TraceKind::Paused);
            }
            ProcessFaultKind::Resume => {
                let mut world = self.world();
                world.processes[index].paused = false;
                world.trace(index, TraceKind::Resumed);
                world.stirred();
                let now = world.now;
                self.agenda.lock().resume(now, index);
            }
            ProcessFaultKind::Start => {
                self.agenda.lock().cancel_starts(index);
                self.restart(index, Duration::ZERO);
            }
            ProcessFaultKind::SnapshotDisk => {
                self.disks.lock().snapshot(process);
                self.world().trace(index, TraceKind::DiskRemembered);
            }
            ProcessFaultKind::RestoreDisk => {
                let found = self.disks.lock().restore(process);
                let mut world = self.world();
                world.trace(index, TraceKind::DiskRestored);
                for happening in found {
                    world.disk_happening(index, happening);
                }
            }
        }
        true
    }

    pub(super) fn change_clock(&self, fault: usize, clock: ClockFault) -> bool {
        let Some(index) = self.fires_if(fault, clock.process, |_| true) else { return false };
        let mut world = self.world();
        let now = world.now;
        let own = &mut world.processes[index].clock;
        own.change(now, clock.kind);
        let own = *own;
        world.trace(index, TraceKind::ClockChanged { clock: own, fault: Some(clock) });
        self.agenda.lock().move_timers(index, |local| own.reaches(local, now));
        true
    }

    /// Keeps what is due for a process that stands still. What it had asked of a disk is done.
    pub(super) fn park(&self, world: &mut World, agenda: &mut AgendaState, now: Time, entry: Entry) {
        world.now = now;
        let Entry { process, due } = entry;
        let due = match due {
            Due::Disk { actor, op, ticket } => {
                let Some((result, happenings)) = self.disks.lock().complete(ticket) else { return };
                for happening in happenings {
                    world.disk_happening(process, happening);
                }
                Due::DiskDone { actor, op, result }
            }
            // It has arrived: nothing befalls it any more.
            Due::Message { from, actor, message, .. } => {
                Due::Message { from, sender: process, actor, message }
            }
            due => due,
        };
        agenda.park(Entry { process, due });
    }
}
