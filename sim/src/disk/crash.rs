//! What a crash leaves on the disk: the fate of operations under way, and of what was not synced.

use revenant::disk::{DiskOp, Volume};
use revenant::ids::ProcessId;

use super::volume::{Change, VolumeImage};
use super::{DisksState, Operation};
use crate::draw::{Draws, Purpose};
use crate::scenario::{Incomplete, Unsynced};
use crate::trace::TraceKind;

impl DisksState {
    /// The process dies, and with [`Self::machine_dies`] its machine.
    pub(super) fn crash(&mut self, process: ProcessId) {
        let dying: Vec<u64> = self
            .under_way
            .iter()
            .filter(|(_, operation)| operation.process == process)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in dying {
            let Some(operation) = self.under_way.remove(&ticket) else { continue };
            if operation.fails.is_some() {
                continue;
            }
            if let Some(operation) = self.what_was_done(operation) {
                let (_, happening) = self.apply(&operation);
                self.aftermath.extend(happening);
            }
        }
        if std::mem::take(&mut self.machine_dies) {
            for volume in [Volume::Local, Volume::Scratch] {
                if let Some(image) = self.volumes.get_mut(&(volume, Some(process))) {
                    let fate = self.options.unsynced_at_machine_crash;
                    let left = image.machine_crash(fate, &mut self.draws, (volume, process));
                    self.aftermath.extend(
                        left.into_iter()
                            .map(|(path, length)| (None, TraceKind::LogAfterCrash { volume, path, length })),
                    );
                }
            }
        }
    }

    /// The part of an operation under way that reached the disk.
    fn what_was_done(&mut self, mut operation: Operation) -> Option<Operation> {
        match self.options.incomplete_at_crash {
            Incomplete::Done => Some(operation),
            Incomplete::NotDone => None,
            Incomplete::Torn => {
                let key = (operation.process, operation.actor, operation.action.kind());
                let draw = self.draws.draw(Purpose::IncompleteOperation, key);
                if let DiskOp::Append { bytes, .. } = &mut operation.action {
                    bytes.truncate(draw.up_to(bytes.len() as u64) as usize);
                    return (!bytes.is_empty()).then_some(operation);
                }
                draw.coin().then_some(operation)
            }
        }
    }
}

impl VolumeImage {
    /// Takes what the machine's death takes; returns each file of the job event store that there
    /// was, with the length that is left of it (0 if the file is gone).
    fn machine_crash(
        &mut self,
        fate: Unsynced,
        draws: &mut Draws,
        key: (Volume, ProcessId),
    ) -> Vec<(String, u64)> {
        let mut logs: Vec<String> = Vec::new();
        for names in [&self.names, &self.durable] {
            logs.extend(
                names.iter().filter(|(_, file)| self.files[**file].is_log()).map(|(path, _)| path.clone()),
            );
        }
        for (index, file) in self.files.iter_mut().enumerate() {
            let left = match fate {
                Unsynced::Lost => file.durable,
                Unsynced::Kept => file.length,
                Unsynced::Torn => {
                    let draw = draws.draw(Purpose::UnsyncedBytes, (key, index as u64));
                    file.durable + draw.up_to(file.length - file.durable)
                }
            };
            file.truncate(left);
            file.durable = file.length;
        }
        for change in std::mem::take(&mut self.changes) {
            let survives = match fate {
                Unsynced::Lost => false,
                Unsynced::Kept => true,
                Unsynced::Torn => draws.draw(Purpose::UnsyncedEntry, (key, names_of(&change))).coin(),
            };
            if survives {
                change.apply(&mut self.durable);
            }
        }
        self.names.clone_from(&self.durable);
        logs.sort_unstable();
        logs.dedup();
        let length = |path: &str| self.names.get(path).map_or(0, |&file| self.files[file].length);
        logs.into_iter().map(|path| (path.clone(), length(&path))).collect()
    }
}

fn names_of(change: &Change) -> (Option<&str>, Option<&str>) {
    (change.made.as_ref().map(|(path, _)| path.as_str()), change.removed.as_deref())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use bytes::Bytes;
    use revenant::actor::Purpose as For;
    use revenant::disk::{DiskErrorKind, DiskOutput};

    use super::*;

    const KEY: (Volume, ProcessId) = (Volume::Local, ProcessId::JobManager);

    fn volume(actions: &[DiskOp]) -> VolumeImage {
        let mut image = VolumeImage::default();
        for action in actions {
            image.apply(action, For::JobEvent).unwrap();
        }
        image
    }

    fn create(path: &str) -> DiskOp {
        DiskOp::CreateNew { path: path.to_owned() }
    }

    fn append(path: &str, text: &'static str) -> DiskOp {
        DiskOp::Append { path: path.to_owned(), bytes: Bytes::from_static(text.as_bytes()) }
    }

    fn sync(path: &str) -> DiskOp {
        DiskOp::Sync { path: path.to_owned() }
    }

    fn sync_directory(path: &str) -> DiskOp {
        DiskOp::SyncDirectory { path: path.to_owned() }
    }

    fn rename(from: &str, to: &str) -> DiskOp {
        DiskOp::Rename { from: from.to_owned(), to: to.to_owned() }
    }

    fn delete(path: &str) -> DiskOp {
        DiskOp::Delete { path: path.to_owned() }
    }

    fn after_crash(fate: Unsynced, seed: u64, actions: &[DiskOp]) -> BTreeMap<String, String> {
        let mut image = volume(actions);
        image.machine_crash(fate, &mut Draws::new(seed), KEY);
        image
            .files()
            .map(|(path, bytes)| (path.to_owned(), String::from_utf8_lossy(&bytes).into_owned()))
            .collect()
    }

    fn files(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
        expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_machine_crash_loses_what_was_not_synced_and_nothing_else() {
        let written =
            [create("a"), append("a", "synced"), sync("a"), sync_directory(""), append("a", " and not")];
        assert_eq!(after_crash(Unsynced::Lost, 1, &written), files(&[("a", "synced")]));
        assert_eq!(after_crash(Unsynced::Kept, 1, &written), files(&[("a", "synced and not")]));
    }

    #[test]
    fn a_synced_file_is_lost_with_its_name_until_the_directory_is_synced() {
        let written = [create("d/a"), append("d/a", "x"), sync("d/a")];
        assert_eq!(after_crash(Unsynced::Lost, 1, &written), files(&[]));
        let other = [&written[..], &[sync_directory("")]].concat();
        assert_eq!(after_crash(Unsynced::Lost, 1, &other), files(&[]));
        let durable = [&written[..], &[sync_directory("d")]].concat();
        assert_eq!(after_crash(Unsynced::Lost, 1, &durable), files(&[("d/a", "x")]));
    }

    #[test]
    fn a_rename_counts_when_the_new_names_directory_is_synced() {
        let before = [create("p/a"), append("p/a", "x"), sync("p/a"), sync_directory("p")];
        let renamed = [&before[..], &[rename("p/a", "a"), sync_directory("p")]].concat();
        assert_eq!(after_crash(Unsynced::Lost, 1, &renamed), files(&[("p/a", "x")]));
        let durable = [&before[..], &[rename("p/a", "a"), sync_directory("")]].concat();
        assert_eq!(after_crash(Unsynced::Lost, 1, &durable), files(&[("a", "x")]));
    }

    #[test]
    fn a_renamed_file_whose_old_name_was_never_durable_has_only_its_new_name() {
        let actions = [create("p/a"), sync("p/a"), rename("p/a", "a"), sync_directory("")];
        for seed in 0..20 {
            assert_eq!(after_crash(Unsynced::Torn, seed, &actions), files(&[("a", "")]));
        }
    }

    #[test]
    fn a_deleted_name_comes_back_until_its_directory_is_synced() {
        let deleted = [create("a"), append("a", "x"), sync("a"), sync_directory(""), delete("a")];
        assert_eq!(after_crash(Unsynced::Lost, 1, &deleted), files(&[("a", "x")]));
        let durable = [&deleted[..], &[sync_directory("")]].concat();
        assert_eq!(after_crash(Unsynced::Lost, 1, &durable), files(&[]));
    }

    #[test]
    fn a_torn_file_is_cut_at_any_byte_beyond_what_was_synced() {
        let written = [create("a"), append("a", "ab"), sync("a"), sync_directory(""), append("a", "cd")];
        let seen: BTreeSet<String> =
            (0..60).map(|seed| after_crash(Unsynced::Torn, seed, &written)["a"].clone()).collect();
        assert_eq!(seen, ["ab", "abc", "abcd"].map(str::to_owned).into());
    }

    #[test]
    fn each_entry_that_was_not_synced_survives_or_not() {
        let created = [create("a"), create("b")];
        let seen: BTreeSet<Vec<String>> =
            (0..60).map(|seed| after_crash(Unsynced::Torn, seed, &created).into_keys().collect()).collect();
        assert_eq!(seen.len(), 4);
    }

    #[test]
    fn the_job_event_log_is_reported_with_what_is_left_of_it() {
        let mut image = volume(&[
            create("e1"),
            append("e1", "abc"),
            sync("e1"),
            sync_directory(""),
            append("e1", "d"),
            create("e2"),
        ]);
        let left = image.machine_crash(Unsynced::Lost, &mut Draws::new(0), KEY);
        assert_eq!(left, [("e1".to_owned(), 3), ("e2".to_owned(), 0)]);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let mut image = volume(&[create("a"), create("d/x")]);
        for (action, kind) in [
            (create("a"), DiskErrorKind::AlreadyExists),
            (create("d"), DiskErrorKind::AlreadyExists),
            (create("a/b"), DiskErrorKind::Other),
            (create("../a"), DiskErrorKind::Other),
            (append("b", "x"), DiskErrorKind::NotFound),
            (sync("b"), DiskErrorKind::NotFound),
            (sync_directory("e"), DiskErrorKind::NotFound),
            (rename("b", "c"), DiskErrorKind::NotFound),
            (rename("a", ""), DiskErrorKind::Other),
            (delete("/a"), DiskErrorKind::Other),
        ] {
            assert_eq!(image.apply(&action, For::Sink).unwrap_err().0, kind, "{action:?}");
        }
        assert_eq!(image.apply(&delete("b"), For::Sink), Ok(DiskOutput::Done));
        let listed = image.apply(&DiskOp::List { path: "none".to_owned() }, For::Sink);
        assert_eq!(listed, Ok(DiskOutput::Entries(vec![])));
    }

    #[test]
    fn a_directory_lists_what_is_below_it_and_a_file_itself() {
        let mut image = volume(&[create("d/x"), append("d/x", "abc"), create("d/y/z"), create("dx")]);
        let mut listed = |path: &str| match image.apply(&DiskOp::List { path: path.to_owned() }, For::Source)
        {
            Ok(DiskOutput::Entries(entries)) => {
                entries.into_iter().map(|entry| (entry.path, entry.length)).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(listed("d"), [("d/x".to_owned(), 3), ("d/y/z".to_owned(), 0)]);
        assert_eq!(listed("d/x"), [("d/x".to_owned(), 3)]);
        assert_eq!(listed("d/x/y"), []);
    }
}
