//! Old disks: a process's own volumes as they once were. A restored volume holds what a crash of the
//! machine at the moment of the snapshot could not have taken, and all of it is durable.

use std::collections::BTreeMap;

use revenant::ids::ProcessId;

use super::{DisksState, Happening, VolumeImage};
use crate::trace::TraceKind;

impl DisksState {
    /// Remembers the volumes that belong to the process alone.
    pub fn snapshot(&mut self, process: ProcessId) {
        let own = self.volumes.iter().filter(|((_, owner), _)| *owner == Some(process));
        let own = own.map(|(&(volume, _), image)| (volume, image.durable_part())).collect();
        self.remembered.insert(process, own);
    }

    pub fn has_snapshot(&self, process: ProcessId) -> bool {
        self.remembered.contains_key(&process)
    }

    /// Brings the remembered volumes back; what this makes of files of the job event store.
    pub fn restore(&mut self, process: ProcessId) -> Vec<Happening> {
        let old = self.remembered.get(&process).cloned().unwrap_or_default();
        let mut logs = BTreeMap::new();
        let mut note_logs = |volume, image: &VolumeImage, is_new: bool| {
            for (path, length) in image.logs() {
                logs.insert((volume, path.to_owned()), if is_new { length } else { 0 });
            }
        };
        for (&(volume, _), image) in self.volumes.iter().filter(|((_, owner), _)| *owner == Some(process)) {
            note_logs(volume, image, false);
        }
        for (volume, image) in &old {
            note_logs(*volume, image, true);
        }
        self.volumes.retain(|(_, owner), _| *owner != Some(process));
        self.volumes.extend(old.into_iter().map(|(volume, image)| ((volume, Some(process)), image)));
        logs.into_iter()
            .map(|((volume, path), length)| (None, TraceKind::LogAfterCrash { volume, path, length }))
            .collect()
    }
}

impl VolumeImage {
    /// What is durable, and nothing else.
    fn durable_part(&self) -> Self {
        let mut image = self.clone();
        for file in &mut image.files {
            file.truncate(file.durable);
        }
        image.names.clone_from(&image.durable);
        image.changes.clear();
        image
    }

    /// The files of the job event store and their lengths.
    fn logs(&self) -> impl Iterator<Item = (&str, u64)> {
        let files = self.names.iter().map(|(path, &file)| (path.as_str(), &self.files[file]));
        files.filter(|(_, file)| file.is_log()).map(|(path, file)| (path, file.length))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use revenant::actor::{Purpose, Time};
    use revenant::disk::{DiskOp, Volume};
    use revenant::ids::Address;

    use super::*;
    use crate::scenario::Disk;

    #[test]
    fn an_old_disk_has_the_names_and_bytes_that_were_durable_of_its_process_alone() {
        let mut disks = DisksState::new(1, Disk::default());
        let [a, b] = ["d/a", "d/b"].map(str::to_owned);
        let append = |text: &'static str| DiskOp::Append {
            path: a.clone(),
            bytes: Bytes::from_static(text.as_bytes()),
        };
        let sync = || DiskOp::Sync { path: a.clone() };
        let begin = [DiskOp::CreateNew { path: a.clone() }, append("ab"), sync()];
        let sync_directory = DiskOp::SyncDirectory { path: "d".to_owned() };
        let rename = DiskOp::Rename { from: a.clone(), to: b.clone() };
        let perform = |disks: &mut DisksState, volume, action| {
            let (ticket, ..) = disks.begin(Time(0), Address::MASTER, volume, Purpose::Partition, action);
            disks.complete(ticket).unwrap().0.unwrap();
        };
        for volume in [Volume::Local, Volume::Output] {
            for action in begin.iter().chain([&sync_directory]) {
                perform(&mut disks, volume, action.clone());
            }
        }
        perform(&mut disks, Volume::Local, append("cd"));
        perform(&mut disks, Volume::Local, rename);
        disks.snapshot(ProcessId::JOB_MANAGER);
        assert!(disks.has_snapshot(ProcessId::JOB_MANAGER) && !disks.has_snapshot(ProcessId::TaskManager(1)));
        perform(&mut disks, Volume::Output, append("cd"));
        disks.restore(ProcessId::JOB_MANAGER);
        let files: BTreeMap<(Volume, String), Bytes> =
            disks.files().map(|(_, volume, path, bytes)| ((volume, path.to_owned()), bytes)).collect();
        let expected = [(Volume::Local, "ab"), (Volume::Output, "abcd")];
        assert_eq!(
            files,
            expected.map(|(volume, text)| ((volume, a.clone()), Bytes::from_static(text.as_bytes()))).into()
        );
    }
}
