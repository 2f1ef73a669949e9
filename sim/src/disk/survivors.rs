//! What a crash at this moment would leave on the disks, as a digest: nothing is changed.

use revenant::ids::ProcessId;
use xxhash_rust::xxh3::Xxh3;

use super::volume::VolumeImage;
use super::{DisksState, Volume};
use crate::scenario::{Incomplete, Unsynced};

impl DisksState {
    /// What everybody who lives would find if the process died now, and its machine with it if it is said what
    /// becomes of what was not synced.
    pub fn after_crash(&self, process: ProcessId, machine: Option<Unsynced>) -> u64 {
        let keeps_all = self.options.incomplete_at_crash == Incomplete::NotDone || !self.is_busy(process);
        if machine.is_none() && keeps_all {
            return self.content();
        }
        let mut left = self.clone();
        if let Some(fate) = machine {
            left.machine_dies = true;
            left.options.unsynced_at_machine_crash = fate;
        }
        left.crash(process);
        left.content()
    }

    /// Whether the death of the machine would take anything that the death of the process leaves.
    pub fn has_unsynced(&self, process: ProcessId) -> bool {
        self.on_machine_of(process)
            .iter()
            .any(|key| self.volumes.get(key).is_some_and(VolumeImage::has_unsynced))
    }

    /// A digest of what is durable: names, and how much of each file.
    pub fn durable(&self) -> u64 {
        let mut digest = Xxh3::new();
        for image in self.volumes.values() {
            for (path, &file) in &image.durable {
                digest.update(path.as_bytes());
                digest.update(&image.files[file].durable.to_le_bytes());
            }
        }
        digest.digest()
    }

    fn is_busy(&self, process: ProcessId) -> bool {
        self.under_way.values().any(|operation| operation.process == process)
    }

    /// A digest of all names and of the bytes behind them, and of what is durable: of that more is promised.
    fn content(&self) -> u64 {
        let mut digest = Xxh3::new();
        for ((volume, owner), image) in &self.volumes {
            if *volume == Volume::Input {
                continue;
            }
            digest.update(format!("{volume} {owner:?}").as_bytes());
            image.digest(&mut digest);
        }
        for stale in self.stale.values().filter(|stale| !stale.is_empty()) {
            digest.update(format!("{stale:?}").as_bytes());
        }
        digest.digest()
    }
}
