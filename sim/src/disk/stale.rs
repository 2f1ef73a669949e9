//! Shared volumes whose machine died under a process that lives on: what the crash took from under it,
//! and the sync that tells it so, once (as the write verifier of NFS makes it).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use revenant::disk::{DiskErrorKind, DiskOp, Volume};
use revenant::ids::{Address, ProcessId};

use super::volume::VolumeImage;
use super::{DisksState, Operation};

/// Something on a volume of which a crash took what was not synced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stale {
    File(Volume, String),
    Directory(Volume, String),
}

/// The files of a volume as processes see them.
pub(super) type Seen = BTreeMap<String, Bytes>;

impl VolumeImage {
    pub(super) fn seen(&self) -> Seen {
        self.files().map(|(path, bytes)| (path.to_owned(), bytes)).collect()
    }
}

/// What differs after the crash.
pub(super) fn taken(volume: Volume, before: &Seen, after: &Seen) -> BTreeSet<Stale> {
    let mut taken = BTreeSet::new();
    for path in before.keys().chain(after.keys()) {
        match (before.get(path), after.get(path)) {
            (Some(before), Some(after)) if before == after => {}
            (Some(_), Some(_)) => _ = taken.insert(Stale::File(volume, path.clone())),
            _ => {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                taken.insert(Stale::Directory(volume, directory.to_owned()));
            }
        }
    }
    taken
}

impl DisksState {
    /// A machine died, and all processes that are not known to have died with it go on.
    pub(super) fn taken_from_survivors(&mut self, taken: &BTreeSet<Stale>) {
        for stale in self.stale.values_mut() {
            stale.extend(taken.iter().cloned());
        }
    }

    /// Why a sync fails, if it is of something that is gone; the next one succeeds.
    pub(super) fn why_stale(&mut self, operation: &Operation) -> Option<DiskErrorKind> {
        let Operation { process, actor, volume, action, .. } = operation;
        let what = match action {
            DiskOp::Sync { path } => Stale::File(*volume, path.clone()),
            DiskOp::SyncDirectory { path } => Stale::Directory(*volume, path.clone()),
            _ => return None,
        };
        let stale = self.stale.get_mut(&Address::new(*process, *actor));
        stale.is_some_and(|stale| stale.remove(&what)).then_some(DiskErrorKind::Other)
    }

    /// The process died: its next incarnation reads what there is.
    pub(super) fn forget_stale(&mut self, process: ProcessId) {
        self.stale.retain(|address, _| address.process != process);
    }
}

#[cfg(test)]
mod tests {
    use revenant::actor::{Purpose, Time};
    use revenant::disk::DiskResult;

    use super::*;
    use crate::scenario::Disk;

    fn perform(disks: &mut DisksState, action: DiskOp) -> DiskResult {
        let (ticket, ..) = disks.begin(Time(0), Address::WRITER, Volume::Ha, Purpose::JobEvent, action);
        disks.complete(ticket).expect("its process lives").0
    }

    fn crash(disks: &mut DisksState, process: ProcessId, machine: bool) {
        disks.machine_dies = machine;
        disks.crash(process);
    }

    fn append(text: &'static str) -> DiskOp {
        DiskOp::Append { path: "d/a".to_owned(), bytes: Bytes::from_static(text.as_bytes()) }
    }

    fn sync() -> DiskOp {
        DiskOp::Sync { path: "d/a".to_owned() }
    }

    fn sync_directory() -> DiskOp {
        DiskOp::SyncDirectory { path: "d".to_owned() }
    }

    /// A file with a durable name and content.
    fn disks() -> DisksState {
        let shared_volumes_on = Some("high-availability".to_owned());
        let mut disks = DisksState::new(1, Disk { shared_volumes_on, ..Disk::default() });
        for action in [DiskOp::CreateNew { path: "d/a".to_owned() }, append("ab"), sync(), sync_directory()] {
            perform(&mut disks, action).unwrap();
        }
        disks
    }

    #[test]
    fn whoever_lives_on_is_told_once_that_what_it_wrote_is_gone() {
        let mut disks = disks();
        perform(&mut disks, append("cd")).unwrap();
        crash(&mut disks, ProcessId::HighAvailability, true);
        perform(&mut disks, append("ef")).unwrap();
        assert!(perform(&mut disks, sync()).is_err());
        assert!(perform(&mut disks, sync()).is_ok());
        assert!(perform(&mut disks, sync_directory()).is_ok(), "no name is lost");
    }

    #[test]
    fn a_lost_name_is_told_by_the_sync_of_its_directory() {
        let mut disks = disks();
        let renamed = DiskOp::Rename { from: "d/a".to_owned(), to: "d/b".to_owned() };
        perform(&mut disks, renamed).unwrap();
        crash(&mut disks, ProcessId::HighAvailability, true);
        assert!(perform(&mut disks, sync_directory()).is_err());
        assert!(perform(&mut disks, sync_directory()).is_ok());
    }

    #[test]
    fn nobody_is_told_of_what_was_durable_or_what_an_earlier_incarnation_wrote() {
        let mut disks = disks();
        crash(&mut disks, ProcessId::HighAvailability, true);
        assert!(perform(&mut disks, sync()).is_ok() && perform(&mut disks, sync_directory()).is_ok());
        perform(&mut disks, append("cd")).unwrap();
        crash(&mut disks, ProcessId::HighAvailability, true);
        crash(&mut disks, ProcessId::JOB_MANAGER, false);
        assert!(perform(&mut disks, sync()).is_ok());
    }
}
