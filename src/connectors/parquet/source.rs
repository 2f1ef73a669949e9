//! Reads rows from Parquet files, row group by row group.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use super::fetch::{ParquetFile, ParquetFileError};
use crate::api::{FunctionError, Record};
use crate::connectors::files::FileInput;
use crate::connectors::header::field_names;
use crate::connectors::{FileSourceSplit, Source, SourceReaderContext};
use crate::coordinator::SplitAssignment;
use crate::disk::DirectoryEntry;
use crate::operators::Out;

/// The rows of Parquet files on the input volume as structs of type `T`, whose fields are found by the
/// names of the columns; other columns are not even read. A split has the row groups that begin in its
/// range of bytes; one of them is in memory at a time. Compressed may be what snappy compressed.
///
/// See [`super::ParquetSink`] for an example.
pub struct ParquetSource<T> {
    input: FileInput,
    assignment: SplitAssignment,
    record: PhantomData<fn() -> T>,
}

/// Rows that are decoded at once.
const BATCH_ROWS: usize = 1024;

impl<T: Record> ParquetSource<T> {
    /// `paths` are files and directories on the input volume; what is named twice is read twice.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> Self {
        let input = FileInput::new(paths);
        Self { input, assignment: SplitAssignment::Dynamic, record: PhantomData }
    }

    /// The length of a split, in place of [`crate::connectors::DEFAULT_SPLIT_BYTES`].
    #[must_use]
    pub fn split_bytes(mut self, bytes: u64) -> Self {
        self.input.split_bytes = bytes;
        self
    }

    /// The same rows, with the splits given to readers in this way.
    #[must_use]
    pub fn assigned(self, assignment: SplitAssignment) -> Self {
        Self { assignment, ..self }
    }

    /// The columns that `T` has fields for; all of them if its fields cannot be told.
    fn columns(metadata: &ArrowReaderMetadata) -> ProjectionMask {
        let Some(names) = field_names::<T>() else { return ProjectionMask::all() };
        let fields = metadata.schema().fields();
        let wanted = fields.iter().enumerate().filter(|(_, field)| names.contains(&field.name().as_str()));
        ProjectionMask::roots(metadata.parquet_schema(), wanted.map(|(index, _)| index))
    }

    async fn read_rows(&self, file: &ParquetFile<'_>, out: &Out<T>) -> Result<(), ParquetFileError> {
        let metadata = Arc::new(file.metadata().await?);
        let metadata = ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new());
        let metadata = metadata.map_err(|error| file.format(error))?;
        let columns = Self::columns(&metadata);
        for (index, group) in metadata.metadata().row_groups().iter().enumerate() {
            if !(file.split.start..file.split.end).contains(&file.start(group)?) {
                continue;
            }
            let rows = |problem: String| {
                let (path, record) = (file.split.path.clone(), type_name::<T>());
                ParquetFileError::Rows { path, group: index, record, problem }
            };
            let fetched = file.fetch(group, &columns).await?;
            let reader: ParquetRecordBatchReader =
                ParquetRecordBatchReaderBuilder::new_with_metadata(fetched, metadata.clone())
                    .with_row_groups(vec![index])
                    .with_projection(columns.clone())
                    .with_batch_size(BATCH_ROWS)
                    .build()
                    .map_err(|error| file.format(error))?;
            for batch in reader {
                let batch = batch.map_err(|error| file.format(error))?;
                let records: Vec<T> = serde_arrow::from_record_batch(&batch)
                    .map_err(|error| rows(error.message().to_owned()))?;
                for record in records {
                    out.collect(record).await;
                }
            }
        }
        Ok(())
    }
}

impl<T: Record> Source for ParquetSource<T> {
    type Record = T;
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
        out: &Out<T>,
    ) -> Result<(), FunctionError> {
        Ok(self.read_rows(&ParquetFile { context, split: &split }, out).await?)
    }
}

impl<T> Clone for ParquetSource<T> {
    fn clone(&self) -> Self {
        Self { input: self.input.clone(), assignment: self.assignment, record: PhantomData }
    }
}

impl<T> fmt::Debug for ParquetSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetSource").field("input", &self.input).finish_non_exhaustive()
    }
}
