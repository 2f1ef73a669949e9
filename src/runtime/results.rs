//! What a finished job left on the output volume for who ran it: the records of its collect sinks and
//! the lines of its print sinks. Reads committed files and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::config::nearest;
use crate::connectors::{
    COLLECT_DIRECTORY, CollectedError, CollectedPart, PENDING_DIRECTORY, PRINT_DIRECTORY, print_order,
    print_prefix,
};

/// Why a result cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    #[error("the job collected nothing as '{name}'{meant}; it collected: {known}")]
    Unknown { name: String, meant: String, known: String },
    #[error("the records collected as '{name}', {}: {error}", .path.display())]
    Collected { name: String, path: PathBuf, error: CollectedError },
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
}

/// The records collected under `name`, in the order of the subtasks.
pub fn collected<T: DeserializeOwned>(output: &Path, name: &str) -> Result<Vec<T>, ResultError> {
    let collections = parts(&output.join(COLLECT_DIRECTORY))?;
    let Some(parts) = collections.get(name) else {
        let names: Vec<&str> = collections.keys().map(String::as_str).collect();
        let meant = nearest(name, names.iter().copied())
            .map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
        let known = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        return Err(ResultError::Unknown { name: name.to_owned(), meant, known });
    };
    let mut records = Vec::new();
    for path in parts {
        let of_part = |part: CollectedPart| part.decode();
        records.append(&mut read_part(name, path, of_part)?);
    }
    Ok(records)
}

/// What was collected under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    pub name: String,
    pub records: usize,
    /// The name of the records' type.
    pub record_type: String,
}

/// What was collected, by name.
pub fn collections(output: &Path) -> Result<Vec<Collection>, ResultError> {
    let mut counted = Vec::new();
    for (name, parts) in parts(&output.join(COLLECT_DIRECTORY))? {
        let (mut records, mut record_type) = (0, String::new());
        for path in &parts {
            let of_part = |part: CollectedPart| Ok((part.records.len(), part.record_type.to_owned()));
            let (more, of_type) = read_part(&name, path, of_part)?;
            records += more;
            record_type = of_type;
        }
        counted.push(Collection { name, records, record_type });
    }
    Ok(counted)
}

fn read_part<R>(
    name: &str,
    path: &Path,
    read: impl FnOnce(CollectedPart) -> Result<R, CollectedError>,
) -> Result<R, ResultError> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, error))?;
    let of_part = |error| ResultError::Collected { name: name.to_owned(), path: path.to_owned(), error };
    CollectedPart::parse(&bytes).and_then(read).map_err(of_part)
}

/// Gives all printed lines to `line`, sink by sink and subtask by subtask, as they are shown.
pub fn printed(output: &Path, mut line: impl FnMut(String)) -> Result<(), ResultError> {
    let sinks = parts(&output.join(PRINT_DIRECTORY))?;
    let mut sinks: Vec<_> = sinks.iter().collect();
    sinks.sort_by_key(|(directory, _)| print_order(directory));
    for (directory, parts) in sinks {
        for (subtask, path) in parts.iter().enumerate() {
            let prefix = print_prefix(directory, subtask, parts.len());
            let file = File::open(path).map_err(|error| unreadable(path, error))?;
            for text in BufReader::new(file).lines() {
                line(format!("{prefix}{}", text.map_err(|error| unreadable(path, error))?));
            }
        }
    }
    Ok(())
}

/// The paths of all committed files, relative to the output directory and sorted.
pub fn files(output: &Path) -> Result<Vec<PathBuf>, ResultError> {
    let (mut files, mut directories) = (Vec::new(), vec![output.to_owned()]);
    while let Some(directory) = directories.pop() {
        for path in entries(&directory)? {
            match path.strip_prefix(output) {
                Ok(relative) if relative == Path::new(PENDING_DIRECTORY) => {}
                Ok(_) if path.is_dir() => directories.push(path),
                Ok(relative) => files.push(relative.to_owned()),
                Err(_) => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The files in each directory of a kind of sink, by name and in the order of the subtasks.
fn parts(directory: &Path) -> Result<BTreeMap<String, BTreeSet<PathBuf>>, ResultError> {
    let mut sinks = BTreeMap::new();
    if !directory.exists() {
        return Ok(sinks);
    }
    for path in entries(directory)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        sinks.insert(name, entries(&path)?.into_iter().collect());
    }
    Ok(sinks)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, ResultError> {
    let read = || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    read().map_err(|error| unreadable(directory, error))
}

fn unreadable(path: &Path, error: io::Error) -> ResultError {
    ResultError::Unreadable { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::directories::WorkingDirectory;

    fn output(files: &[(&str, &[u8])]) -> WorkingDirectory {
        let directory = WorkingDirectory::temporary(&std::env::temp_dir()).unwrap();
        for (path, content) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        directory
    }

    #[test]
    fn lines_come_in_the_order_of_sinks_and_subtasks_as_they_are_shown() {
        let output = output(&[
            ("print/sums/part-00000", b"9\n"),
            ("print/_00012/part-00000", b"c\n"),
            ("print/_00002/part-00010", b"b\n"),
            ("print/_00002/part-00002", b"a\na\n"),
        ]);
        let mut lines = Vec::new();
        printed(output.path(), |line| lines.push(line)).unwrap();
        assert_eq!(lines, ["1> a", "1> a", "2> b", "c", "sums> 9"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_there_are() {
        let nothing = collected::<u8>(output(&[]).path(), "x").unwrap_err().to_string();
        assert_eq!(nothing, "the job collected nothing as 'x'; it collected: nothing");
        let output = output(&[("collect/sums/part-00000", b""), ("collect/all/part-00000", b"")]);
        assert_eq!(
            collected::<u8>(output.path(), "sum").unwrap_err().to_string(),
            "the job collected nothing as 'sum', did you mean 'sums'?; it collected: all, sums"
        );
    }

    #[test]
    fn a_file_that_is_not_what_was_collected_is_an_error_that_names_it() {
        let output = output(&[("collect/sums/part-00000", b"\x02\0\0\0u8\x01\0\0\0\x07\x01\0")]);
        let error = collected::<u8>(output.path(), "sums").unwrap_err().to_string();
        assert!(
            error.contains("collect/sums/part-00000: it ends in the middle of a frame, at byte 11"),
            "{error}"
        );
        assert_eq!(collections(output.path()).unwrap_err().to_string(), error);
    }

    #[test]
    fn files_are_those_that_were_committed() {
        let output = output(&[("b/part-00000", b""), ("a/c/x", b""), (".pending/y", b"")]);
        assert_eq!(files(output.path()).unwrap(), [Path::new("a/c/x"), Path::new("b/part-00000")]);
    }
}
