//! The lines of a split: those that begin in its range of bytes, the last one read to its end wherever
//! that is. A split that does not begin at the start of its file looks for a line end from the byte
//! before its range, so that every line of a file is in exactly one of its splits.

use memchr::{memchr, memchr_iter};

use super::LINE_BYTES_MAX;
use super::file_bytes::{FileBytes, FileError, RangeReader};
use crate::connectors::files::FileSourceSplit;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A line without its end.
pub struct Line<'a> {
    /// Of its first byte, in the file or in what the file decompresses to.
    pub offset: u64,
    pub text: &'a [u8],
}

/// Reads the lines of a split.
pub struct Lines<'a, R> {
    reader: &'a R,
    split: &'a FileSourceSplit,
    bytes: FileBytes<'a, R>,
    /// What was read and not yet given out, from `next` on.
    buffer: Vec<u8>,
    next: usize,
    /// No line end is in so many bytes from `next` on.
    searched: usize,
    /// Of the byte at `next`.
    offset: u64,
    /// Lines that begin here or later are not of this split.
    end: u64,
    /// How many were given out.
    count: u64,
    /// Where the split's first line begins.
    first: u64,
    max: usize,
}

impl<'a, R: RangeReader> Lines<'a, R> {
    pub async fn open(reader: &'a R, split: &'a FileSourceSplit) -> Result<Self, FileError> {
        Self::with_max(reader, split, LINE_BYTES_MAX).await
    }

    pub(super) async fn with_max(
        reader: &'a R,
        split: &'a FileSourceSplit,
        max: usize,
    ) -> Result<Self, FileError> {
        let offset = split.start.saturating_sub(1);
        let bytes = FileBytes::new(reader, split, offset);
        let end = if bytes.is_compressed() { u64::MAX } else { split.end };
        let mut lines = Self {
            reader,
            split,
            bytes,
            buffer: Vec::new(),
            next: 0,
            searched: 0,
            offset,
            end,
            count: 0,
            first: 0,
            max,
        };
        if split.start > 0 {
            lines.skip_begun_line().await?;
        }
        lines.first = lines.offset;
        Ok(lines)
    }

    /// The first line of the file, if it has one.
    pub async fn first_of(reader: &'a R, split: &FileSourceSplit) -> Result<Option<Vec<u8>>, FileError> {
        let end = split.file_length.min(1 << 10);
        let split = FileSourceSplit { start: 0, end, ..split.clone() };
        let mut lines = Lines::open(reader, &split).await?;
        Ok(lines.next().await?.map(|line| line.text.to_vec()))
    }

    /// Goes behind the first line end; if there is none, to the end of the split.
    async fn skip_begun_line(&mut self) -> Result<(), FileError> {
        while self.offset < self.end {
            let Some(bytes) = self.bytes.next().await? else {
                self.offset = self.end;
                return Ok(());
            };
            if let Some(at) = memchr(b'\n', &bytes) {
                self.offset += at as u64 + 1;
                self.buffer.extend_from_slice(&bytes[at + 1..]);
                return Ok(());
            }
            self.offset += bytes.len() as u64;
        }
        Ok(())
    }

    /// The next line; `None` when there is no more in the split.
    pub async fn next(&mut self) -> Result<Option<Line<'_>>, FileError> {
        if self.offset >= self.end {
            return Ok(None);
        }
        let (length, whole) = loop {
            let rest = &self.buffer[self.next..];
            if let Some(at) = memchr(b'\n', &rest[self.searched..]) {
                break (self.searched + at, self.searched + at + 1);
            }
            self.searched = rest.len();
            self.check_length(rest.len())?;
            self.buffer.drain(..self.next);
            self.next = 0;
            match self.bytes.next().await? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.searched == 0 => return Ok(None),
                None => break (self.searched, self.searched),
            }
        };
        self.check_length(length)?;
        let (start, offset) = (self.next, self.offset);
        self.next += whole;
        self.offset += whole as u64;
        self.searched = 0;
        self.count += 1;
        let mut text = &self.buffer[start..start + length];
        if offset == 0 {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        Ok(Some(Line { offset, text: text.strip_suffix(b"\r").unwrap_or(text) }))
    }

    fn check_length(&self, length: usize) -> Result<(), FileError> {
        if length <= self.max {
            return Ok(());
        }
        Err(FileError::LongLine { path: self.split.path.clone(), offset: self.offset, max: self.max })
    }

    /// The number in its file, from 1, of the line that was given out last. A split in the middle of a
    /// file does not know how many lines are before it: they are read for this.
    pub async fn number_of_last(&self) -> Result<u64, FileError> {
        let before = FileSourceSplit { start: 0, end: self.first, ..self.split.clone() };
        let mut bytes = FileBytes::new(self.reader, &before, 0);
        let (mut lines, mut left) = (0, self.first);
        while left > 0 {
            let Some(bytes) = bytes.next().await? else { break };
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            lines += memchr_iter(b'\n', bytes).count() as u64;
            left -= bytes.len() as u64;
        }
        Ok(lines + self.count)
    }
}
