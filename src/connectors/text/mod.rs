//! Sources of text files: a record for each line. What they have in common is here and in `lines`; a
//! format only says what a line means.

use crate::api::{FunctionError, Out, Record};
use crate::coordinator::SplitAssignment;
use crate::disk::DirectoryEntry;

use super::files::{FileInput, FileSourceSplit};
use super::{Source, SourceReaderContext};

mod csv;
mod file_bytes;
mod json_lines;
mod lines;
#[cfg(test)]
mod tests;
mod text_line;

pub use csv::{CsvFormat, CsvSource};
pub use file_bytes::FileError;
pub use json_lines::{JsonLinesFormat, JsonLinesSource};
pub use text_line::{TextLineFormat, TextLineSource};

use file_bytes::RangeReader;
use lines::Lines;

/// What becomes of a line that is no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// It fails the job, with file, line and what was expected.
    #[default]
    Fail,
    /// It is left out, and counted in the accumulator `<name of the source>.bad-lines`.
    SkipAndCount,
}

/// What lines mean.
pub trait LineFormat: Send + Sync + 'static {
    type Record: Record;

    /// Whether the first line of each file says what the others mean.
    fn has_header(&self) -> bool {
        false
    }

    /// Makes the function that turns a line, without its end, into a record; `None` for a line that has
    /// none. An error says what is wrong and what was expected.
    fn parser(&self, header: Option<&[u8]>) -> Result<impl LineParser<Self::Record>, String>;
}

/// See [`LineFormat::parser`].
pub trait LineParser<T>: FnMut(&[u8]) -> Result<Option<T>, String> {}

impl<T, F: FnMut(&[u8]) -> Result<Option<T>, String>> LineParser<T> for F {}

/// The records of text files in UTF-8 on the input volume. A line ends with `\n` or `\r\n`, the last one
/// also with the file; a byte order mark at the start of a file is skipped. Files whose name ends with
/// `.gz` are decompressed, and read as one split; others are cut into splits, each of which has the
/// lines that begin in it. A line is at most [`LINE_BYTES_MAX`] long.
#[derive(Clone, Debug)]
pub struct LineSource<F> {
    input: FileInput,
    assignment: SplitAssignment,
    bad_lines: BadLines,
    format: F,
}

/// A longer line is no line but a file of another kind.
pub const LINE_BYTES_MAX: usize = 16 << 20;

impl<F: LineFormat> LineSource<F> {
    /// `paths` are files and directories on the input volume; what is named twice is read twice.
    fn with_format<P: Into<String>>(paths: impl IntoIterator<Item = P>, format: F) -> Self {
        let input = FileInput::new(paths);
        Self { input, assignment: SplitAssignment::Dynamic, bad_lines: BadLines::Fail, format }
    }

    /// The length of a split, in place of [`super::DEFAULT_SPLIT_BYTES`].
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.input.split_bytes = bytes;
        self
    }

    /// The same lines, with the splits given to readers in this way.
    #[must_use]
    pub fn assigned(self, assignment: SplitAssignment) -> Self {
        Self { assignment, ..self }
    }

    #[must_use]
    pub fn bad_lines(self, bad_lines: BadLines) -> Self {
        Self { bad_lines, ..self }
    }
}

impl<F: LineFormat> Source for LineSource<F> {
    type Record = F::Record;
    type Split = FileSourceSplit;

    fn splits(&self) -> Vec<FileSourceSplit> {
        Vec::new()
    }

    fn paths(&self) -> Vec<String> {
        self.input.paths.clone()
    }

    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<FileSourceSplit> {
        self.input.splits_of(files)
    }

    fn assignment(&self) -> SplitAssignment {
        self.assignment
    }

    async fn read(
        &self,
        split: FileSourceSplit,
        context: &SourceReaderContext,
        out: &Out<F::Record>,
    ) -> Result<(), FunctionError> {
        self.for_each(&split, context, async |record| out.collect(record).await).await
    }
}

impl<F: LineFormat> LineSource<F> {
    /// Hands on the records of a split.
    pub(crate) async fn for_each(
        &self,
        split: &FileSourceSplit,
        context: &SourceReaderContext,
        collect: impl AsyncFnMut(F::Record),
    ) -> Result<(), FunctionError> {
        let bad = self.read_lines(context, split, collect).await?;
        if self.bad_lines == BadLines::SkipAndCount {
            let name = format!("{}.bad-lines", context.source_name());
            context.add_to_accumulator(&name, i64::try_from(bad).unwrap_or(i64::MAX));
        }
        Ok(())
    }
}

/// What is wrong in a text file.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path}:1: the header line: {problem}")]
    Header { path: String, problem: String },
    #[error("{path}:{line} (at byte {offset}): {problem}")]
    Line { path: String, line: u64, offset: u64, problem: String },
}

impl<F: LineFormat> LineSource<F> {
    /// Hands on the records of a split; the number of bad lines that were left out.
    async fn read_lines<R: RangeReader>(
        &self,
        reader: &R,
        split: &FileSourceSplit,
        mut collect: impl AsyncFnMut(F::Record),
    ) -> Result<u64, LineError> {
        let path = || split.path.clone();
        let mut lines = Lines::open(reader, split).await?;
        let header = match (self.format.has_header(), split.start) {
            (false, _) => None,
            (true, 0) => lines.next().await?.map(|line| line.text.to_vec()),
            (true, _) => Lines::first_of(reader, split).await?,
        };
        let mut parse = self
            .format
            .parser(header.as_deref())
            .map_err(|problem| LineError::Header { path: path(), problem })?;
        let mut bad = 0;
        while let Some(line) = lines.next().await? {
            match parse(line.text) {
                Ok(Some(record)) => collect(record).await,
                Ok(None) => {}
                Err(_) if self.bad_lines == BadLines::SkipAndCount => bad += 1,
                Err(problem) => {
                    let offset = line.offset;
                    let line = lines.number_of_last().await?;
                    return Err(LineError::Line { path: path(), line, offset, problem });
                }
            }
        }
        Ok(bad)
    }
}
