//! A sink of CSV files: each subtask writes one pending file and asks that the job's commit renames
//! it to `<directory>/part-<subtask>.csv` (the subtask with five digits). A subtask without records
//! writes a file too, with nothing but the header.
//!
//! The format is that of RFC 4180 with `\n` as line end: a field is quoted if it has a comma, a
//! quote or a line break, and a quote in it is doubled.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use bytes::Bytes;

use crate::actor::Purpose;
use crate::api::Record;
use crate::disk::Volume;
use crate::message::Committable;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::header::field_names;
use super::{PENDING_DIRECTORY, Sink, SinkWriter};

/// Writes rows, structs with named fields, as CSV on the output volume.
#[derive(Clone, Debug)]
pub struct CsvSink {
    directory: String,
}

/// Bytes that are written in one piece, about a network buffer.
const CHUNK_BYTES: usize = 32 << 10;

impl CsvSink {
    /// `directory` is a path on the output volume: parts of letters, digits, `-`, `_` and inner `.`
    /// with `/` between them.
    pub fn new(directory: impl Into<String>) -> Self {
        Self { directory: directory.into() }
    }

    /// The pending file of an attempt. Its name has all that the attempt's id has (vertex, subtask,
    /// epoch and number), so no attempt of any epoch ever writes to another's file.
    fn pending(&self, context: &OperatorContext) -> String {
        // No part of a directory has a `+`, so different directories have different names.
        format!("{PENDING_DIRECTORY}/{}-{}.csv", self.directory.replace('/', "+"), context.task().attempt())
    }

    fn target_file(&self, subtask: u32) -> String {
        format!("{}/part-{subtask:05}.csv", self.directory)
    }
}

impl<T: Record> Sink<T> for CsvSink {
    type Writer = CsvWriter;

    fn name(&self) -> String {
        "csv".to_owned()
    }

    fn target(&self) -> Result<String, String> {
        let is_part = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if !self.directory.split('/').all(is_part) {
            return Err(format!(
                "'{}' is not a directory for CSV files; right is a relative path such as 'result/by-date' \
                 of letters, digits, '-', '_' and '.', no part of it empty or with a '.' in front",
                self.directory
            ));
        }
        if field_names::<T>().is_none_or(<[&str]>::is_empty) {
            return Err(format!(
                "{} has no column names; CSV rows are structs with named fields",
                std::any::type_name::<T>()
            ));
        }
        Ok(self.directory.clone())
    }

    fn writer(&self, context: &OperatorContext) -> CsvWriter {
        let rendered = Rendered::default();
        CsvWriter {
            header: field_names::<T>().unwrap_or_default(),
            committable: Committable {
                pending: self.pending(context),
                target: self.target_file(context.task().subtask()),
            },
            context: context.clone(),
            encoder: encoder(rendered.clone()),
            rendered,
            stage: Stage::Empty,
        }
    }
}

fn encoder(rendered: Rendered) -> csv::Writer<Rendered> {
    csv::WriterBuilder::new().has_headers(false).from_writer(rendered)
}

/// The text that is not yet in the file.
#[derive(Clone, Debug, Default)]
struct Rendered(Rc<RefCell<Vec<u8>>>);

impl Rendered {
    fn len(&self) -> usize {
        self.0.borrow().len()
    }

    fn take(&self) -> Bytes {
        self.0.take().into()
    }
}

impl io::Write for Rendered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Empty,
    /// The header is rendered.
    Begun,
    /// The pending file exists.
    Created,
}

/// Writes one pending file.
pub struct CsvWriter {
    context: OperatorContext,
    committable: Committable,
    header: &'static [&'static str],
    encoder: csv::Writer<Rendered>,
    rendered: Rendered,
    stage: Stage,
}

impl CsvWriter {
    fn begin(&mut self) -> Result<(), BodyError> {
        if self.stage == Stage::Empty {
            self.render(|encoder, header| encoder.write_record(header))?;
            self.stage = Stage::Begun;
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

    async fn append_rendered(&mut self) -> Result<(), BodyError> {
        let task = self.context.task();
        let path = &self.committable.pending;
        if self.stage == Stage::Begun {
            let created = task.create(Volume::Output, Purpose::Sink, path).await;
            created.map_err(|error| self.context.error(error))?;
            self.stage = Stage::Created;
        }
        let bytes = self.rendered.take();
        if !bytes.is_empty() {
            let appended = task.append(Volume::Output, Purpose::Sink, path, bytes).await;
            appended.map_err(|error| self.context.error(error))?;
        }
        Ok(())
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
        if self.rendered.len() >= CHUNK_BYTES { self.append_rendered().await } else { Ok(()) }
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.begin()?;
        self.append_rendered().await?;
        let task = self.context.task();
        let synced = task.sync(Volume::Output, Purpose::Sink, &self.committable.pending).await;
        synced.map_err(|error| self.context.error(error))?;
        let closed = task.close(Volume::Output, Purpose::Sink, &self.committable.pending).await;
        closed.map_err(|error| self.context.error(error))?;
        let synced = task.sync_directory(Volume::Output, Purpose::Sink, PENDING_DIRECTORY).await;
        synced.map_err(|error| self.context.error(error))?;
        task.add_committable(self.committable.clone());
        Ok(())
    }
}
