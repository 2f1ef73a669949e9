//! The format of a job event file. A file belongs to one epoch (one leader) and is
//!
//! ```text
//! header:  magic "RVNTJEVT" | version u32
//! record:  length u32 | crc32 u32 | sequence u64 | epoch u64 | payload (length bytes, postcard)
//! ```
//!
//! with integers in little endian and the checksum over all of the record but itself. Sequences
//! rise by one from 0. Reading is total: it accepts the longest good prefix and says what follows
//! it. What a crash can leave (a record cut short, bytes of zero, rubbish at the end) is a torn
//! tail and ends the log; a bad record that has a good one behind it is damage.

use crate::ids::FencingToken;

use super::JobEvent;

pub const MAGIC: [u8; 8] = *b"RVNTJEVT";
pub const VERSION: u32 = 1;
/// Bytes of the file header.
pub const HEADER_LENGTH: usize = 12;
/// Bytes of a record without its payload.
pub const RECORD_OVERHEAD: usize = 24;
/// A longer payload cannot be a record.
pub const MAX_PAYLOAD: usize = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    pub epoch: FencingToken,
    pub event: JobEvent,
}

/// What follows the good prefix of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// What an interrupted write left, from this offset on.
    Torn { offset: u64 },
    /// Something that no interrupted write leaves, at this offset.
    Damaged { offset: u64, what: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContents {
    /// (offset of the record, the record), in order.
    pub records: Vec<(u64, Record)>,
    /// Length of the good prefix in bytes.
    pub end: u64,
    pub tail: Tail,
}

pub fn header() -> [u8; HEADER_LENGTH] {
    let mut header = [0; HEADER_LENGTH];
    header[..8].copy_from_slice(&MAGIC);
    header[8..].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// Appends a record to `buffer`.
pub fn write_record(buffer: &mut Vec<u8>, sequence: u64, epoch: FencingToken, event: &JobEvent) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 8]);
    buffer.extend_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&epoch.0.to_le_bytes());
    let mut out = postcard::to_extend(event, std::mem::take(buffer)).expect("events always encode");
    let length = (out.len() - start - RECORD_OVERHEAD) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let crc = checksum(&out[start..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    *buffer = out;
}

/// Reads a whole file of the given epoch.
pub fn read_file(bytes: &[u8], epoch: FencingToken) -> FileContents {
    let refuse = |tail| FileContents { records: Vec::new(), end: 0, tail };
    if bytes.len() < HEADER_LENGTH {
        let begun = header()[..bytes.len()] == *bytes || bytes.iter().all(|&byte| byte == 0);
        return refuse(match (bytes.is_empty(), begun) {
            (true, _) => Tail::Clean,
            (false, true) => Tail::Torn { offset: 0 },
            (false, false) => damaged(0, "this is not a job event file"),
        });
    }
    if bytes[..8] != MAGIC {
        let zeros = bytes.iter().all(|&byte| byte == 0);
        return refuse(if zeros {
            Tail::Torn { offset: 0 }
        } else {
            damaged(0, "this is not a job event file: its first bytes are not RVNTJEVT")
        });
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        return refuse(damaged(
            8,
            &format!("format version {version}, this program reads version {VERSION}"),
        ));
    }

    let mut records = Vec::new();
    let mut offset = HEADER_LENGTH;
    let tail = loop {
        if offset == bytes.len() {
            break Tail::Clean;
        }
        match record_at(bytes, offset) {
            Ok((record, next)) => {
                let expected = records.len() as u64;
                if record.epoch != epoch {
                    let what = format!("a record of epoch {} in the file of epoch {epoch}", record.epoch);
                    break damaged(offset, &what);
                }
                if record.sequence != expected {
                    let what = format!("record {} where {expected} is due", record.sequence);
                    break damaged(offset, &what);
                }
                records.push((offset as u64, record));
                offset = next;
            }
            Err(Flaw::Undecodable(what)) => break damaged(offset, &what),
            Err(Flaw::Unreadable) => {
                break match next_good_record(bytes, offset + 1, epoch) {
                    Some(next) => damaged(
                        offset,
                        &format!("an unreadable record, though the record at offset {next} is whole"),
                    ),
                    None => Tail::Torn { offset: offset as u64 },
                };
            }
        }
    };
    FileContents { records, end: offset as u64, tail }
}

enum Flaw {
    /// Cut short, or the checksum is wrong.
    Unreadable,
    /// The checksum is right but the payload is not an event.
    Undecodable(String),
}

fn record_at(bytes: &[u8], offset: usize) -> Result<(Record, usize), Flaw> {
    let whole = whole_record(bytes, offset).ok_or(Flaw::Unreadable)?;
    let event = postcard::from_bytes(&whole[RECORD_OVERHEAD..])
        .map_err(|error| Flaw::Undecodable(format!("not a job event: {error}")))?;
    let record = Record { sequence: u64_at(whole, 8), epoch: FencingToken(u64_at(whole, 16)), event };
    Ok((record, offset + whole.len()))
}

/// The bytes of a record whose length fits and whose checksum is right.
fn whole_record(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = &bytes[offset..];
    if rest.len() < RECORD_OVERHEAD {
        return None;
    }
    let length = u32_at(rest, 0) as usize;
    let whole = rest.get(..RECORD_OVERHEAD.checked_add(length).filter(|_| length <= MAX_PAYLOAD)?)?;
    (checksum(whole) == u32_at(whole, 4)).then_some(whole)
}

/// Looks for a whole record of the epoch behind a bad one. Only a damaged file pays for this.
fn next_good_record(bytes: &[u8], from: usize, epoch: FencingToken) -> Option<usize> {
    let last = bytes.len().checked_sub(RECORD_OVERHEAD)?;
    (from..=last)
        .find(|&offset| u64_at(bytes, offset + 16) == epoch.0 && whole_record(bytes, offset).is_some())
}

fn checksum(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&record[..4]);
    hasher.update(&record[8..]);
    hasher.finalize()
}

fn damaged(offset: usize, what: &str) -> Tail {
    Tail::Damaged { offset: offset as u64, what: what.to_owned() }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ExecutionVertexId, JobVertexId};

    const EPOCH: FencingToken = FencingToken(7);

    fn event(subtask: u32) -> JobEvent {
        JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(JobVertexId(1), subtask)] }
    }

    fn file(records: u64) -> Vec<u8> {
        let mut bytes = header().to_vec();
        for sequence in 0..records {
            write_record(&mut bytes, sequence, EPOCH, &event(sequence as u32));
        }
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let contents = read_file(&file(3), EPOCH);
        assert_eq!(contents.tail, Tail::Clean);
        assert_eq!(contents.end, file(3).len() as u64);
        let events: Vec<_> = contents.records.into_iter().map(|(_, record)| record.event).collect();
        assert_eq!(events, [event(0), event(1), event(2)]);
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_records_before_the_cut() {
        let bytes = file(3);
        let ends: Vec<usize> = (0..=3).map(|records| file(records).len()).collect();
        for cut in 0..bytes.len() {
            let contents = read_file(&bytes[..cut], EPOCH);
            let whole = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
            assert_eq!(contents.records.len(), whole, "cut at {cut}");
            let clean = cut == 0 || ends.contains(&cut);
            assert_eq!(matches!(contents.tail, Tail::Clean), clean, "cut at {cut}");
            assert!(!matches!(contents.tail, Tail::Damaged { .. }), "cut at {cut}");
        }
    }

    #[test]
    fn zeros_behind_the_last_record_are_a_torn_tail() {
        let mut bytes = file(2);
        let end = bytes.len() as u64;
        bytes.extend_from_slice(&[0; 100]);
        let contents = read_file(&bytes, EPOCH);
        assert_eq!((contents.records.len(), contents.end), (2, end));
        assert_eq!(contents.tail, Tail::Torn { offset: end });
    }

    #[test]
    fn a_flipped_bit_before_a_good_record_is_damage_with_its_offset() {
        let first = file(1).len();
        for byte in HEADER_LENGTH..first {
            let mut bytes = file(3);
            bytes[byte] ^= 0x10;
            let contents = read_file(&bytes, EPOCH);
            assert!(contents.records.is_empty());
            let Tail::Damaged { offset, .. } = contents.tail else {
                panic!("byte {byte}: {:?}", contents.tail)
            };
            assert_eq!(offset, HEADER_LENGTH as u64);
        }
    }

    #[test]
    fn a_flipped_bit_in_the_last_record_ends_the_log_before_it() {
        let mut bytes = file(2);
        *bytes.last_mut().unwrap() ^= 1;
        let contents = read_file(&bytes, EPOCH);
        assert_eq!(contents.records.len(), 1);
        assert_eq!(contents.tail, Tail::Torn { offset: file(1).len() as u64 });
    }

    #[test]
    fn a_foreign_file_is_refused_and_so_is_another_version() {
        let contents = read_file(b"PK\x03\x04 something else", EPOCH);
        assert!(matches!(contents.tail, Tail::Damaged { offset: 0, .. }));
        let mut bytes = file(1);
        bytes[8] = 9;
        let Tail::Damaged { offset: 8, what } = read_file(&bytes, EPOCH).tail else { panic!() };
        assert_eq!(what, "format version 9, this program reads version 1");
    }

    #[test]
    fn a_record_of_another_epoch_is_damage() {
        let mut bytes = file(1);
        write_record(&mut bytes, 1, FencingToken(8), &event(1));
        let contents = read_file(&bytes, EPOCH);
        assert_eq!(contents.records.len(), 1);
        assert!(matches!(contents.tail, Tail::Damaged { .. }));
    }
}
