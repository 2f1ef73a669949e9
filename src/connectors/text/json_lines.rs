//! JSON Lines: each line is a JSON value.

use std::fmt;
use std::marker::PhantomData;

use super::{LineFormat, LineParser, LineSource};
use crate::api::Record;

/// A line is a JSON value that reads as a `T`; lines of blanks have none.
pub struct JsonLinesFormat<T> {
    record: PhantomData<fn() -> T>,
}

/// Records of type `T` from files of JSON Lines (NDJSON).
pub type JsonLinesSource<T> = LineSource<JsonLinesFormat<T>>;

impl<T: Record> JsonLinesSource<T> {
    /// `paths` are files and directories on the input volume.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self::with_format(paths, JsonLinesFormat { record: PhantomData })
    }
}

impl<T> Clone for JsonLinesFormat<T> {
    fn clone(&self) -> Self {
        Self { record: PhantomData }
    }
}

impl<T> fmt::Debug for JsonLinesFormat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLinesFormat").finish_non_exhaustive()
    }
}

impl<T: Record> LineFormat for JsonLinesFormat<T> {
    type Record = T;

    fn parser(&self, _header: Option<&[u8]>) -> Result<impl LineParser<T>, String> {
        Ok(|line: &[u8]| {
            if line.trim_ascii().is_empty() {
                return Ok(None);
            }
            serde_json::from_slice(line).map(Some).map_err(|error| describe(&error))
        })
    }
}

fn describe(error: &serde_json::Error) -> String {
    // The line that it names is always the first.
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("column {}: {}", error.column(), message.strip_suffix(&place).unwrap_or(&message))
}
