//! The parts of a Parquet file that are read: its footer, and of a row group the columns that are wanted.
//! Nothing that the file says of itself is believed before it is checked.

use std::fmt::Display;
use std::io;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::{ChunkReader, Length};

use crate::connectors::{FileError, FileSourceSplit, SourceReaderContext};

/// A Parquet file that cannot be read as it should.
#[derive(Debug, thiserror::Error)]
pub enum ParquetFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path} is not a Parquet file that can be read: {problem}")]
    Format { path: String, problem: String },
    #[error("{path}: the rows of row group {group} (from 0) do not read as {record}: {problem}")]
    Rows { path: String, group: usize, record: &'static str, problem: String },
}

/// What every file ends with, behind the length of its metadata.
const MAGIC: &[u8] = b"PAR1";
/// The length of the metadata and the magic.
const TAIL_BYTES: u64 = 8;
/// What is read at the end of a file to begin with: most footers are shorter.
const FOOTER_BYTES: u64 = 64 << 10;

/// Reads ranges of a split's file.
pub struct ParquetFile<'a> {
    pub context: &'a SourceReaderContext,
    pub split: &'a FileSourceSplit,
}

impl ParquetFile<'_> {
    pub fn format(&self, problem: impl Display) -> ParquetFileError {
        ParquetFileError::Format { path: self.split.path.clone(), problem: problem.to_string() }
    }

    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, ParquetFileError> {
        let path = &self.split.path;
        let bytes = self.context.read_file(path, offset, length).await.map_err(FileError::from)?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        let (path, expected) = (path.clone(), offset + length);
        Err(FileError::Shrunk { path, length: self.split.file_length, expected }.into())
    }

    pub async fn metadata(&self) -> Result<ParquetMetaData, ParquetFileError> {
        let length = self.split.file_length;
        let end = length.min(FOOTER_BYTES);
        let mut footer = self.read(length - end, end).await?;
        let Some((rest, MAGIC)) = footer.split_last_chunk::<4>().map(|(rest, magic)| (rest, &magic[..]))
        else {
            return Err(self.format("it does not end with 'PAR1'"));
        };
        let Some((_, metadata)) = rest.split_last_chunk::<4>() else {
            return Err(self.format("it is too short"));
        };
        let wanted = u64::from(u32::from_le_bytes(*metadata));
        if wanted + TAIL_BYTES > length {
            return Err(self.format(format_args!("its footer of {wanted} bytes is longer than the file")));
        }
        if wanted + TAIL_BYTES > end {
            footer = self.read(length - TAIL_BYTES - wanted, wanted + TAIL_BYTES).await?;
        }
        let end = footer.len() - TAIL_BYTES as usize;
        let metadata = &footer[end - wanted as usize..end];
        ParquetMetaDataReader::decode_metadata(metadata).map_err(|error| self.format(error))
    }

    /// Where a row group begins: it belongs to the split that has this byte.
    pub fn start(&self, group: &RowGroupMetaData) -> Result<u64, ParquetFileError> {
        let starts = group.columns().iter().map(|column| self.range(column).map(|(start, _)| start));
        let starts: Vec<u64> = starts.collect::<Result<_, _>>()?;
        Ok(starts.into_iter().min().unwrap_or(0))
    }

    /// First byte and length of a column of a row group.
    fn range(&self, column: &ColumnChunkMetaData) -> Result<(u64, u64), ParquetFileError> {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
        range
            .filter(|(start, length)| {
                start.checked_add(*length).is_some_and(|end| end <= self.split.file_length)
            })
            .ok_or_else(|| {
                self.format(format_args!("column '{}' is not inside the file", column.column_path()))
            })
    }

    /// Reads the columns of a row group that are wanted.
    pub async fn fetch(
        &self,
        group: &RowGroupMetaData,
        wanted: &ProjectionMask,
    ) -> Result<Fetched, ParquetFileError> {
        let mut ranges = Vec::new();
        for (index, column) in group.columns().iter().enumerate() {
            if wanted.leaf_included(index) {
                let (start, length) = self.range(column)?;
                ranges.push((start, self.read(start, length).await?));
            }
        }
        Ok(Fetched { length: self.split.file_length, ranges })
    }
}

/// A file of which some ranges are known.
pub struct Fetched {
    length: u64,
    ranges: Vec<(u64, Bytes)>,
}

impl Fetched {
    fn at(&self, offset: u64) -> Result<Bytes, ParquetError> {
        let found = self.ranges.iter().find_map(|(start, bytes)| {
            let skipped = usize::try_from(offset.checked_sub(*start)?).ok()?;
            (skipped < bytes.len()).then(|| bytes.slice(skipped..))
        });
        found.ok_or_else(|| ParquetError::EOF(format!("byte {offset} is outside the columns that it names")))
    }
}

impl Length for Fetched {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Fetched {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Reader<Bytes>> {
        Ok(self.at(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = self.at(start)?;
        if length > bytes.len() {
            let problem = format!("{length} bytes at {start} go beyond the column's end");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem).into());
        }
        Ok(bytes.slice(..length))
    }
}
