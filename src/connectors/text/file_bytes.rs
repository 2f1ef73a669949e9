//! The bytes of a file from some place on, piece by piece: as they are, or decompressed. Never more than
//! a piece is in memory.

use std::io::Write;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;

use crate::connectors::SourceReaderContext;
use crate::connectors::files::{FileSourceSplit, is_compressed};
use crate::disk::DiskError;

/// A file that cannot be read as it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(
        "{path} ends before byte {expected}, and had {length} bytes when the job began: it was changed while the \
         job ran, which changes the job's input"
    )]
    Shrunk { path: String, length: u64, expected: u64 },
    #[error(
        "{path}: the line that begins at byte {offset} has more than {max} bytes, which is the most that a line \
         may have: is this a text file with line ends?"
    )]
    LongLine { path: String, offset: u64, max: usize },
    #[error("{path} is not a whole gzip file, as its name says: {problem}")]
    Gzip { path: String, problem: String },
}

/// Whoever can read ranges of files.
pub trait RangeReader {
    async fn read_range(&self, path: &str, offset: u64, length: u64) -> Result<Bytes, DiskError>;
}

impl RangeReader for SourceReaderContext {
    async fn read_range(&self, path: &str, offset: u64, length: u64) -> Result<Bytes, DiskError> {
        self.read_file(path, offset, length).await
    }
}

/// What is read at once inside a split.
const CHUNK_BYTES: u64 = 256 << 10;
/// What is read at once behind a split's end, where little more than half a line is wanted.
const TAIL_BYTES: u64 = 8 << 10;
/// What is decompressed at once: a thousand times as much may come out of it.
const COMPRESSED_BYTES: u64 = 16 << 10;

/// Reads on from a place of a file.
pub struct FileBytes<'a, R> {
    reader: &'a R,
    split: &'a FileSourceSplit,
    /// Of the next byte in the file.
    position: u64,
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
}

impl<'a, R: RangeReader> FileBytes<'a, R> {
    /// A compressed file is only read from its start.
    pub fn new(reader: &'a R, split: &'a FileSourceSplit, position: u64) -> Self {
        let gzip = is_compressed(&split.path).then(|| MultiGzDecoder::new(Vec::new()));
        Self { reader, split, position, gzip }
    }

    pub fn is_compressed(&self) -> bool {
        self.gzip.is_some()
    }

    /// The next bytes, at least one; `None` at the end of the file.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FileError> {
        loop {
            let length = self.split.file_length;
            if self.position >= length {
                return self.finish();
            }
            let step = match self.split.end.saturating_sub(self.position) {
                _ if self.gzip.is_some() => COMPRESSED_BYTES,
                0 => TAIL_BYTES,
                left => left.min(CHUNK_BYTES),
            };
            let wanted = step.min(length - self.position);
            let bytes = self.reader.read_range(&self.split.path, self.position, wanted).await?;
            if bytes.len() as u64 != wanted {
                let (path, expected) = (self.split.path.clone(), self.position + wanted);
                return Err(FileError::Shrunk { path, length, expected });
            }
            self.position += wanted;
            let Some(gzip) = &mut self.gzip else { return Ok(Some(bytes)) };
            gzip.write_all(&bytes).map_err(|error| gzip_error(self.split, &error))?;
            let bytes = std::mem::take(gzip.get_mut());
            if !bytes.is_empty() {
                return Ok(Some(bytes.into()));
            }
        }
    }

    /// What comes out of the decompression when all has gone in.
    fn finish(&mut self) -> Result<Option<Bytes>, FileError> {
        let Some(gzip) = &mut self.gzip else { return Ok(None) };
        gzip.try_finish().map_err(|error| gzip_error(self.split, &error))?;
        let bytes = std::mem::take(gzip.get_mut());
        Ok((!bytes.is_empty()).then(|| bytes.into()))
    }
}

fn gzip_error(split: &FileSourceSplit, error: &std::io::Error) -> FileError {
    FileError::Gzip { path: split.path.clone(), problem: error.to_string() }
}
