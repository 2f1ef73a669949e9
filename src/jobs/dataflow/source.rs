//! The sources of a dataflow: rows that are generated, given with the job, counted, or read from files.
//! Decides how each becomes a stream of rows.

use crate::api::{DataStream, Record, StreamExecutionEnvironment};
use crate::connectors::{
    CollectionSource, CsvSource, JsonLinesSource, NumberSequenceSource, Source, TextLineSource,
};
use crate::coordinator::SplitAssignment;

use super::lineage::{Keeps, RecordId};
use super::plan::Stage;
use super::row::{FileRow, Row};
use super::row_source::RowSource;
use super::text_source::TextRows;

/// What the plan says of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceOptions {
    pub kind: SourceKind,
    pub assignment: SplitAssignment,
    /// Only rows and sequences can be without.
    pub snapshots: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// Rows that follow from their places.
    Rows(Places),
    /// The same rows, given with the job.
    Collection(Places),
    /// Numbers; each is the offset of a row in split 0.
    Sequence(Places),
    /// Rows as they are in files.
    Csv(Files),
    JsonLines(Files),
    /// Rows made of lines of files.
    Text {
        files: Files,
        keys: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// Of all splits together.
    pub rows: u32,
    pub splits: u32,
    /// How many keys there can be.
    pub keys: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// A file or a directory.
    pub path: String,
    pub split_bytes: u64,
}

/// The rows of source `number` of the plan.
pub(super) fn stream(
    env: &mut StreamExecutionEnvironment,
    number: u32,
    stage: &Stage,
    options: &SourceOptions,
    keeps: Keeps,
) -> DataStream<Row> {
    let SourceOptions { kind, assignment, snapshots } = options;
    let (assignment, snapshots) = (*assignment, *snapshots);
    let name = stage.name.as_str();
    let raw = format!("{name}.raw");
    match kind {
        SourceKind::Rows(places) => {
            added(env, name, RowSource { number, places: *places, assignment, snapshots, keeps }, stage)
        }
        SourceKind::Collection(places) => {
            let generated = RowSource { number, places: *places, assignment, snapshots, keeps };
            let rows = generated.splits().into_iter().flat_map(|piece| generated.rows_of(piece));
            let source = CollectionSource::new(rows).with_splits(places.splits as usize);
            added(env, name, source.assigned(assignment), stage)
        }
        SourceKind::Sequence(Places { rows, splits, keys }) => {
            let source = NumberSequenceSource::new(0, i64::from(*rows), *splits).assigned(assignment);
            let source = if snapshots { source } else { source.without_batch_snapshots() };
            let keys = *keys;
            let row = move |offset: i64| {
                let offset = u32::try_from(offset).unwrap_or_default();
                Row::generate(RecordId { source: number, split: 0, offset }, keys, keeps)
            };
            added(env, &raw, source, stage).map(row).name(name)
        }
        SourceKind::Csv(Files { path, split_bytes }) => {
            let source = CsvSource::new([path]).split_bytes(*split_bytes);
            let rows = added(env, &raw, source.assigned(assignment), stage);
            rows.map(move |row: FileRow| row.row(keeps)).name(name)
        }
        SourceKind::JsonLines(Files { path, split_bytes }) => {
            let source = JsonLinesSource::new([path]).split_bytes(*split_bytes);
            let rows = added(env, &raw, source.assigned(assignment), stage);
            rows.map(move |row: FileRow| row.row(keeps)).name(name)
        }
        SourceKind::Text { files: Files { path, split_bytes }, keys } => {
            let lines = TextLineSource::new([path]).split_bytes(*split_bytes).assigned(assignment);
            added(env, name, TextRows { number, keys: *keys, keeps, lines }, stage)
        }
    }
}

/// The source with the stage's parallelism; what is chained behind it follows.
fn added<T: Record>(
    env: &mut StreamExecutionEnvironment,
    name: &str,
    source: impl Source<Record = T>,
    stage: &Stage,
) -> DataStream<T> {
    let mut stream = env.from_source(name, source);
    if let Some(parallelism) = stage.parallelism {
        stream = stream.set_parallelism(parallelism);
    }
    if let Some(max_parallelism) = stage.max_parallelism {
        stream = stream.set_max_parallelism(max_parallelism);
    }
    stream
}
