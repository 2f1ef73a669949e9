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
///
/// ```
/// # use revenant::api::Program;
/// # use revenant::connectors::JsonLinesSource;
/// # use revenant::runtime::MiniCluster;
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Visit {
///     page: String,
///     seconds: Option<u32>,
/// }
///
/// let input = std::env::temp_dir().join(format!("revenant-json-{}", std::process::id()));
/// std::fs::create_dir_all(&input)?;
/// std::fs::write(input.join("visits.jsonl"), "{\"page\":\"/\",\"seconds\":3}\n\n{\"page\":\"/about\"}\n")?;
/// let program = Program::new().register("visits", "Reads visits.", |env, _| {
///     env.from_source("visits", JsonLinesSource::<Visit>::new(["visits.jsonl"])).collect("visits");
///     Ok(())
/// });
/// let result = MiniCluster::new(program).input(&input).run("visits")?;
/// let visits = [("/", Some(3)), ("/about", None)];
/// let visits = visits.map(|(page, seconds)| Visit { page: page.to_owned(), seconds });
/// assert_eq!(result.collected::<Visit>("visits")?, visits);
/// # std::fs::remove_dir_all(&input)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type JsonLinesSource<T> = LineSource<JsonLinesFormat<T>>;

impl<T: Record> JsonLinesSource<T> {
    /// `paths` are files and directories below the input directory, one as `["visits"]`; `[""]` is all of
    /// it. There are no patterns: a directory is read whole, but for hidden files.
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
