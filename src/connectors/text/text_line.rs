//! Lines as they are.

use super::{LineFormat, LineParser, LineSource};

/// A line is a `String`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextLineFormat;

/// The lines of text files, empty ones too (Flink's `TextLineInputFormat`).
pub type TextLineSource = LineSource<TextLineFormat>;

impl TextLineSource {
    /// `paths` are files and directories on the input volume.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::with_format(paths, TextLineFormat)
    }
}

impl LineFormat for TextLineFormat {
    type Record = String;

    fn parser(&self, _header: Option<&[u8]>) -> Result<impl LineParser<String>, String> {
        Ok(|line: &[u8]| {
            let text = str::from_utf8(line).map_err(|error| format!("the line is not UTF-8: {error}"))?;
            Ok(Some(text.to_owned()))
        })
    }
}
