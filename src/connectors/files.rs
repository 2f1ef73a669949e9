//! Files on the input volume: which paths are right, and which files of a directory count.

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
        "'{path}' is not a path on the input volume: right is one that begins in the directory which --input \
         names, such as 'logs/2024', no part of it empty, '.' or '..'"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
