//! Real files behind [`DiskOp`]: each volume is a directory. Follows the semantics of
//! [`crate::disk`] to the letter; a path that would leave its volume is refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{DirectoryEntry, DiskError, DiskErrorKind, DiskOp, DiskOutput, DiskResult, Volume};

#[cfg(test)]
mod tests;

/// Open files that are kept at hand.
const HANDLES_MAX: usize = 256;

/// The volumes of one process.
pub struct Disk {
    roots: BTreeMap<Volume, PathBuf>,
    handles: Mutex<Handles>,
}

#[derive(Default)]
struct Handles {
    open: BTreeMap<PathBuf, (u64, Arc<File>)>,
    uses: u64,
}

impl Disk {
    /// With the directory of each volume that the process can reach.
    pub fn new(roots: BTreeMap<Volume, PathBuf>) -> Self {
        Self { roots, handles: Mutex::default() }
    }

    pub fn volumes(&self) -> Vec<Volume> {
        self.roots.keys().copied().collect()
    }

    /// Makes the directories of the volumes that are missing.
    pub fn prepare(&self) -> Result<(), DiskError> {
        for (&volume, root) in &self.roots {
            fs::create_dir_all(root).map_err(|error| DiskError {
                kind: kind(&error),
                operation: "preparing".to_owned(),
                volume,
                path: root.display().to_string(),
                message: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Carries out one operation; blocks until it is done.
    pub fn perform(&self, volume: Volume, action: &DiskOp) -> DiskResult {
        self.attempt(volume, action).map_err(|error| DiskError {
            kind: kind(&error),
            operation: action.kind().to_owned(),
            volume,
            path: action.path().to_owned(),
            message: error.to_string(),
        })
    }

    fn attempt(&self, volume: Volume, action: &DiskOp) -> io::Result<DiskOutput> {
        match action {
            DiskOp::CreateNew { path } => {
                let path = self.file_path(volume, path)?;
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path)?;
                self.handles().keep(path, Arc::new(file));
            }
            DiskOp::Append { path, bytes } => self.handle(volume, path)?.as_ref().write_all(bytes)?,
            DiskOp::Sync { path } => self.handle(volume, path)?.sync_data()?,
            DiskOp::SyncDirectory { path } => self.sync_directory(volume, path)?,
            DiskOp::Close { path } => self.handles().forget(&self.file_path(volume, path)?),
            DiskOp::ReadRange { path, offset, length } => {
                let file = self.handle(volume, path)?;
                return read_range(&file, *offset, *length).map(|bytes| DiskOutput::Data(bytes.into()));
            }
            DiskOp::List { path } => {
                let root = self.root(volume)?;
                let mut entries = Vec::new();
                list(root, &self.directory_path(volume, path)?, &mut entries)?;
                entries.sort_by(|a, b| a.path.cmp(&b.path));
                return Ok(DiskOutput::Entries(entries));
            }
            DiskOp::Rename { from, to } => {
                let (from, to) = (self.file_path(volume, from)?, self.file_path(volume, to)?);
                if let Some(parent) = to.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::rename(&from, &to)?;
                let mut handles = self.handles();
                handles.forget(&from);
                handles.forget(&to);
            }
            DiskOp::Delete { path } => {
                let path = self.file_path(volume, path)?;
                self.handles().forget(&path);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => result?,
                }
            }
        }
        Ok(DiskOutput::Done)
    }

    /// Syncs the directory and those above it: they may have been made for its sake.
    fn sync_directory(&self, volume: Volume, path: &str) -> io::Result<()> {
        let root = self.root(volume)?;
        let mut directory = self.directory_path(volume, path)?;
        loop {
            File::open(&directory)?.sync_all()?;
            if directory == *root || !directory.pop() {
                return Ok(());
            }
        }
    }

    fn handle(&self, volume: Volume, path: &str) -> io::Result<Arc<File>> {
        let path = self.file_path(volume, path)?;
        if let Some(file) = self.handles().get(&path) {
            return Ok(file);
        }
        // Inputs may be read-only.
        let file = OpenOptions::new().read(true).append(true).open(&path).or_else(|_| File::open(&path))?;
        let file = Arc::new(file);
        self.handles().keep(path, Arc::clone(&file));
        Ok(file)
    }

    fn handles(&self) -> std::sync::MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root(&self, volume: Volume) -> io::Result<&PathBuf> {
        self.roots.get(&volume).ok_or_else(|| invalid("this process has no such volume"))
    }

    fn file_path(&self, volume: Volume, path: &str) -> io::Result<PathBuf> {
        if path.is_empty() {
            return Err(invalid("an empty path names no file"));
        }
        self.directory_path(volume, path)
    }

    fn directory_path(&self, volume: Volume, path: &str) -> io::Result<PathBuf> {
        let mut full = self.root(volume)?.clone();
        for part in path.split('/').filter(|_| !path.is_empty()) {
            if part.is_empty() || part == "." || part == ".." || part.contains(['\\', '\0']) {
                return Err(invalid("the path leaves its volume or is not a plain one"));
            }
            full.push(part);
        }
        Ok(full)
    }
}

impl Handles {
    fn get(&mut self, path: &Path) -> Option<Arc<File>> {
        self.uses += 1;
        let (used, file) = self.open.get_mut(path)?;
        *used = self.uses;
        Some(Arc::clone(file))
    }

    fn keep(&mut self, path: PathBuf, file: Arc<File>) {
        self.uses += 1;
        self.open.insert(path, (self.uses, file));
        if self.open.len() > HANDLES_MAX
            && let Some(oldest) =
                self.open.iter().min_by_key(|(_, (used, _))| *used).map(|(path, _)| path.clone())
        {
            self.open.remove(&oldest);
        }
    }

    fn forget(&mut self, path: &Path) {
        self.open.remove(path);
    }
}

fn read_range(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let present = file.metadata()?.len().saturating_sub(offset).min(length);
    let mut bytes = vec![0; usize::try_from(present).map_err(|_| invalid("the range is too long"))?];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Adds the file, or the files below the directory; what vanishes meanwhile is not there.
fn list(root: &Path, path: &Path, entries: &mut Vec<DirectoryEntry>) -> io::Result<()> {
    let metadata = match fs::metadata(path) {
        Err(error) if is_absence(&error) => return Ok(()),
        result => result?,
    };
    if !metadata.is_dir() {
        if !metadata.is_file() {
            return Err(invalid(&format!("{} is neither a file nor a directory", path.display())));
        }
        let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
        let relative = relative
            .ok_or_else(|| invalid(&format!("the name of the file {} is not UTF-8", path.display())))?;
        entries.push(DirectoryEntry { path: relative.to_owned(), length: metadata.len() });
        return Ok(());
    }
    let children = match fs::read_dir(path) {
        Err(error) if is_absence(&error) => return Ok(()),
        result => result?,
    };
    for child in children {
        let child = child?.path();
        let name = child.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
        // Editors and tools leave hidden ones, and nobody reads those.
        if !name.starts_with(b".") && !name.starts_with(b"_") && child.is_symlink() && !child.exists() {
            return Err(invalid(&format!("{} is a link that leads nowhere", child.display())));
        }
        list(root, &child, entries)?;
    }
    Ok(())
}

/// Whether there is nothing at a path; also one that leads through a file.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn kind(error: &io::Error) -> DiskErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            DiskErrorKind::Full
        }
        _ => DiskErrorKind::Other,
    }
}
