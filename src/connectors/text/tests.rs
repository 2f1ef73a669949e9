//! Text files cut anywhere, with every kind of line that is none, read by hand.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::io::Write;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::*;
use crate::connectors::Date;
use crate::disk::{DirectoryEntry, DiskError};
use crate::operators::tests::Cluster;

/// Files in memory, which are read at once, with the number of bytes that were asked for.
#[derive(Default)]
struct Memory {
    files: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    fn with(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { files: [(path.to_owned(), content.into())].into() }
    }
}

impl RangeReader for Memory {
    async fn read_range(&self, path: &str, offset: u64, length: u64) -> Result<Bytes, DiskError> {
        let file = &self.files[path];
        let end = file.len().min(usize::try_from(offset + length).unwrap());
        Ok(Bytes::copy_from_slice(&file[end.min(offset as usize)..end]))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing is waited for"),
    }
}

/// The records of each split, and how many lines were left out.
type Found<T> = (Vec<Vec<T>>, u64);

fn read<F: LineFormat>(
    source: &LineSource<F>,
    path: &str,
    content: &[u8],
) -> Result<Found<F::Record>, String> {
    let memory = Memory::with(path, content);
    let entry = DirectoryEntry { path: path.to_owned(), length: content.len() as u64 };
    let (mut all, mut bad) = (Vec::new(), 0);
    for split in source.splits_of(&[entry]) {
        let mut records = Vec::new();
        let done = now(source.read_lines(&memory, &split, async |record| records.push(record)));
        bad += done.map_err(|error| error.to_string())?;
        all.push(records);
    }
    Ok((all, bad))
}

fn records<F: LineFormat>(source: &LineSource<F>, path: &str, content: &[u8]) -> Vec<F::Record> {
    read(source, path, content).unwrap_or_else(|error| panic!("{error}")).0.concat()
}

fn failure<F: LineFormat<Record: Debug>>(source: &LineSource<F>, path: &str, content: &[u8]) -> String {
    read(source, path, content).expect_err("a line is bad")
}

fn text(split_bytes: u64) -> TextLineSource {
    TextLineSource::new(["f"]).split_bytes(split_bytes)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sale {
    item: String,
    pieces: u32,
    price: f64,
    day: Date,
    gift: bool,
}

fn sale(item: &str, pieces: u32) -> Sale {
    Sale { item: item.to_owned(), pieces, price: 2.5, day: "1996-03-13".parse().unwrap(), gift: true }
}

#[test]
fn every_line_is_read_once_and_in_order_wherever_a_file_is_cut() {
    for content in [
        "",
        "a",
        "a\n",
        "\n",
        "\n\n",
        "ab\ncd\n",
        "ab\ncd",
        "ab\r\ncd\r\n\r\nef",
        "\nabc\n\n\ndefgh\ni\n",
        "é\nüü\n",
    ] {
        let expected: Vec<String> = content.lines().map(ToOwned::to_owned).collect();
        for split_bytes in 1..=content.len() as u64 + 1 {
            let found = records(&text(split_bytes), "f", content.as_bytes());
            assert_eq!(found, expected, "{content:?} in splits of {split_bytes}");
        }
    }
}

#[test]
fn a_split_has_the_lines_that_begin_in_it() {
    let (splits, _) = read(&text(4), "f", b"ab\ncdefgh\nij\nk").unwrap();
    //                                      0123 4567 89ab cd
    assert_eq!(splits, [vec!["ab", "cdefgh"], vec![], vec!["ij"], vec!["k"]]);
}

#[test]
fn long_lines_reach_over_many_splits_and_pieces() {
    let long = "x".repeat(1 << 20);
    let content = format!("a\n{long}\nb\n{long}\nc");
    for split_bytes in [1 << 10, 300_000, 1 << 20, 1 << 30] {
        let found = records(&text(split_bytes), "f", content.as_bytes());
        assert_eq!(found, ["a", &long, "b", &long, "c"], "{split_bytes}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    for split_bytes in [1, 2, 3, 4, 100] {
        assert_eq!(records(&text(split_bytes), "f", b"\xef\xbb\xbfab\ncd\n"), ["ab", "cd"]);
    }
    let rows: Vec<Pair> = records(&CsvSource::new(["f"]), "f", b"\xef\xbb\xbfa,b\n1,2\n");
    assert_eq!(rows, [Pair { a: 1, b: 2 }]);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    a: i64,
    b: i64,
}

#[test]
fn a_line_that_is_too_long_is_an_error_with_its_place_and_never_kept_in_memory() {
    let memory = Memory::with("f", "ab\ncdefg\n");
    let split = FileSourceSplit { path: "f".to_owned(), start: 0, end: 9, file_length: 9 };
    for (max, lines) in [(5, 2), (4, 1), (1, 0)] {
        let mut reader = now(Lines::with_max(&memory, &split, max)).unwrap();
        for _ in 0..lines {
            assert!(now(reader.next()).unwrap().is_some());
        }
        match now(reader.next()) {
            Ok(None) => assert_eq!(max, 5),
            Ok(Some(_)) => panic!("longer than {max}"),
            Err(error) => {
                let offset = if max == 4 { 3 } else { 0 };
                let expected = format!("begins at byte {offset} has more than {max} bytes");
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
    }
    let endless = vec![b'x'; LINE_BYTES_MAX + (1 << 20)];
    assert!(failure(&text(u64::MAX), "f", &endless).contains("is this a text file"));
}

#[test]
fn a_gzip_file_is_read_whole_whatever_the_length_of_splits() {
    let lines: Vec<String> = (0..40_000).map(|n| format!("line {n}")).collect();
    let content = lines.join("\n");
    let compressed = gzip(content.as_bytes());
    assert_eq!(records(&text(100), "f.gz", &compressed), lines);
    // As `cat a.gz b.gz` makes it.
    let two = [gzip(b"a\nb"), gzip(b"c\nd\n")].concat();
    assert_eq!(records(&text(100), "f.gz", &two), ["a", "bc", "d"]);
    assert_eq!(records(&text(100), "f.gz", &gzip(b"")), [""; 0]);
}

#[test]
fn a_gzip_file_that_is_cut_or_damaged_or_none_is_an_error_and_never_a_shorter_input() {
    let compressed = gzip("some text\n".repeat(1000).as_bytes());
    for length in [1, 5, 20, compressed.len() - 9, compressed.len() - 4, compressed.len() - 1] {
        let message = failure(&text(100), "f.gz", &compressed[..length]);
        assert!(message.contains("f.gz is not a whole gzip file"), "{length}: {message}");
    }
    let mut damaged = compressed.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    assert!(failure(&text(100), "f.gz", &damaged).contains("not a whole gzip file"));
    assert!(failure(&text(100), "f.gz", b"plain text\n").contains("not a whole gzip file"));
}

#[test]
fn a_file_that_shrank_while_the_job_ran_is_an_error() {
    let memory = Memory::with("f", "ab\ncd\n");
    let split = FileSourceSplit { path: "f".to_owned(), start: 0, end: 9, file_length: 9 };
    let done = now(text(100).read_lines(&memory, &split, async |_| ()));
    assert!(done.unwrap_err().to_string().contains("was changed while the job ran"));
}

#[test]
fn what_was_added_to_a_file_after_the_job_began_is_not_read() {
    let memory = Memory::with("f", "ab\ncd\nef\n");
    let split = FileSourceSplit { path: "f".to_owned(), start: 0, end: 6, file_length: 6 };
    let mut lines = Vec::new();
    now(text(100).read_lines(&memory, &split, async |line| lines.push(line))).unwrap();
    assert_eq!(lines, ["ab", "cd"]);
}

const SALES: &str = "item,pieces,price,day,gift\n\
                     nuts,1,2.5,1996-03-13,true\r\n\
                     \"nuts, big\",2,2.5,1996-03-13,true\n\
                     \n\
                     \"\"\"bolts\"\"\",3,2.5,1996-03-13,true\n";

#[test]
fn csv_rows_are_read_by_the_names_of_their_columns_in_every_split() {
    let expected = [sale("nuts", 1), sale("nuts, big", 2), sale("\"bolts\"", 3)];
    for split_bytes in [1, 7, 30, 60, 1000] {
        let source = CsvSource::<Sale>::new(["f"]).split_bytes(split_bytes);
        assert_eq!(records(&source, "f", SALES.as_bytes()), expected, "{split_bytes}");
    }
    let reordered = "gift;more;pieces;price;day;item\ntrue;?;1;2.5;1996-03-13;nuts\n";
    let source = CsvSource::<Sale>::new(["f"]).delimiter(b';').split_bytes(40);
    assert_eq!(records(&source, "f", reordered.as_bytes()), [sale("nuts", 1)]);
}

#[test]
fn csv_rows_without_a_header_are_read_in_the_order_of_the_fields() {
    let source = CsvSource::<Pair>::new(["f"]).without_header().split_bytes(2);
    assert_eq!(records(&source, "f", b"1,2\n3,4"), [Pair { a: 1, b: 2 }, Pair { a: 3, b: 4 }]);
    let source = CsvSource::<(i64, String)>::new(["f"]).without_header();
    assert_eq!(records(&source, "f", b"1,x\n"), [(1, "x".to_owned())]);
    assert!(failure(&CsvSource::<Pair>::new(["f"]).without_header(), "f", b"1,2,3\n").contains("3 fields"));
}

#[test]
fn a_row_that_is_wrong_is_told_with_file_line_column_and_what_was_expected() {
    let row = |bad: &str| format!("{SALES}{bad}\nnuts,1,2.5,1996-03-13,true\n");
    for (bad, expected) in [
        ("nuts,x,2.5,1996-03-13,true", "column 2 ('pieces'): 'x' is not a whole number"),
        ("nuts,-1,2.5,1996-03-13,true", "column 2 ('pieces'): '-1' is not a whole number"),
        ("nuts,1,much,1996-03-13,true", "column 3 ('price'): 'much' is not a number"),
        ("nuts,1,2.5,1996-13-13,true", "column 4 ('day'): '1996-13-13' is no date"),
        ("nuts,1,2.5,1996-03-13,yes", "column 5 ('gift'): 'yes' is not 'true' or 'false'"),
        ("nuts,1,2.5,1996-03-13", "the line has 4 fields, and the header has 5"),
        ("nuts,1,2.5,1996-03-13,true,", "the line has 6 fields, and the header has 5"),
        ("\"nuts", "a quote is opened and not closed before the end of the line"),
    ] {
        for split_bytes in [10, 90, 1000] {
            let source = CsvSource::<Sale>::new(["f"]).split_bytes(split_bytes);
            let message = failure(&source, "f", row(bad).as_bytes());
            let place = format!("f:6 (at byte {}): ", SALES.len());
            assert!(message.starts_with(&place) && message.contains(expected), "{split_bytes}: {message}");
        }
    }
    let mut bytes = row("nu?ts,1,2.5,1996-03-13,true").into_bytes();
    let at = bytes.iter().position(|&byte| byte == b'?').unwrap();
    bytes[at] = 0xff;
    assert!(failure(&CsvSource::<Sale>::new(["f"]), "f", &bytes).contains("f:6 (at byte"));
}

#[test]
fn a_header_that_lacks_a_column_or_is_no_row_is_told() {
    let message = failure(&CsvSource::<Pair>::new(["f"]), "f", b"a,c\n1,2\n");
    assert!(message.contains("f:2") && message.contains("missing field `b`"), "{message}");
    let message = failure(&CsvSource::<Pair>::new(["f"]), "f", b"a,\"b\n1,2\n");
    assert!(message.contains("f:1: the header line: a quote is opened"), "{message}");
}

#[test]
fn a_row_over_two_lines_is_an_error_and_never_two_rows() {
    let content = b"item,pieces\n\"one\ntwo\",2\n";
    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Item {
        item: String,
        pieces: i64,
    }
    for split_bytes in [5, 1000] {
        let message = failure(&CsvSource::<Item>::new(["f"]).split_bytes(split_bytes), "f", content);
        assert!(message.contains("f:2") && message.contains("line breaks"), "{message}");
        let lenient = CsvSource::<Item>::new(["f"]).split_bytes(split_bytes);
        let (rows, bad) = read(&lenient.bad_lines(BadLines::SkipAndCount), "f", content).unwrap();
        assert_eq!((rows.concat().len(), bad), (0, 2));
    }
}

#[test]
fn json_lines_are_read_and_lines_of_blanks_are_none() {
    let content = "{\"a\":1,\"b\":2}\r\n  \n{\"b\":4,\"a\":3,\"c\":[1,{}]}";
    for split_bytes in [1, 9, 1000] {
        let source = JsonLinesSource::<Pair>::new(["f"]).split_bytes(split_bytes);
        assert_eq!(records(&source, "f", content.as_bytes()), [Pair { a: 1, b: 2 }, Pair { a: 3, b: 4 }]);
    }
}

#[test]
fn a_json_line_that_is_wrong_is_told_with_file_line_column_and_what_was_expected() {
    for (bad, expected) in [
        ("{\"a\":1,\"b\":\"x\"}", "column 14: invalid type: string \"x\", expected i64"),
        ("{\"a\":1}", "column 7: missing field `b`"),
        ("{\"a\":1,\"b\":", "column 11: EOF while parsing"),
        ("[1]", "column"),
    ] {
        for split_bytes in [3, 1000] {
            let source = JsonLinesSource::<Pair>::new(["f"]).split_bytes(split_bytes);
            let content = format!("{{\"a\":1,\"b\":2}}\n\n{bad}\n");
            let message = failure(&source, "f", content.as_bytes());
            assert!(message.starts_with("f:3 (at byte 15): "), "{message}");
            assert!(message.contains(expected), "{message}");
            assert!(!message.contains("line 1"), "{message}");
        }
    }
}

#[test]
fn bad_lines_are_left_out_and_counted_where_that_is_wanted() {
    let content = "{\"a\":1,\"b\":2}\n?\n\n{\"a\":3,\"b\":4}\n{\n";
    for split_bytes in [1, 6, 1000] {
        let source =
            JsonLinesSource::<Pair>::new(["f"]).split_bytes(split_bytes).bad_lines(BadLines::SkipAndCount);
        let (rows, bad) = read(&source, "f", content.as_bytes()).unwrap();
        assert_eq!((rows.concat().len(), bad), (2, 2), "{split_bytes}");
    }
    assert!(failure(&text(100), "f", b"ab\n\xff\n").contains("f:2 (at byte 3): the line is not UTF-8"));
}

#[test]
fn a_job_reads_files_and_counts_bad_lines_under_the_name_of_its_source() {
    let job = |env: &mut crate::api::StreamExecutionEnvironment| {
        let source = CsvSource::<Pair>::new(["a.csv", "b.csv.gz"]).split_bytes(5);
        let rows = env.from_source("pairs", source.bad_lines(BadLines::SkipAndCount));
        rows.sink_to(crate::connectors::CsvSink::new("out"));
    };
    let b = gzip(b"b,a\n5,6\n");
    let cluster = Cluster::new(job).with_input("a.csv", "a,b\n1,2\nx,y\n3,4\n").with_input("b.csv.gz", b);
    let outcome = cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message));
    let mut rows = [outcome.rows("out", 0), outcome.rows("out", 1)].concat();
    rows.sort();
    assert_eq!(rows, ["1,2", "3,4", "6,5"]);
    let bad = outcome.results.values().filter_map(|result| result.accumulators.get("pairs.bad-lines"));
    assert_eq!(bad.sum::<i64>(), 1);
}

#[test]
fn a_job_with_a_bad_line_fails_with_its_place() {
    let job = |env: &mut crate::api::StreamExecutionEnvironment| {
        let rows = env.from_source("pairs", CsvSource::<Pair>::new(["a.csv"]).split_bytes(3));
        rows.sink_to(crate::connectors::CsvSink::new("out"));
    };
    let failure = Cluster::new(job).with_input("a.csv", "a,b\n1,2\nx,y\n").finish().err().expect("it fails");
    assert!(failure.message.contains("operator 'Source: pairs'"), "{}", failure.message);
    assert!(failure.message.contains("a.csv:3 (at byte 8): column 1 ('a'): 'x'"), "{}", failure.message);
}
