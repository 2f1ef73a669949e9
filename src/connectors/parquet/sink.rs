//! A sink of Parquet files, `part-<subtask>.parquet`. A subtask without records writes a file too, with
//! nothing but the schema.

use std::any::type_name;
use std::io::Write;
use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_arrow::ArrayBuilder;
use serde_arrow::schema::{SchemaLike, TracingOptions};

use crate::api::Record;
use crate::connectors::part_file::{PartFile, Rendered, check_directory};
use crate::connectors::{Sink, SinkWriter};
use crate::operators::OperatorContext;
use crate::task::BodyError;

/// Writes rows, structs with named fields, as Parquet on the output volume, compressed by snappy. The
/// columns follow from the row type alone: numbers, `bool`, `String`, `Option`, lists, structs, and enums
/// whose variants have no fields. A type that reads only certain texts, such as
/// [`crate::connectors::Date`], is refused.
///
/// ```
/// # use revenant::api::Program;
/// # use revenant::connectors::{ParquetSink, ParquetSource};
/// # use revenant::runtime::{MiniCluster, run};
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct City {
///     name: String,
///     people: Option<u32>,
/// }
///
/// let written = run(|env| {
///     let cities = [("Ulm", Some(126_000)), ("Atlantis", None)];
///     let cities = cities.map(|(name, people)| City { name: name.to_owned(), people });
///     env.from_collection("cities", cities).sink_to(ParquetSink::new("cities"));
///     Ok(())
/// })?;
/// let program = Program::new().register("names", "Reads names.", |env, _| {
///     let cities = env.from_source("cities", ParquetSource::<City>::new(["cities"]));
///     cities.filter(|city| city.people.is_none()).map(|city| city.name).collect("legends");
///     Ok(())
/// });
/// let read = MiniCluster::new(program).input(written.output()).run("names")?;
/// assert_eq!(read.collected::<String>("legends")?, ["Atlantis"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ParquetSink {
    directory: String,
    row_group_bytes: usize,
}

/// What is in memory of a file before it is written.
const ROW_GROUP_BYTES: usize = 8 << 20;
/// Rows that are encoded at once.
const BATCH_ROWS: usize = 1024;

impl ParquetSink {
    /// `directory` is a path on the output volume: parts of letters, digits, `-`, `_` and inner `.`
    /// with `/` between them.
    pub fn new(directory: impl Into<String>) -> Self {
        Self { directory: directory.into(), row_group_bytes: ROW_GROUP_BYTES }
    }

    /// About how long a row group becomes, in place of 8 MB. So much is in memory.
    #[must_use]
    pub fn row_group_bytes(self, bytes: usize) -> Self {
        Self { row_group_bytes: bytes.max(1), ..self }
    }
}

fn fields<T: Record>() -> Result<Vec<FieldRef>, String> {
    let options = TracingOptions::default()
        .strings_as_large_utf8(false)
        .sequence_as_large_list(false)
        .enums_without_data_as_strings(true);
    Vec::<FieldRef>::from_type::<T>(options).map_err(|error| {
        format!(
            "{} cannot be rows of Parquet: {}; right are structs whose fields are numbers, bool, String, Option, \
             lists, structs, and enums without data",
            type_name::<T>(),
            error.message()
        )
    })
}

impl<T: Record> Sink<T> for ParquetSink {
    type Writer = ParquetWriter;

    fn name(&self) -> String {
        "parquet".to_owned()
    }

    fn target(&self) -> Result<String, String> {
        check_directory(&self.directory)?;
        let fields = fields::<T>()?;
        if fields.is_empty() {
            return Err(format!("{} has no fields, so its rows have no columns", type_name::<T>()));
        }
        ArrayBuilder::from_arrow(&fields).map_err(|error| error.message().to_owned())?;
        Ok(self.directory.clone())
    }

    fn writer(&self, context: &OperatorContext) -> ParquetWriter {
        let file = PartFile::new(context, &self.directory, ".parquet");
        let encoder = fields::<T>().and_then(|fields| {
            Encoder::new(&fields, self.row_group_bytes).map_err(|error| error.to_string())
        });
        ParquetWriter {
            context: context.clone(),
            encoder: encoder.map(Some),
            rendered: file.rendered(),
            file,
        }
    }
}

/// Turns rows into the bytes of a file.
struct Encoder {
    rows: ArrayBuilder,
    waiting: usize,
    writer: ArrowWriter<Vec<u8>>,
}

type EncoderError = Box<dyn std::error::Error>;

impl Encoder {
    fn new(fields: &[FieldRef], row_group_bytes: usize) -> Result<Self, EncoderError> {
        let properties = WriterProperties::builder()
            .set_created_by("revenant".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_bytes(Some(row_group_bytes))
            .build();
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        Ok(Self { rows: ArrayBuilder::from_arrow(fields)?, waiting: 0, writer })
    }

    /// What can be written out of the file so far.
    fn push<T: Record>(&mut self, row: &T) -> Result<Vec<u8>, EncoderError> {
        self.rows.push(row)?;
        self.waiting += 1;
        if self.waiting == BATCH_ROWS {
            self.encode()?;
        }
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    fn encode(&mut self) -> Result<(), EncoderError> {
        self.waiting = 0;
        let batch = self.rows.to_record_batch()?;
        Ok(self.writer.write(&batch)?)
    }

    /// The rest of the file.
    fn finish(mut self) -> Result<Vec<u8>, EncoderError> {
        if self.waiting > 0 {
            self.encode()?;
        }
        self.writer.into_inner().map_err(|error: ParquetError| error.into())
    }
}

/// Writes one pending file.
pub struct ParquetWriter {
    context: OperatorContext,
    /// `None` behind the end of the file.
    encoder: Result<Option<Encoder>, String>,
    rendered: Rendered,
    file: PartFile,
}

impl ParquetWriter {
    fn error(&self, error: impl std::fmt::Display) -> BodyError {
        self.context.error(format_args!("a row cannot be written as Parquet: {error}"))
    }
}

impl<T: Record> SinkWriter<T> for ParquetWriter {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        let pushed = match &mut self.encoder {
            Ok(Some(encoder)) => encoder.push(&record).map_err(|error| error.to_string()),
            Ok(None) => Err("the file has ended".to_owned()),
            Err(error) => Err(error.clone()),
        };
        let bytes = pushed.map_err(|error| self.error(error))?;
        self.rendered.write_all(&bytes).map_err(|error| self.error(error))?;
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        self.file.flush().await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        let encoder = self.encoder.as_mut().map(Option::take).map_err(|error| error.clone());
        if let Some(encoder) = encoder.map_err(|error| self.error(error))? {
            let bytes = encoder.finish().map_err(|error| self.error(error))?;
            self.rendered.write_all(&bytes).map_err(|error| self.error(error))?;
        }
        self.file.finish().await
    }
}
