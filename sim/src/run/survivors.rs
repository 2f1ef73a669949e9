//! What of a run outlives the death of a process, as digests: points whose survivors are the same need be
//! tried only once.
//!
//! For each process the digest is of the whole history outside it: what others got and when, what has left the
//! process for others, who died and started. What it did within itself, its timers and what it was told, dies
//! with it. What it left on disks is added at the point.

use std::hash::Hash;

use revenant::ids::ProcessId;

use super::world::Shared;
use crate::agenda::ProcessIndex;
use crate::digest::Digest;
use crate::disk::FATES;
use crate::trace::FoundPoint;

#[derive(Debug, Default)]
pub struct Survivors {
    /// By process; nothing if nobody asks.
    outside: Vec<u64>,
}

impl Survivors {
    pub fn of(processes: usize) -> Self {
        Self { outside: vec![0; processes] }
    }

    pub const fn is_asked(&self) -> bool {
        !self.outside.is_empty()
    }

    /// Something that nobody but the process itself may forget by its death.
    pub fn happened_in(&mut self, process: ProcessIndex, what: &impl Hash) {
        if self.is_asked() {
            let what = Digest::of(process as u64, what);
            let others = self.outside.iter_mut().enumerate().filter(|(other, _)| *other != process);
            others.for_each(|(_, outside)| *outside = Digest::of(*outside, &what));
        }
    }

    /// Something has left the process for another.
    pub fn left(&mut self, process: ProcessIndex, what: &impl Hash) {
        if let Some(outside) = self.outside.get_mut(process) {
            *outside = Digest::of(*outside, what);
        }
    }

    /// Something that all see: a start, a death, a fault.
    pub fn everywhere(&mut self, what: &impl Hash) {
        for outside in &mut self.outside {
            *outside = Digest::of(*outside, what);
        }
    }

    pub fn outside(&self, process: ProcessIndex) -> u64 {
        self.outside.get(process).copied().unwrap_or_default()
    }
}

impl Shared {
    /// Notes what lives on if the process, or its machine, dies at this point.
    pub(super) fn survivors_of(&self, process: ProcessIndex, found: &mut FoundPoint) {
        let world = self.world();
        let (outside, id) = (world.survivors.outside(process), world.processes[process].id);
        drop(world);
        let disks = self.disks.lock();
        found.survivors = Digest::of(outside, &disks.after_crash(id, None));
        // Of the others no search asks for images, and there are many at each of their points.
        if matches!(id, ProcessId::JobManager(_)) && disks.has_unsynced(id) {
            let mut seen = vec![found.survivors];
            // More is promised of what was durable before than of what happens to be kept.
            let outside = Digest::of(outside, &disks.durable());
            for &fate in FATES {
                let left = Digest::of(outside, &disks.after_crash(id, Some(fate)));
                if !seen.contains(&left) {
                    seen.push(left);
                    found.images.push((fate, left));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_in_a_process_dies_with_it_and_what_leaves_it_does_not() {
        let mut survivors = Survivors::of(2);
        let digests = |survivors: &Survivors| [survivors.outside(0), survivors.outside(1)];
        let before = digests(&survivors);
        survivors.happened_in(0, &"timer");
        let [own, other] = digests(&survivors);
        assert!(own == before[0] && other != before[1]);
        survivors.left(0, &"message");
        assert!(survivors.outside(0) != own && survivors.outside(1) == other);
        let before = digests(&survivors);
        survivors.everywhere(&"crash");
        assert!(digests(&survivors).iter().zip(before).all(|(now, before)| *now != before));
        let mut nobody = Survivors::default();
        nobody.happened_in(0, &"timer");
        nobody.left(0, &"message");
        assert_eq!(nobody.outside(0), 0);
    }
}
