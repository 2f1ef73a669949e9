//! Which paths are right, and what directory a path is in.

/// Checks the path of a file.
pub fn check_file(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    check_directory(path)
}

/// Checks the path of a directory; the volume's own directory is the empty path.
pub fn check_directory(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        return Err(format!("'{path}' is absolute; paths are relative to their volume"));
    }
    if !path.is_empty() && path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err(format!("'{path}' has an empty part, '.' or '..'"));
    }
    Ok(())
}

pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Whether the file lies in the directory or below.
pub fn is_below(path: &str, directory: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_volume_are_refused() {
        for wrong in ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/", "./a"] {
            assert!(check_file(wrong).is_err(), "{wrong}");
        }
        assert_eq!(check_file(".pending/part-1"), Ok(()));
        assert_eq!(check_directory(""), Ok(()));
    }

    #[test]
    fn a_name_that_only_begins_like_a_directory_is_not_below_it() {
        assert!(is_below("a/b/c", "a/b"));
        assert!(!is_below("a/bc", "a/b"));
        assert_eq!((parent("a/b/c"), parent("a")), ("a/b", ""));
    }
}
