//! Sources and sinks: what a connector has to offer, and those that come with the engine. A source
//! says what its splits are and how to read one; who reads which split is decided by its
//! enumerator in the JobManager. A sink writes pending files; what becomes visible is decided when
//! the job commits.

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{FunctionError, Record};
use crate::coordinator::SplitAssignment;
use crate::disk::DirectoryEntry;
use crate::operators::{OperatorContext, Out};
use crate::task::BodyError;

mod collect_sink;
mod collection;
mod csv_sink;
mod date;
mod files;
mod header;
mod json_lines_sink;
mod number_sequence;
#[cfg(feature = "parquet")]
mod parquet;
mod part_file;
mod print_sink;
mod reader_context;
mod text;
pub mod tpch;

pub use collect_sink::{COLLECT_DIRECTORY, CollectSink, CollectedError, CollectedPart};
pub use collection::CollectionSource;
pub use csv_sink::CsvSink;
pub use date::Date;
pub(crate) use files::check_path;
pub use files::{DEFAULT_SPLIT_BYTES, FileSourceSplit, is_hidden};
pub use json_lines_sink::JsonLinesSink;
pub use number_sequence::NumberSequenceSource;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetFileError, ParquetSink, ParquetSource, ParquetWriter};
pub(crate) use part_file::is_pending_of;
pub use print_sink::{PRINT_DIRECTORY, PrintSink, print_order, print_prefix};
pub use reader_context::SourceReaderContext;
pub use text::{
    BadLines, CsvFormat, CsvSource, FileError, JsonLinesFormat, JsonLinesSource, LINE_BYTES_MAX, LineFormat,
    LineParser, LineSource, TextLineFormat, TextLineSource,
};
pub use tpch::{LineItem, TpchLineItemSource, TpchSource};

/// Where sinks keep what is not committed, on the output volume. All files lie in the directory
/// itself, so that their entries are durable after a sync of it.
pub const PENDING_DIRECTORY: &str = ".pending";

/// A bounded input that is read split by split (Flink's Source of FLIP-27).
///
/// ```
/// # use revenant::api::{FunctionError, Out};
/// # use revenant::connectors::{Source, SourceReaderContext};
/// # use revenant::coordinator::SplitAssignment;
/// # use revenant::runtime::run;
/// /// Every `step`-th number, split by what is left of a division.
/// struct Steps {
///     step: u32,
/// }
///
/// impl Source for Steps {
///     type Record = u32;
///     type Split = u32;
///
///     fn splits(&self) -> Vec<u32> {
///         (0..self.step).collect()
///     }
///
///     fn assignment(&self) -> SplitAssignment {
///         SplitAssignment::Static
///     }
///
///     async fn read(&self, rest: u32, _: &SourceReaderContext, out: &Out<u32>) -> Result<(), FunctionError> {
///         for number in (rest..6).step_by(self.step as usize) {
///             out.collect(number).await;
///         }
///         Ok(())
///     }
/// }
///
/// let result = run(|env| {
///     env.from_source("steps", Steps { step: 2 }).set_parallelism(2).collect("numbers");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<u32>("numbers")?, [0, 2, 4, 1, 3, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: Send + Sync + 'static {
    type Record: Record;
    /// What a reader has to know of its split.
    type Split: Serialize + DeserializeOwned;

    /// All splits, in order; equal at every call. Their records together are the input. A source of
    /// files has none here: see [`Self::splits_of`].
    fn splits(&self) -> Vec<Self::Split>;

    /// The files and directories on the input volume that the source reads, if its splits follow from
    /// files. When a job begins they are listed once, and the splits are stored with the job.
    fn paths(&self) -> Vec<String> {
        Vec::new()
    }

    /// All splits of a source of files, in order; equal for equal files. Of a directory, `files` has
    /// the files in it and below, but no hidden ones.
    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<Self::Split> {
        let _ = files;
        self.splits()
    }

    /// Who reads which split. With [`SplitAssignment::Dynamic`] a subtask that runs again may get
    /// other splits, so whatever consumed its records runs again with it.
    fn assignment(&self) -> SplitAssignment {
        SplitAssignment::Dynamic
    }

    /// Whether it may be recorded who has got which split (Flink's SupportsBatchSnapshot). If not, a
    /// job that recovers reads the source again unless all of its subtasks had finished. Without
    /// meaning for static assignment, which has nothing to record.
    fn supports_batch_snapshot(&self) -> bool {
        true
    }

    /// Collects the records of one split, in an order that is equal at every call.
    fn read(
        &self,
        split: Self::Split,
        context: &SourceReaderContext,
        out: &Out<Self::Record>,
    ) -> impl Future<Output = Result<(), FunctionError>>;
}

/// A sink with two phases (Flink's TwoPhaseCommittingSink): its writers prepare, the job commits.
///
/// ```
/// # use revenant::connectors::{Sink, SinkWriter};
/// # use revenant::operators::OperatorContext;
/// # use revenant::runtime::run;
/// # use revenant::task::BodyError;
/// /// Counts records and keeps none.
/// struct Discard;
///
/// struct Counter(OperatorContext);
///
/// impl<T: 'static> Sink<T> for Discard {
///     type Writer = Counter;
///
///     fn name(&self) -> String {
///         "discard".to_owned()
///     }
///
///     fn target(&self) -> Result<String, String> {
///         Ok("discard".to_owned())
///     }
///
///     fn writer(&self, context: &OperatorContext) -> Counter {
///         Counter(context.clone())
///     }
/// }
///
/// impl<T> SinkWriter<T> for Counter {
///     fn write(&mut self, _: T) -> Result<usize, BodyError> {
///         self.0.task().add_to_accumulator("discarded", 1);
///         Ok(0)
///     }
///
///     async fn flush(&mut self) -> Result<(), BodyError> {
///         Ok(())
///     }
///
///     async fn finish(&mut self) -> Result<(), BodyError> {
///         Ok(())
///     }
/// }
///
/// let result = run(|env| {
///     env.from_collection("numbers", 0..10).sink_to(Discard);
///     Ok(())
/// })?;
/// assert_eq!(result.accumulators().get("discarded"), Some(&10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Sink<T>: Send + Sync + 'static {
    type Writer: SinkWriter<T> + 'static;

    /// What the operator is called when the job does not say.
    fn name(&self) -> String;

    /// The place that the sink fills, which no other sink of the job may have; or what is wrong
    /// with the sink.
    fn target(&self) -> Result<String, String>;

    /// Whether nothing is seen twice when a subtask runs again. A job with a sink that says no cannot
    /// recover.
    fn is_idempotent(&self) -> bool {
        true
    }

    /// The writer of one subtask.
    fn writer(&self, context: &OperatorContext) -> Self::Writer;
}

/// Writes the records of one subtask of a sink.
pub trait SinkWriter<T> {
    /// Takes one record and never waits. Returns how many bytes it adds to what waits for
    /// [`Self::flush`].
    fn write(&mut self, record: T) -> Result<usize, BodyError>;

    /// Between batches: may write out what waits.
    fn flush(&mut self) -> impl Future<Output = Result<(), BodyError>>;

    /// No record will follow: makes what was written durable and hands over its committables. Also
    /// called when there was no record at all.
    fn finish(&mut self) -> impl Future<Output = Result<(), BodyError>>;
}
