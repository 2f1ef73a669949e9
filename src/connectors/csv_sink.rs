//! A sink of CSV files, `part-<subtask>.csv`. A subtask without records writes a file too, with nothing
//! but the header.
//!
//! The format is that of RFC 4180 with `\n` as line end: a field is quoted if it has a comma, a
//! quote or a line break, and a quote in it is doubled.

use crate::api::Record;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::header::field_names;
use super::part_file::{PartFile, Rendered, check_directory};
use super::{Sink, SinkWriter};

/// Writes rows, structs with named fields, as CSV on the output volume.
///
/// ```
/// # use revenant::connectors::CsvSink;
/// # use revenant::runtime::run;
/// #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// struct Line {
///     speaker: String,
///     text: String,
/// }
///
/// let result = run(|env| {
///     let line = Line { speaker: "Hamlet".to_owned(), text: "To be, or not to be".to_owned() };
///     env.from_collection("lines", [line]).sink_to(CsvSink::new("lines"));
///     Ok(())
/// })?;
/// let csv = std::fs::read_to_string(result.output().join("lines/part-00000.csv"))?;
/// assert_eq!(csv, "speaker,text\nHamlet,\"To be, or not to be\"\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CsvSink {
    directory: String,
}

impl CsvSink {
    /// `directory` is a path on the output volume: parts of letters, digits, `-`, `_` and inner `.`
    /// with `/` between them.
    pub fn new(directory: impl Into<String>) -> Self {
        Self { directory: directory.into() }
    }
}

impl<T: Record> Sink<T> for CsvSink {
    type Writer = CsvWriter;

    fn name(&self) -> String {
        "csv".to_owned()
    }

    fn target(&self) -> Result<String, String> {
        check_directory(&self.directory)?;
        if field_names::<T>().is_none_or(<[&str]>::is_empty) {
            return Err(format!(
                "{} has no column names; CSV rows are structs with named fields",
                std::any::type_name::<T>()
            ));
        }
        Ok(self.directory.clone())
    }

    fn writer(&self, context: &OperatorContext) -> CsvWriter {
        let file = PartFile::new(context, &self.directory, ".csv");
        CsvWriter {
            header: field_names::<T>().unwrap_or_default(),
            context: context.clone(),
            encoder: csv::WriterBuilder::new().has_headers(false).from_writer(file.rendered()),
            rendered: file.rendered(),
            file,
            has_header: false,
        }
    }
}

/// Writes one pending file.
pub struct CsvWriter {
    context: OperatorContext,
    header: &'static [&'static str],
    encoder: csv::Writer<Rendered>,
    rendered: Rendered,
    file: PartFile,
    has_header: bool,
}

impl CsvWriter {
    fn begin(&mut self) -> Result<(), BodyError> {
        if !self.has_header {
            self.render(|encoder, header| encoder.write_record(header))?;
            self.has_header = true;
        }
        Ok(())
    }

    fn render(
        &mut self,
        row: impl FnOnce(&mut csv::Writer<Rendered>, &[&str]) -> csv::Result<()>,
    ) -> Result<(), BodyError> {
        row(&mut self.encoder, self.header)
            .and_then(|()| Ok(self.encoder.flush()?))
            .map_err(|error| self.context.error(format_args!("a row cannot be written as CSV: {error}")))
    }
}

impl<T: Record> SinkWriter<T> for CsvWriter {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        self.begin()?;
        let before = self.rendered.len();
        self.render(|encoder, _| encoder.serialize(record))?;
        Ok(self.rendered.len() - before)
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        self.file.flush().await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.begin()?;
        self.file.finish().await
    }
}
