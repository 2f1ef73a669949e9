//! The directories of a cluster: checked before anything starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::connectors::PENDING_DIRECTORY;
use crate::disk::Volume;
use crate::ids::ProcessId;

use super::start::fresh_session;

/// How often the removal of a directory is tried.
const REMOVALS_MAX: u32 = 5;

/// A directory that is removed when this is dropped, unless it is kept.
pub struct WorkingDirectory {
    path: PathBuf,
    remove: bool,
}

impl WorkingDirectory {
    /// A given directory, which must be new or empty and is kept.
    pub fn given(what: &str, path: &Path) -> Result<Self, String> {
        Ok(Self { path: empty_directory(what, path)?, remove: false })
    }

    /// A temporary one inside of another, with a name that nobody else has.
    pub fn temporary(inside: &Path) -> Result<Self, String> {
        let path = inside.join(format!("revenant-{:016x}", fresh_session().0));
        Ok(Self { path: empty_directory("the temporary directory", &path)?, remove: true })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn keep(&mut self) {
        self.remove = false;
    }

    pub const fn is_kept(&self) -> bool {
        !self.remove
    }
}

impl Drop for WorkingDirectory {
    fn drop(&mut self) {
        if !self.remove {
            return;
        }
        // Whoever was at work in it may just be adding to it.
        let mut patience = REMOVALS_MAX;
        while let Err(error) = fs::remove_dir_all(&self.path) {
            patience -= 1;
            if patience == 0 || error.kind() == std::io::ErrorKind::NotFound {
                return tracing::warn!("cannot remove {}: {error}", self.path.display());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Refuses directories of which two are the same, or one lies inside another.
pub fn keep_apart(directories: &[(&str, &Path)]) -> Result<(), String> {
    let resolved = directories.iter().map(|(_, path)| resolve(path)).collect::<Result<Vec<_>, _>>()?;
    for (&(what, path), inner) in directories.iter().zip(&resolved) {
        for (&(other, _), outer) in directories.iter().zip(&resolved) {
            if what != other && inner.starts_with(outer) {
                let how = if inner == outer { "the same directory as" } else { "inside" };
                let shown = path.display();
                return Err(format!(
                    "{what} {shown} is {how} {other}: name directories apart from each other"
                ));
            }
        }
    }
    Ok(())
}

/// The path from the root without links, whether or not all of it exists.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        if component == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(component);
        }
        resolved = fs::canonicalize(&resolved).unwrap_or(resolved);
    }
    Ok(resolved)
}

/// Makes the directory if it is missing, and makes sure that it is empty and can be written to.
pub fn empty_directory(what: &str, path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    if path.is_file() {
        return Err(format!("{what} {shown} is a file: name a new or an empty directory"));
    }
    fs::create_dir_all(path).map_err(|error| format!("{what} {shown} cannot be made: {error}"))?;
    let path =
        fs::canonicalize(path).map_err(|error| format!("{what} {shown} cannot be resolved: {error}"))?;
    let mut entries =
        fs::read_dir(&path).map_err(|error| format!("{what} {shown} cannot be read: {error}"))?;
    if entries.next().is_some() {
        return Err(format!("{what} {shown} is not empty: name a new or an empty directory"));
    }
    let probe = path.join(".revenant-probe");
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .map_err(|error| format!("{what} {shown} cannot be written to: {error}"))?;
    Ok(path)
}

/// The directory of each volume of a process.
pub fn volumes(
    process: ProcessId,
    storage: &Path,
    out: Option<&Path>,
    input: Option<&Path>,
) -> BTreeMap<Volume, PathBuf> {
    let own = |kind: &str| storage.join(kind).join(process.to_string());
    let mut volumes = BTreeMap::from([
        (Volume::Local, own("local")),
        (Volume::Scratch, own("scratch")),
        (Volume::Ha, storage.join("ha")),
        (Volume::Input, input.map_or_else(|| storage.join("input"), Path::to_owned)),
    ]);
    if let Some(out) = out {
        volumes.insert(Volume::Output, out.to_owned());
    }
    volumes
}

/// What attempts left that were never committed: nobody runs any more who could want it.
pub fn remove_pending(out: &Path) {
    let pending = out.join(PENDING_DIRECTORY);
    if pending.exists()
        && let Err(error) = fs::remove_dir_all(&pending)
    {
        tracing::warn!("cannot remove {}: {error}", pending.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_is_refused_and_left_alone() {
        let mut outer = WorkingDirectory::temporary(&std::env::temp_dir()).unwrap();
        let inner = outer.path().join("out");
        assert!(empty_directory("--out", &inner).is_ok());
        fs::write(inner.join("part-0"), b"precious").unwrap();
        assert!(empty_directory("--out", &inner).unwrap_err().contains("is not empty"));
        assert!(empty_directory("--out", &inner.join("part-0")).unwrap_err().contains("is a file"));
        assert_eq!(fs::read(inner.join("part-0")).unwrap(), b"precious");
        let (beside, link) = (outer.path().join("beside"), outer.path().join("link"));
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        let apart = |a: &Path, b: &Path| keep_apart(&[("--out", a), ("--storage", b)]);
        assert_eq!(apart(&inner, &beside), Ok(()));
        assert!(apart(&inner, &beside.join("../out")).unwrap_err().contains("the same directory"));
        assert!(apart(&inner, &link).unwrap_err().contains("the same directory"));
        assert!(apart(&inner, &link.join("new")).unwrap_err().starts_with("--storage"));
        assert!(apart(&outer.path().join("out/new"), &inner).unwrap_err().contains("is inside --storage"));
        outer.remove = true;
        let path = outer.path().to_owned();
        drop(outer);
        assert!(!path.exists());
    }
}
