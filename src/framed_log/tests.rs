//! Logs of numbers, whole and damaged. The two formats that are in use have tests of their own.

use super::*;

const FORMAT: Format =
    Format { magic: *b"TESTLOG\n", version: 3, file: "a log of numbers", payload: "a number" };
const EPOCH: u64 = 5;

fn file(records: u64) -> Vec<u8> {
    let mut bytes = FORMAT.header().to_vec();
    for sequence in 0..records {
        write_record(&mut bytes, sequence, EPOCH, &(sequence * 1000));
    }
    bytes
}

fn read(bytes: &[u8]) -> (Vec<u64>, Tail) {
    let contents = FORMAT.read::<u64>(bytes, EPOCH, Some(0));
    (contents.records.into_iter().map(|record| record.payload).collect(), contents.tail)
}

#[test]
fn what_is_written_is_read_with_its_place() {
    let contents = FORMAT.read::<u64>(&file(3), EPOCH, Some(0));
    let places: Vec<u64> = contents.records.iter().map(|record| record.offset).collect();
    assert_eq!(places, [0, 1, 2].map(|records| file(records).len() as u64));
    assert_eq!(read(&file(3)), (vec![0, 1000, 2000], Tail::Clean));
}

#[test]
fn a_whole_last_record_with_a_wrong_checksum_is_torn_and_is_damage_once_a_good_one_follows() {
    let offset = file(1).len();
    for byte in offset..file(2).len() {
        let mut bytes = file(2);
        bytes[byte] ^= 1;
        assert_eq!(read(&bytes), (vec![0], Tail::Torn { offset: offset as u64 }), "byte {byte}");
        write_record(&mut bytes, 2, EPOCH, &7_u64);
        let (records, tail) = read(&bytes);
        assert_eq!(records, [0]);
        assert!(matches!(tail, Tail::Damaged { offset: at, .. } if at == offset as u64), "{byte}: {tail:?}");
    }
}

#[test]
fn rubbish_behind_the_last_record_is_torn_also_if_it_is_a_record_of_another_epoch_behind_rubbish() {
    let mut bytes = file(1);
    let offset = bytes.len() as u64;
    bytes.extend_from_slice(&[0xff; 40]);
    write_record(&mut bytes, 1, EPOCH + 1, &7_u64);
    assert_eq!(read(&bytes), (vec![0], Tail::Torn { offset }));
}

#[test]
fn a_record_that_does_not_decode_is_damage_though_it_is_the_last() {
    let mut bytes = file(1);
    write_record(&mut bytes, 1, EPOCH, &());
    let (records, Tail::Damaged { what, .. }) = read(&bytes) else { panic!() };
    assert_eq!(records, [0]);
    assert!(what.starts_with("not a number: "), "{what}");
}

#[test]
fn a_gap_between_records_is_damage() {
    let mut bytes = file(1);
    write_record(&mut bytes, 2, EPOCH, &7_u64);
    let Tail::Damaged { what, .. } = read(&bytes).1 else { panic!() };
    assert_eq!(what, "record 2 where 1 is due");
}

#[test]
fn a_log_may_begin_with_any_sequence_if_none_is_expected_but_not_skip_one() {
    let mut bytes = FORMAT.header().to_vec();
    write_record(&mut bytes, 40, EPOCH, &1_u64);
    write_record(&mut bytes, 41, EPOCH, &2_u64);
    let contents = FORMAT.read::<u64>(&bytes, EPOCH, None);
    let read: Vec<(u64, u64)> =
        contents.records.iter().map(|record| (record.sequence, record.payload)).collect();
    assert_eq!((read, contents.tail), (vec![(40, 1), (41, 2)], Tail::Clean));
    write_record(&mut bytes, 43, EPOCH, &3_u64);
    let Tail::Damaged { what, .. } = FORMAT.read::<u64>(&bytes, EPOCH, None).tail else { panic!() };
    assert_eq!(what, "record 43 where 42 is due");
}

#[test]
fn a_foreign_beginning_is_named() {
    for bytes in [&b"PK\x03\x04"[..], b"PK\x03\x04 and twelve bytes or more"] {
        let Tail::Damaged { offset: 0, what } = read(bytes).1 else { panic!() };
        assert_eq!(what, "this is not a log of numbers: its first bytes are not TESTLOG\\n");
    }
    assert_eq!(read(&[]).1, Tail::Clean);
    assert_eq!(read(&FORMAT.header()[..7]).1, Tail::Torn { offset: 0 });
    assert_eq!(read(&[0; 50]).1, Tail::Torn { offset: 0 });
}

#[test]
fn a_header_that_ends_in_zeros_is_torn_and_one_with_something_behind_is_not() {
    for good in 0..=8 {
        for length in [good, HEADER_LENGTH, 50] {
            let mut bytes = FORMAT.header()[..good].to_vec();
            bytes.resize(length.max(good), 0);
            let torn = if bytes.is_empty() { Tail::Clean } else { Tail::Torn { offset: 0 } };
            assert_eq!(read(&bytes), (Vec::new(), torn), "{good} of {length} bytes");
        }
    }
    let mut bytes = FORMAT.header()[..8].to_vec();
    bytes.resize(50, 0);
    bytes.push(1);
    let Tail::Damaged { offset: 8, what } = read(&bytes).1 else { panic!() };
    assert_eq!(what, "format version 0, this program reads version 3");
    bytes[4..12].fill(0);
    assert!(matches!(read(&bytes).1, Tail::Damaged { offset: 0, .. }));
}
