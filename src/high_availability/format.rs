//! What a journal file says: a framed log (see its module for the bytes) of [`HaRecord`]s, of which
//! the first is a snapshot. Its epoch is the number of the file. A tail that was torn by a crash ends
//! the file, damage before a record that is whole is an error with its offset.

use crate::framed_log::{self, Format, Tail};

use super::state::{HaRecord, HaState};

const FORMAT: Format = Format {
    magic: *b"RVNTHAJL",
    version: 3,
    file: "a journal of the high-availability service",
    payload: "a record of the high-availability service",
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is damaged at byte {offset}: {what}")]
pub struct Damage {
    pub offset: u64,
    pub what: String,
}

/// The beginning of file `number`: its header and the snapshot.
pub fn begin(number: u64, state: &HaState) -> Vec<u8> {
    let mut bytes = FORMAT.header().to_vec();
    encode(number, 0, &HaRecord::Snapshot(state.clone()), &mut bytes);
    bytes
}

/// Appends the record with this sequence number in file `number`.
pub fn encode(number: u64, sequence: u64, record: &HaRecord, bytes: &mut Vec<u8>) {
    framed_log::write_record(bytes, sequence, number, record);
}

/// The state after the last whole record of file `number`; a torn tail is cut off. `None` if it died
/// while it was begun: it holds no whole record, and nothing was answered from it.
pub fn decode(number: u64, bytes: &[u8]) -> Result<Option<HaState>, Damage> {
    let contents = FORMAT.read::<HaRecord>(bytes, number, Some(0));
    if let Tail::Damaged { offset, what } = contents.tail {
        return Err(Damage { offset, what });
    }
    let mut state = None;
    for record in contents.records {
        match (&mut state, record.payload) {
            (None, HaRecord::Snapshot(snapshot)) => state = Some(snapshot),
            (Some(state), record) => state.apply(&record),
            (None, _) => {
                let what = "the first record is no snapshot".to_owned();
                return Err(Damage { offset: record.offset, what });
            }
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{FencingToken, ProcessId, SessionId};

    const NUMBER: u64 = 4;

    fn file(records: usize) -> (Vec<u8>, HaState, Vec<usize>) {
        let mut state = HaState::default();
        let mut bytes = begin(NUMBER, &state);
        let mut ends = vec![bytes.len()];
        for n in 0..records as u64 {
            let record = state.granted(ProcessId::JOB_MANAGER, SessionId(n));
            state.apply(&record);
            encode(NUMBER, n + 1, &record, &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, state, ends)
    }

    #[test]
    fn a_whole_file_gives_the_state_after_its_last_record() {
        let (bytes, state, _) = file(3);
        assert_eq!(decode(NUMBER, &bytes), Ok(Some(state)));
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_state_of_its_whole_records() {
        let (bytes, _, ends) = file(3);
        for length in 0..=bytes.len() {
            let whole = ends.iter().filter(|&&end| end <= length).count();
            let expected = match whole {
                0 => None,
                _ => Some(file(whole - 1).1),
            };
            assert_eq!(decode(NUMBER, &bytes[..length]), Ok(expected), "cut at {length}");
        }
    }

    #[test]
    fn a_tail_of_zeros_or_noise_is_cut_off() {
        let (bytes, state, _) = file(2);
        for byte in [0, 0xff, b'x'] {
            let mut torn = bytes.clone();
            torn.extend_from_slice(&[byte; 100]);
            assert_eq!(decode(NUMBER, &torn), Ok(Some(state.clone())));
        }
    }

    #[test]
    fn any_flipped_byte_before_the_last_record_is_an_error_with_its_offset() {
        let (bytes, _, ends) = file(3);
        let last = ends[ends.len() - 2];
        for position in 0..last {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x40;
            let error = decode(NUMBER, &damaged).expect_err("must be noticed");
            assert!(error.offset <= position as u64, "{} is behind {position}", error.offset);
        }
    }

    #[test]
    fn another_version_is_refused() {
        let (mut bytes, ..) = file(1);
        bytes[8] = 9;
        let what = "format version 9, this program reads version 3".to_owned();
        assert_eq!(decode(NUMBER, &bytes), Err(Damage { offset: 8, what }));
    }

    #[test]
    fn a_last_record_with_a_wrong_checksum_is_cut_off_unless_a_good_one_follows() {
        let (mut bytes, _, ends) = file(2);
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(decode(NUMBER, &bytes), Ok(Some(file(1).1)));
        encode(NUMBER, 3, &HaRecord::LeaseEnded { token: FencingToken(2) }, &mut bytes);
        assert_eq!(decode(NUMBER, &bytes).unwrap_err().offset, ends[1] as u64);
    }

    #[test]
    fn a_file_under_another_files_number_is_refused() {
        let (bytes, ..) = file(1);
        assert!(decode(NUMBER + 1, &bytes).is_err());
    }
}
