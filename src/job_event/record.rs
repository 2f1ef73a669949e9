//! The format of a job event file: the framed log (see its module for the layout and for what a
//! crash may leave) with [`JobEvent`]s as records. A file belongs to one epoch, that of one leader,
//! and sequences go on from one file of an epoch to the next, from 0.

use crate::framed_log::{self, Format};
use crate::ids::FencingToken;

use super::JobEvent;

pub use crate::framed_log::{HEADER_LENGTH, MAX_PAYLOAD, RECORD_OVERHEAD, Tail};

pub const MAGIC: [u8; 8] = *b"RVNTJEVT";
pub const VERSION: u32 = 2;

const FORMAT: Format =
    Format { magic: MAGIC, version: VERSION, file: "a job event file", payload: "a job event" };

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    pub epoch: FencingToken,
    pub event: JobEvent,
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
    FORMAT.header()
}

/// Appends a record to `buffer`.
pub fn write_record(buffer: &mut Vec<u8>, sequence: u64, epoch: FencingToken, event: &JobEvent) {
    framed_log::write_record(buffer, sequence, epoch.0, event);
}

/// Reads a whole file of the given epoch.
pub fn read_file(bytes: &[u8], epoch: FencingToken) -> FileContents {
    let contents = FORMAT.read(bytes, epoch.0, None);
    let record = |record: framed_log::Record<JobEvent>| {
        (record.offset, Record { sequence: record.sequence, epoch, event: record.payload })
    };
    FileContents {
        records: contents.records.into_iter().map(record).collect(),
        end: contents.end,
        tail: contents.tail,
    }
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
        assert_eq!(what, "format version 9, this program reads version 2");
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
