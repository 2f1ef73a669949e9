//! Files that are on the input volume before anything starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file of some text, once or several times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Input {
    /// Where it lies on the volume.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// How often the text is in it.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub repeat: u32,
}

/// More would say nothing that less does not, and every run holds it in memory.
pub const INPUT_BYTES_MAX: u64 = 16 << 20;

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(repeat: &u32) -> bool {
    *repeat == 1
}

impl Input {
    pub fn length(&self) -> u64 {
        self.text.len() as u64 * u64::from(self.repeat)
    }

    pub fn content(&self) -> String {
        self.text.repeat(self.repeat as usize)
    }

    /// The files of a volume that a source finds at `path`, itself a file or a directory: hidden ones
    /// count only if they are named.
    pub fn below<'a>(inputs: &'a [Self], path: &str) -> Vec<&'a Self> {
        let counts = |input: &&Self| {
            let below = match input.path.strip_prefix(path) {
                Some("") => return true,
                Some(below) if path.is_empty() => below,
                Some(below) if below.starts_with('/') => &below[1..],
                _ => return false,
            };
            !below.split('/').any(|part| part.starts_with('.') || part.starts_with('_'))
        };
        let mut found: Vec<&Self> = inputs.iter().filter(counts).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// Whether the files can be on one volume together; the first that cannot, and why.
    pub fn check(inputs: &[Self]) -> Result<(), (usize, String)> {
        let mut bytes: u64 = 0;
        for (index, input) in inputs.iter().enumerate() {
            let path = &input.path;
            crate::disk::check_file(path).map_err(|message| (index, message))?;
            let is_above = |above: &str, below: &str| {
                below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
            };
            for earlier in &inputs[..index] {
                if earlier.path == *path {
                    return Err((index, format!("there are two files '{path}'")));
                }
                if is_above(&earlier.path, path) || is_above(path, &earlier.path) {
                    let message = format!("'{path}' and '{}' cannot both be files", earlier.path);
                    return Err((index, message));
                }
            }
            bytes = bytes.saturating_add(input.length());
            if bytes > INPUT_BYTES_MAX {
                let message =
                    format!("with '{path}' the input has {bytes} bytes; at most {INPUT_BYTES_MAX} are right");
                return Err((index, message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(paths: &[&str]) -> Vec<Input> {
        let input = |path: &&str| Input { path: (*path).to_owned(), text: "ab\n".to_owned(), repeat: 2 };
        paths.iter().map(input).collect()
    }

    #[test]
    fn a_path_finds_a_file_or_the_visible_files_below_a_directory_by_name() {
        let all = inputs(&["in/b", "in/a", "in/_c", "in/.d/e", "inner", "_x"]);
        let found =
            |path| Input::below(&all, path).iter().map(|input| input.path.as_str()).collect::<Vec<_>>();
        assert_eq!(found("in"), ["in/a", "in/b"]);
        assert_eq!(found("in/_c"), ["in/_c"]);
        assert_eq!(found("_x"), ["_x"]);
        assert_eq!(found(""), ["in/a", "in/b", "inner"]);
        assert_eq!(found("other"), [""; 0]);
    }

    #[test]
    fn files_that_cannot_be_together_are_refused() {
        for (paths, index, why) in [
            (&["a", "../b"][..], 1, "'../b' has an empty part"),
            (&["a", "b", "a"], 2, "two files 'a'"),
            (&["a", "a/b"], 1, "'a/b' and 'a' cannot both be files"),
            (&["c", "a/b", "a"], 2, "'a' and 'a/b' cannot both be files"),
        ] {
            let (found, message) = Input::check(&inputs(paths)).unwrap_err();
            assert!(found == index && message.contains(why), "{found}: {message}");
        }
        let mut large = inputs(&["a", "b"]);
        large[1].repeat = u32::MAX;
        assert!(Input::check(&large).unwrap_err().1.contains("with 'b' the input has"));
        assert_eq!(Input::check(&inputs(&["a", "ab", "b/a", "b/c"])), Ok(()));
    }

    #[test]
    fn a_text_is_repeated() {
        let input = &inputs(&["a"])[0];
        assert_eq!(input.content(), "ab\nab\n");
        assert_eq!(input.length(), 6);
    }
}
