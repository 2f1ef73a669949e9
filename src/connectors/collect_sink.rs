//! A sink whose records the client reads after the job's end: each subtask's file becomes
//! `collect/<name>/part-<subtask>` (the subtask with five digits).
//!
//! A file is a sequence of frames: the length of what follows, four bytes with the lowest first, then
//! so many bytes. The first frame is the name of the records' type, each other one a record in
//! postcard's encoding. So a file can be counted by who does not know the type, and who asks for
//! another type is refused.

use std::any::type_name;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::api::Record;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::part_file::{PartFile, check_name};
use super::{Sink, SinkWriter};

/// Where collected records lie on the output volume.
pub const COLLECT_DIRECTORY: &str = "collect";

/// Keeps all records for the client (Flink's CollectSink).
///
/// What `DataStream::collect` writes to:
///
/// ```
/// # use revenant::connectors::CollectSink;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     env.from_collection("numbers", [1, 2]).sink_to(CollectSink::new("numbers"));
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("numbers")?, [1, 2]);
/// let error = result.collected::<u8>("numbers").unwrap_err().to_string();
/// assert!(error.contains("records of type i32, not u8"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CollectSink<T> {
    name: String,
    record: PhantomData<fn(T)>,
}

impl<T> CollectSink<T> {
    /// `name` is what the client asks for: letters, digits, `-` and `_`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), record: PhantomData }
    }

    fn directory(&self) -> String {
        format!("{COLLECT_DIRECTORY}/{}", self.name)
    }
}

impl<T: Record> Sink<T> for CollectSink<T> {
    type Writer = CollectWriter<T>;

    fn name(&self) -> String {
        format!("collect {}", self.name)
    }

    fn target(&self) -> Result<String, String> {
        check_name(&self.name, "collected records").map(|()| self.directory())
    }

    fn writer(&self, context: &OperatorContext) -> CollectWriter<T> {
        CollectWriter {
            file: PartFile::new(context, &self.directory(), ""),
            begun: false,
            record: PhantomData,
        }
    }
}

/// Writes the frames of one subtask.
pub struct CollectWriter<T> {
    file: PartFile,
    /// Whether the type's name was written.
    begun: bool,
    record: PhantomData<fn(T)>,
}

impl<T> CollectWriter<T> {
    fn begin(&mut self) -> Result<(), BodyError> {
        if !self.begun {
            self.frame(|bytes| {
                bytes.extend_from_slice(type_name::<T>().as_bytes());
                Ok(())
            })?;
            self.begun = true;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        content: impl FnOnce(&mut Vec<u8>) -> Result<(), postcard::Error>,
    ) -> Result<usize, BodyError> {
        let context = self.file.context().clone();
        self.file.add(|bytes| {
            let start = bytes.len() + LENGTH_BYTES;
            bytes.extend_from_slice(&[0; LENGTH_BYTES]);
            content(bytes)
                .map_err(|error| context.error(format_args!("a record cannot be encoded: {error}")))?;
            let length = u32::try_from(bytes.len() - start)
                .map_err(|_| context.error("a record of 4 GiB or more cannot be collected"))?;
            bytes[start - LENGTH_BYTES..start].copy_from_slice(&length.to_le_bytes());
            Ok(())
        })
    }
}

impl<T: Record> SinkWriter<T> for CollectWriter<T> {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        self.begin()?;
        self.frame(|bytes| postcard::to_io(&record, bytes).map(drop))
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        self.file.flush().await
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.begin()?;
        self.file.finish().await
    }
}

const LENGTH_BYTES: usize = 4;

/// What is wrong with a file of collected records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectedError {
    #[error("it ends in the middle of a frame, at byte {offset}")]
    Torn { offset: usize },
    #[error("it does not begin with the name of a type")]
    NoType,
    #[error("these are records of type {collected}, not {asked}: ask for the type that was collected")]
    OtherType { collected: String, asked: String },
    #[error("record {index} cannot be decoded as {asked}: {reason}")]
    Undecodable { index: usize, asked: String, reason: String },
}

/// A subtask's file of collected records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedPart<'a> {
    /// The name of the records' type.
    pub record_type: &'a str,
    /// Each record's encoding.
    pub records: Vec<&'a [u8]>,
}

impl<'a> CollectedPart<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CollectedError> {
        let (mut rest, mut frames) = (bytes, Vec::new());
        while !rest.is_empty() {
            let torn = CollectedError::Torn { offset: bytes.len() - rest.len() };
            let Some((length, behind)) = rest.split_first_chunk::<LENGTH_BYTES>() else { return Err(torn) };
            let length = u32::from_le_bytes(*length) as usize;
            let Some((frame, behind)) = behind.split_at_checked(length) else { return Err(torn) };
            frames.push(frame);
            rest = behind;
        }
        let name = frames.first().and_then(|name| std::str::from_utf8(name).ok());
        let record_type = name.ok_or(CollectedError::NoType)?;
        frames.remove(0);
        Ok(Self { record_type, records: frames })
    }

    /// The records, if they are of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<Vec<T>, CollectedError> {
        let asked = || type_name::<T>().to_owned();
        if self.record_type != type_name::<T>() {
            let collected = self.record_type.to_owned();
            return Err(CollectedError::OtherType { collected, asked: asked() });
        }
        let decode = |(index, bytes): (usize, &&[u8])| {
            let reason = match postcard::take_from_bytes(bytes) {
                Ok((record, [])) => return Ok(record),
                Ok((_, behind)) => format!("{} bytes are left over", behind.len()),
                Err(error) => error.to_string(),
            };
            Err(CollectedError::Undecodable { index, asked: asked(), reason })
        };
        self.records.iter().enumerate().map(decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(frames: &[&[u8]]) -> Vec<u8> {
        let frame = |frame: &&[u8]| [&(frame.len() as u32).to_le_bytes()[..], frame].concat();
        frames.iter().flat_map(frame).collect()
    }

    #[test]
    fn records_come_back_as_the_type_that_was_collected_and_as_no_other() {
        let bytes = file(&[b"(u8, alloc::string::String)", &[7, 1, b'x'], &[0, 0]]);
        let part = CollectedPart::parse(&bytes).unwrap();
        assert_eq!(part.records.len(), 2);
        assert_eq!(part.decode::<(u8, String)>().unwrap(), [(7, "x".to_owned()), (0, String::new())]);
        let error = part.decode::<u64>().unwrap_err().to_string();
        assert!(error.contains("of type (u8, alloc::string::String), not u64"), "{error}");
    }

    #[test]
    fn records_without_content_are_records() {
        let bytes = file(&[b"()", b"", b""]);
        assert_eq!(CollectedPart::parse(&bytes).unwrap().decode::<()>().unwrap(), [(), ()]);
    }

    #[test]
    fn a_file_that_is_torn_at_any_byte_or_says_no_type_is_refused() {
        let bytes = file(&[b"u8", &[7], &[8]]);
        for end in 1..bytes.len() {
            let whole_frames = [6, 11].contains(&end);
            assert_eq!(CollectedPart::parse(&bytes[..end]).is_ok(), whole_frames, "{end}");
        }
        assert_eq!(CollectedPart::parse(&bytes[..13]), Err(CollectedError::Torn { offset: 11 }));
        assert_eq!(CollectedPart::parse(&[]), Err(CollectedError::NoType));
        assert_eq!(CollectedPart::parse(&file(&[&[0xff]])), Err(CollectedError::NoType));
    }

    #[test]
    fn a_record_that_is_not_all_of_its_frame_or_more_is_refused_with_its_position() {
        for (frame, reason) in [(&[7, 8][..], "1 bytes are left over"), (&[], "end of buffer")] {
            let bytes = file(&[b"u8", &[1], frame]);
            let error = CollectedPart::parse(&bytes).unwrap().decode::<u8>().unwrap_err();
            let CollectedError::Undecodable { index: 1, reason: why, .. } = &error else {
                panic!("{error}");
            };
            assert!(why.to_lowercase().contains(reason), "{error}");
        }
    }
}
