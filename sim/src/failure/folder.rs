//! Where failing runs are kept. Whether files can be written there is found out before anything runs, and a
//! file is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::scenario::Scenario;

#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// What the names of files begin with.
    stem: String,
}

/// More than a scenario takes.
const ROOM: usize = 256 << 10;

impl Folder {
    /// The folder, made if it is not there, in which a file was written and removed again.
    pub fn open(path: &Path, stem: &str) -> Result<Self, String> {
        let probe = path.join(format!(".room-{}", std::process::id()));
        let tried = fs::create_dir_all(path).and_then(|()| write(&probe, &vec![b' '; ROOM]));
        let removed = fs::remove_file(&probe);
        tried.and(removed).map_err(|error| {
            format!(
                "failing runs cannot be kept in {}: {error}; make room or name another folder with --failures",
                path.display()
            )
        })?;
        Ok(Self { path: path.to_owned(), stem: stem.to_owned() })
    }

    /// Writes the file of a failing run. The same run has the same name.
    ///
    /// # Errors
    /// If it cannot be written; the message has the whole scenario, so that it is not lost.
    pub fn keep(&self, failing: &Scenario) -> Result<PathBuf, String> {
        let name = failing.failure.as_ref().map(|failure| format!("{}-{}", failure.oracle, failure.hash));
        let path = self.path.join(format!("{}-{}.toml", self.stem, name.unwrap_or_default()));
        let text = failing.to_toml();
        put(&path, &text).map_err(|error| {
            format!(
                "{} cannot be written: {error}; make room, or name another folder with --failures; the failing run \
                 is:\n{text}",
                path.display()
            )
        })?;
        Ok(path)
    }
}

/// Replaces the file, which is there whole or not at all, whoever else writes the same at the same time.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    let writer = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let new = path.with_extension(format!("{writer}.new"));
    let written = write(&new, text.as_bytes()).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn empty(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("revenant-failures-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    fn failing() -> Scenario {
        let scenario = Scenario::parse("test", "[job]\nname = 'lineitem-totals'\n").unwrap();
        scenario.failing(Failure {
            oracle: "S1".to_owned(),
            place: "end".to_owned(),
            event: 7,
            message: "a record is \"lost\"\nhere".to_owned(),
            hash: "00ff".to_owned(),
            version: "0.1.0".to_owned(),
        })
    }

    #[test]
    fn a_failing_run_is_kept_whole_and_reads_back() {
        let below = empty("kept");
        let folder = Folder::open(&below.join("a/b"), "totals").unwrap();
        let path = folder.keep(&failing()).unwrap();
        assert!(path.ends_with("a/b/totals-S1-00ff.toml"), "{path:?}");
        assert_eq!(folder.keep(&failing()).unwrap(), path);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(Scenario::parse("kept", &text).unwrap(), failing());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(below).unwrap();
    }

    #[test]
    fn many_threads_keep_the_same_run() {
        let below = empty("threads");
        let folder = Folder::open(&below, "totals").unwrap();
        let keep_often = || (0..100).map(|_| folder.keep(&failing())).collect::<Result<Vec<_>, _>>().unwrap();
        let paths = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(keep_often)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(paths.iter().all(|path| *path == paths[0]));
        assert_eq!(fs::read_dir(&below).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(below).unwrap();
    }

    #[test]
    fn a_folder_that_takes_no_file_is_refused_at_once_and_later_nothing_is_lost() {
        let below = empty("refused");
        let file = below.join("file");
        fs::write(&file, "").unwrap();
        let error = Folder::open(&file, "x").unwrap_err();
        assert!(error.contains("failing runs cannot be kept in ") && error.contains("--failures"), "{error}");
        let path = below.join("gone");
        let folder = Folder::open(&path, "x").unwrap();
        fs::remove_dir(&path).unwrap();
        let error = folder.keep(&failing()).unwrap_err();
        assert!(error.contains("cannot be written") && error.ends_with(&failing().to_toml()), "{error}");
        fs::remove_dir_all(below).unwrap();
    }
}
