//! Files on the input volume as splits: which files of a directory count, and where they are cut.

use serde::{Deserialize, Serialize};

use crate::disk::DirectoryEntry;

/// A range of bytes of a file (Flink's class of this name). How records that reach over its ends are
/// dealt with is the format's business.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSourceSplit {
    /// On the input volume.
    pub path: String,
    pub start: u64,
    /// Not part of the range.
    pub end: u64,
    /// Of the whole file, when the job began: what was added since is not read.
    pub file_length: u64,
}

/// The length of a split if nothing else is said.
pub const DEFAULT_SPLIT_BYTES: u64 = 64 << 20;

/// What every source of files is told.
#[derive(Clone, Debug)]
pub(super) struct FileInput {
    pub paths: Vec<String>,
    pub split_bytes: u64,
}

impl FileInput {
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), split_bytes: DEFAULT_SPLIT_BYTES }
    }

    /// Cuts each file into ranges of `split_bytes`, the last one as long as what is left; a file that can
    /// only be read from its start is one range. Files without bytes have none.
    pub fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<FileSourceSplit> {
        let mut splits = Vec::new();
        for DirectoryEntry { path, length } in files {
            let step = if is_compressed(path) { u64::MAX } else { self.split_bytes.max(1) };
            let mut start = 0;
            while start < *length {
                let end = start.saturating_add(step).min(*length);
                splits.push(FileSourceSplit { path: path.clone(), start, end, file_length: *length });
                start = end;
            }
        }
        splits
    }
}

/// Whether the file is compressed with gzip, by its name.
pub(super) fn is_compressed(path: &str) -> bool {
    path.len() > 3 && path.as_bytes()[path.len() - 3..].eq_ignore_ascii_case(b".gz")
}

/// Whether a file that was found below `directory` does not count, as in Flink: its name or that of a
/// directory on the way begins with `.` or `_`. A file that was itself named counts.
pub fn is_hidden(path: &str, directory: &str) -> bool {
    let below = path.strip_prefix(directory).unwrap_or(path);
    below.split('/').any(|part| part.starts_with(['.', '_'])) && path != directory
}

/// Says why a path is none on a volume, and what would be right.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    if path.is_empty() || path.split('/').all(is_part) {
        return Ok(());
    }
    Err(format!(
        "'{path}' is not a path in the input directory (--input DIR, or MiniCluster::input): right is one that \
         begins there, such as 'logs/2024', no part of it empty, '.' or '..'; '' is the whole directory"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, length: u64) -> DirectoryEntry {
        DirectoryEntry { path: path.to_owned(), length }
    }

    #[test]
    fn the_splits_of_a_file_are_the_file_once_and_in_order() {
        for (length, split_bytes) in [(10, 3), (9, 3), (1, 3), (10, 64), (5, 0), (u64::MAX, u64::MAX - 1)] {
            let input = FileInput { paths: vec![], split_bytes };
            let splits = input.splits_of(&[file("a", length)]);
            assert_eq!(splits.first().map(|split| split.start), Some(0));
            assert_eq!(splits.last().map(|split| split.end), Some(length));
            assert!(
                splits.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end)
            );
            assert!(splits.iter().all(|split| split.file_length == length));
        }
    }

    #[test]
    fn a_compressed_file_is_one_split_and_an_empty_file_none() {
        let input = FileInput { paths: vec![], split_bytes: 3 };
        let files = [file("a.csv.gz", 10), file("empty", 0), file("b.GZ", 5), file("gz", 4)];
        let splits: Vec<_> =
            input.splits_of(&files).into_iter().map(|split| (split.path, split.start, split.end)).collect();
        let expected = [("a.csv.gz", 0, 10), ("b.GZ", 0, 5), ("gz", 0, 3), ("gz", 3, 4)];
        assert_eq!(splits, expected.map(|(path, start, end)| (path.to_owned(), start, end)));
    }

    #[test]
    fn hidden_files_of_a_directory_do_not_count_and_a_hidden_file_that_is_named_does() {
        for path in ["in/.a", "in/_SUCCESS", "in/_temporary/part-0", "in/a/.b/c"] {
            assert!(is_hidden(path, "in"), "{path}");
        }
        for (path, directory) in
            [("in/a", "in"), ("in/a_b", "in"), ("_in/a", "_in"), ("_a", "_a"), ("a/_b", "a/_b"), ("a", "")]
        {
            assert!(!is_hidden(path, directory), "{path} in {directory}");
        }
        assert!(is_hidden("_a", "") && is_hidden(".git/config", ""));
    }

    #[test]
    fn a_path_that_leaves_the_volume_is_refused_with_what_would_be_right() {
        for path in ["/etc/passwd", "a//b", "a/", "../a", "a/./b"] {
            assert!(check_path(path).unwrap_err().contains("such as 'logs/2024'"), "{path}");
        }
        for path in ["", "a", "a/b.csv", "a/_b"] {
            assert_eq!(check_path(path), Ok(()));
        }
    }
}
