//! The bytes of a journal file: a header, then records, each with its length, its sequence number
//! and a checksum over both and the payload. Reading trusts nothing: a tail that was torn by a
//! crash ends the file, damage before a record that is whole is an error with its offset.

use super::state::{HaRecord, HaState};

const MAGIC: &[u8; 6] = b"RVN-HA";
const VERSION: u16 = 1;
pub const HEADER_BYTES: usize = MAGIC.len() + 2;
/// Length (u32), sequence number (u64), checksum (u32), all little-endian.
const FRAME_BYTES: usize = 16;

/// What a journal file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Died while it was begun: it holds no whole record, and nothing was answered from it.
    Unborn,
    /// The state after its last whole record; a torn tail is cut off.
    State(HaState),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("is damaged at byte {offset}: {what}")]
    Damaged { offset: usize, what: String },
    #[error("is written in format version {0}; this program reads version {VERSION}")]
    Version(u16),
}

pub fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Appends a record in its frame.
pub fn encode(sequence: u64, record: &HaRecord, bytes: &mut Vec<u8>) {
    let payload = postcard::to_allocvec(record).expect("records are plain data");
    let length = u32::try_from(payload.len()).expect("a record is far below 4 GB").to_le_bytes();
    let sequence = sequence.to_le_bytes();
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&sequence);
    bytes.extend_from_slice(&checksum(&length, &sequence, &payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
}

/// Reads a whole file.
pub fn decode(bytes: &[u8]) -> Result<FileContent, FormatError> {
    let Some((head, _)) = bytes.split_at_checked(HEADER_BYTES) else { return Ok(FileContent::Unborn) };
    let (magic, version) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return end_or_damage(bytes, 0, "it does not begin as a journal").map(|()| FileContent::Unborn);
    }
    let version = u16::from_le_bytes([version[0], version[1]]);
    if version != VERSION {
        return Err(FormatError::Version(version));
    }
    let mut state = None;
    let mut offset = HEADER_BYTES;
    let mut expected = 1;
    while offset < bytes.len() {
        let Some((sequence, record, next)) = read(bytes, offset) else {
            end_or_damage(bytes, offset, "a record's checksum is wrong")?;
            break;
        };
        if sequence != expected {
            let what = format!("record {expected} is missing, {sequence} is there");
            return Err(FormatError::Damaged { offset, what });
        }
        match (&mut state, record) {
            (None, HaRecord::Snapshot(snapshot)) => state = Some(snapshot),
            (Some(state), record) => state.apply(&record),
            (None, _) => {
                let what = "the first record is no snapshot".to_owned();
                return Err(FormatError::Damaged { offset, what });
            }
        }
        expected += 1;
        offset = next;
    }
    Ok(state.map_or(FileContent::Unborn, FileContent::State))
}

/// What cannot be read at `offset` is a torn tail, unless a whole record lies behind it: the
/// journal syncs each record before it writes the next.
fn end_or_damage(bytes: &[u8], offset: usize, what: &str) -> Result<(), FormatError> {
    let whole_behind = (offset + 1..bytes.len()).any(|later| read(bytes, later).is_some());
    if whole_behind { Err(FormatError::Damaged { offset, what: what.to_owned() }) } else { Ok(()) }
}

/// The record at `offset` if it is whole: its sequence number, itself and where the next begins.
fn read(bytes: &[u8], offset: usize) -> Option<(u64, HaRecord, usize)> {
    let frame = bytes.get(offset..offset.checked_add(FRAME_BYTES)?)?;
    let (length, rest) = frame.split_first_chunk::<4>()?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let expected = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    let start = offset + FRAME_BYTES;
    let end = start.checked_add(u32::from_le_bytes(*length) as usize)?;
    let payload = bytes.get(start..end)?;
    if checksum(length, sequence, payload) != expected {
        return None;
    }
    let record = postcard::from_bytes(payload).ok()?;
    Some((u64::from_le_bytes(*sequence), record, end))
}

fn checksum(length: &[u8], sequence: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(sequence);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ProcessId, SessionId};

    fn file(records: usize) -> (Vec<u8>, HaState, Vec<usize>) {
        let mut bytes = header();
        let mut state = HaState::default();
        let mut ends = Vec::new();
        encode(1, &HaRecord::Snapshot(state.clone()), &mut bytes);
        ends.push(bytes.len());
        for n in 0..records as u64 {
            let record = state.granted(ProcessId::JobManager, SessionId(n));
            state.apply(&record);
            encode(n + 2, &record, &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, state, ends)
    }

    #[test]
    fn a_whole_file_gives_the_state_after_its_last_record() {
        let (bytes, state, _) = file(3);
        assert_eq!(decode(&bytes), Ok(FileContent::State(state)));
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_state_of_its_whole_records() {
        let (bytes, _, ends) = file(3);
        for length in 0..=bytes.len() {
            let whole = ends.iter().filter(|&&end| end <= length).count();
            let expected = match whole {
                0 => FileContent::Unborn,
                _ => FileContent::State(file(whole - 1).1),
            };
            assert_eq!(decode(&bytes[..length]), Ok(expected), "cut at {length}");
        }
    }

    #[test]
    fn a_tail_of_zeros_or_noise_is_cut_off() {
        let (bytes, state, _) = file(2);
        for byte in [0, 0xff, b'x'] {
            let mut torn = bytes.clone();
            torn.extend_from_slice(&[byte; 100]);
            assert_eq!(decode(&torn), Ok(FileContent::State(state.clone())));
        }
    }

    #[test]
    fn any_flipped_byte_before_the_last_record_is_an_error_with_its_offset() {
        let (bytes, _, ends) = file(3);
        let last = ends[ends.len() - 2];
        for position in 0..last {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x40;
            let error = decode(&damaged).expect_err("must be noticed");
            if let FormatError::Damaged { offset, .. } = error {
                assert!(offset <= position, "{offset} is behind {position}");
            }
        }
    }

    #[test]
    fn another_version_is_refused() {
        let (mut bytes, ..) = file(1);
        bytes[MAGIC.len()] = 9;
        assert_eq!(decode(&bytes), Err(FormatError::Version(9)));
    }
}
