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
