//! What a crash leaves on the disk: the fate of operations under way, and of what was not synced.

use std::collections::{BTreeMap, BTreeSet};

use revenant::disk::{DiskOp, Volume};
use revenant::ids::ProcessId;

use super::stale::taken;
use super::volume::{Change, FileIndex, VolumeImage};
use super::{DisksState, Operation, owner};
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
        self.forget_stale(process);
        if std::mem::take(&mut self.machine_dies) {
            let mut stale = BTreeSet::new();
            for key in self.on_machine_of(process) {
                let Some(image) = self.volumes.get_mut(&key) else { continue };
                let fate = self.options.unsynced_at_machine_crash;
                let volume = key.0;
                let before = key.1.is_none().then(|| image.seen());
                let left = image.machine_crash(fate, &mut self.draws, (volume, process));
                stale.extend(before.into_iter().flat_map(|before| taken(volume, &before, &image.seen())));
                for LeftLog { path, length, zeros } in left {
                    let zeroed = zeros.into_iter().map(|(from, to)| TraceKind::LogZeroed {
                        volume,
                        path: path.clone(),
                        from,
                        to,
                    });
                    let left = TraceKind::LogAfterCrash { volume, path: path.clone(), length };
                    self.aftermath.extend([left].into_iter().chain(zeroed).map(|what| (None, what)));
                }
            }
            self.taken_from_survivors(&stale);
        }
    }

    /// The volumes that die with a process's machine.
    pub(super) fn on_machine_of(&self, process: ProcessId) -> Vec<(Volume, Option<ProcessId>)> {
        let has_shared = self.options.shared_volumes_on.as_deref() == Some(process.to_string().as_str());
        let own = [Volume::Local, Volume::Scratch].map(|volume| (volume, Some(process)));
        let shared = [Volume::Ha, Volume::Output].map(|volume| (volume, None)).into_iter();
        own.into_iter().chain(shared.filter(|_| has_shared)).collect()
    }

    /// The part of an operation under way that reached the disk.
    fn what_was_done(&mut self, mut operation: Operation) -> Option<Operation> {
        match self.options.incomplete_at_crash {
            Incomplete::Done => Some(operation),
            Incomplete::NotDone => None,
            fate @ (Incomplete::Torn | Incomplete::Sector) => {
                let key = (operation.process, operation.actor, operation.action.kind());
                let draw = self.draws.draw(Purpose::IncompleteOperation, key);
                let begins = self.length_of(&operation);
                if let DiskOp::Append { bytes, .. } = &mut operation.action {
                    let whole = bytes.len() as u64;
                    let mut left = draw.up_to(whole);
                    if fate == Incomplete::Sector && left < whole {
                        left = sector_end(begins + left).saturating_sub(begins);
                    }
                    bytes.truncate(left as usize);
                    return (!bytes.is_empty()).then_some(operation);
                }
                draw.coin().then_some(operation)
            }
        }
    }
}

impl DisksState {
    /// How long the file is that the operation is about.
    fn length_of(&self, operation: &Operation) -> u64 {
        let image = self.volumes.get(&(operation.volume, owner(operation.volume, operation.process)));
        let file = image.and_then(|image| Some(&image.files[*image.names.get(operation.action.path())?]));
        file.map_or(0, |file| file.length)
    }
}

/// Sectors are written as a whole.
const SECTOR: u64 = 512;

/// Where the sector before ends, or this one begins.
const fn sector_end(offset: u64) -> u64 {
    offset / SECTOR * SECTOR
}

/// What a crash left of a file of the job event store.
#[derive(Debug, PartialEq, Eq)]
struct LeftLog {
    path: String,
    /// 0 if the file is gone.
    length: u64,
    /// Ranges of bytes that are zeros now.
    zeros: Vec<(u64, u64)>,
}

/// What a crash does with one file or entry.
pub const FATES: &[Unsynced] = {
    let [fates @ .., Unsynced::Any] = &Unsynced::ALL else { panic!("'any' is the last") };
    fates
};

impl VolumeImage {
    /// Takes what the machine's death takes; returns what is left of each file of the job event store
    /// that there was.
    fn machine_crash(&mut self, fate: Unsynced, draws: &mut Draws, key: (Volume, ProcessId)) -> Vec<LeftLog> {
        let mut logs: BTreeMap<String, FileIndex> = BTreeMap::new();
        let mut zeros = vec![Vec::new(); self.files.len()];
        let before = [self.names.clone(), self.durable.clone()];
        for (index, file) in self.files.iter_mut().enumerate() {
            let mut draw = |purpose| draws.draw(purpose, (key, index as u64));
            let fate = match fate {
                Unsynced::Any => FATES[draw(Purpose::UnsyncedFate).up_to(FATES.len() as u64 - 1) as usize],
                fate => fate,
            };
            let mut cut = || file.durable + draw(Purpose::UnsyncedBytes).up_to(file.length - file.durable);
            let (length, zeros_from) = match fate {
                Unsynced::Lost | Unsynced::NamesWithoutData | Unsynced::Any => (file.durable, file.durable),
                Unsynced::Kept | Unsynced::DataWithoutNames => (file.length, file.length),
                Unsynced::Torn => {
                    let cut = cut();
                    (cut, cut)
                }
                Unsynced::Sector => {
                    let cut = sector_end(cut()).max(file.durable);
                    (cut, cut)
                }
                Unsynced::Record => {
                    let ends: Vec<u64> = file.record_ends().collect();
                    let cut = ends[draw(Purpose::UnsyncedBytes).up_to(ends.len() as u64 - 1) as usize];
                    (cut, cut)
                }
                Unsynced::Zeros => (file.length, cut()),
            };
            zeros[index] = file.crash(length, zeros_from);
        }
        for names in before {
            for (path, file) in names.into_iter().filter(|(_, file)| self.files[*file].is_log()) {
                logs.insert(path, file);
            }
        }
        for change in std::mem::take(&mut self.changes) {
            let mut coin = |purpose| draws.draw(purpose, (key, names_of(&change))).coin();
            let survives = match fate {
                Unsynced::Lost | Unsynced::DataWithoutNames => false,
                Unsynced::Kept | Unsynced::NamesWithoutData => true,
                Unsynced::Torn | Unsynced::Record | Unsynced::Sector | Unsynced::Zeros | Unsynced::Any => {
                    coin(Purpose::UnsyncedEntry)
                }
            };
            if survives {
                change.apply(&mut self.durable);
            }
        }
        self.names.clone_from(&self.durable);
        let left = |(path, file): (String, FileIndex)| match self.names.get(&path) {
            Some(&left) if left == file => {
                LeftLog { path, length: self.files[file].length, zeros: std::mem::take(&mut zeros[file]) }
            }
            _ => LeftLog { path, length: 0, zeros: Vec::new() },
        };
        logs.into_iter().map(left).collect()
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

    const KEY: (Volume, ProcessId) = (Volume::Local, ProcessId::JOB_MANAGER);

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
        let left_of = |path: &str, length| LeftLog { path: path.to_owned(), length, zeros: vec![] };
        assert_eq!(left, [left_of("e1", 3), left_of("e2", 0)]);
    }

    /// All that a crash can leave of two files, as drawn.
    fn images(fate: Unsynced, actions: &[DiskOp]) -> BTreeSet<Vec<(String, String)>> {
        (0..200).map(|seed| after_crash(fate, seed, actions).into_iter().collect()).collect()
    }

    fn image(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        files(expected).into_iter().collect()
    }

    #[test]
    fn each_image_leaves_what_it_says() {
        let synced = [create("a"), append("a", "ab"), sync("a"), sync_directory("")];
        let written = [&synced[..], &[append("a", "cd"), append("a", "ef")]].concat();
        let only = |fate, expected: &[&str]| {
            let expected = expected.iter().map(|text| image(&[("a", text)])).collect();
            assert_eq!(images(fate, &written), expected, "{fate:?}");
        };
        only(Unsynced::Lost, &["ab"]);
        only(Unsynced::Kept, &["abcdef"]);
        only(Unsynced::Record, &["ab", "abcd", "abcdef"]);
        only(Unsynced::Sector, &["ab"]);
        only(Unsynced::Torn, &["ab", "abc", "abcd", "abcde", "abcdef"]);
        only(Unsynced::Zeros, &["ab\0\0\0\0", "abc\0\0\0", "abcd\0\0", "abcde\0", "abcdef"]);
        only(Unsynced::NamesWithoutData, &["ab"]);
        only(Unsynced::DataWithoutNames, &["abcdef"]);
        let any = images(Unsynced::Any, &written);
        for text in ["ab", "abc", "abcd", "abcdef", "abc\0\0\0"] {
            assert!(any.contains(&image(&[("a", text)])), "{text:?}");
        }
    }

    #[test]
    fn a_rename_can_be_kept_without_the_data_and_the_data_without_the_rename() {
        let before =
            [create("p/a"), sync("p/a"), sync_directory("p"), append("p/a", "x"), rename("p/a", "a")];
        assert_eq!(images(Unsynced::NamesWithoutData, &before), [image(&[("a", "")])].into());
        assert_eq!(images(Unsynced::DataWithoutNames, &before), [image(&[("p/a", "x")])].into());
        let created = [create("b"), append("b", "x"), sync("b")];
        assert_eq!(images(Unsynced::DataWithoutNames, &created), [image(&[])].into());
    }

    #[test]
    fn a_file_is_cut_where_a_sector_ends() {
        let long = "x".repeat(1500).leak();
        let written = [create("a"), sync_directory(""), append("a", long)];
        let lengths: BTreeSet<usize> =
            images(Unsynced::Sector, &written).iter().map(|image| image[0].1.len()).collect();
        assert_eq!(lengths, [0, 512, 1024].into());
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
