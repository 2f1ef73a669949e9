//! Rows that are written and read back, in many row groups and splits, and files that are none.

use serde::{Deserialize, Serialize};

use super::*;
use crate::api::StreamExecutionEnvironment;
use crate::connectors::{CollectionSource, Date, JsonLinesSink, Sink};
use crate::operators::tests::{Cluster, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Small,
    Large,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    x: f64,
    y: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stone {
    id: i64,
    name: String,
    weight: Option<u32>,
    tags: Vec<String>,
    place: Place,
    kind: Kind,
    found: bool,
}

fn stones(count: i64) -> Vec<Stone> {
    let stone = |id: i64| Stone {
        id,
        name: format!("stone {}", id % 7),
        weight: u32::try_from(id).ok().filter(|id| id % 3 > 0),
        tags: (0..id % 4).map(|n| n.to_string()).collect(),
        place: Place { x: f64::from(i32::try_from(id).unwrap()) / 2.0, y: -1.0 },
        kind: if id % 2 == 0 { Kind::Small } else { Kind::Large },
        found: id % 5 == 0,
    };
    (0..count).map(stone).collect()
}

fn written(count: i64) -> Outcome {
    Cluster::run(|env| {
        let source = CollectionSource::new(stones(count)).with_splits(2);
        env.from_source("stones", source)
            .set_parallelism(2)
            .sink_to(ParquetSink::new("out").row_group_bytes(10_000));
    })
}

fn file(count: i64) -> Vec<u8> {
    let outcome = Cluster::run(|env| {
        env.from_collection("stones", stones(count)).sink_to(ParquetSink::new("out").row_group_bytes(10_000));
    });
    outcome.bytes["out/part-00000.parquet"].clone()
}

/// The rows of the file as one subtask reads them.
fn read<T: crate::api::Record>(bytes: &[u8], split_bytes: u64) -> Result<Vec<T>, String> {
    let job = |env: &mut StreamExecutionEnvironment| {
        let rows = env.from_source("rows", ParquetSource::<T>::new(["f"]).split_bytes(split_bytes));
        rows.set_parallelism(1).sink_to(JsonLinesSink::new("out"));
    };
    let outcome = Cluster::new(job).with_input("f", bytes).finish().map_err(|failure| failure.message)?;
    let lines = outcome.files["out/part-00000.jsonl"].lines();
    Ok(lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn rows_are_read_back_as_they_were_written_wherever_the_file_is_cut() {
    let bytes = file(5000);
    assert!(bytes.len() > 20_000, "{}", bytes.len());
    for split_bytes in [1000, 30_000, 1 << 30] {
        assert_eq!(read::<Stone>(&bytes, split_bytes).unwrap(), stones(5000), "{split_bytes}");
    }
}

#[test]
fn each_subtask_writes_a_file_and_one_without_rows_the_schema() {
    let outcome = written(1);
    let [first, second] = [0, 1].map(|subtask| &outcome.bytes[&format!("out/part-{subtask:05}.parquet")]);
    assert_eq!(read::<Stone>(first, 1 << 30).unwrap(), stones(1));
    assert_eq!(read::<Stone>(second, 1 << 30).unwrap(), []);
    assert_eq!(written(1).bytes, outcome.bytes);
}

#[test]
fn columns_are_found_by_name_and_those_without_a_field_are_not_read() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Part {
        kind: String,
        id: i64,
    }
    let mut bytes = file(100);
    let expected: Vec<Part> =
        stones(100).iter().map(|stone| Part { kind: format!("{:?}", stone.kind), id: stone.id }).collect();
    assert_eq!(read::<Part>(&bytes, 1 << 30).unwrap(), expected);
    // Were the column read, this would be noticed.
    let name = b"stone 0";
    let at = bytes.windows(name.len()).position(|window| window == name).expect("it is in the dictionary");
    bytes[at..at + name.len()].fill(0xff);
    assert_eq!(read::<Part>(&bytes, 1 << 30).unwrap(), expected);
    read::<Stone>(&bytes, 1 << 30).unwrap_err();
}

#[test]
fn rows_that_do_not_fit_say_file_row_group_and_type() {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Wrong {
        id: i64,
        name: i64,
    }
    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct More {
        id: i64,
        colour: String,
    }
    let bytes = file(10);
    let message = read::<Wrong>(&bytes, 1 << 30).unwrap_err();
    assert!(message.contains("f: the rows of row group 0") && message.contains("Wrong:"), "{message}");
    let message = read::<More>(&bytes, 1 << 30).unwrap_err();
    assert!(message.contains("More: ") && message.contains("colour"), "{message}");
}

#[test]
fn a_file_that_is_cut_or_damaged_or_none_is_an_error() {
    let bytes = file(10);
    for length in [1, 8, 11, bytes.len() / 2, bytes.len() - 1] {
        let message = read::<Stone>(&bytes[..length], 1 << 30).unwrap_err();
        assert!(message.contains("f is not a Parquet file that can be read"), "{length}: {message}");
    }
    let message = read::<Stone>(&bytes[bytes.len() - 8..], 1 << 30).unwrap_err();
    assert!(message.contains("is longer than the file"), "{message}");
    // Without its first columns, every place in the file is wrong.
    let message = read::<Stone>(&bytes[300..], 1 << 30).unwrap_err();
    assert!(message.contains("operator 'Source: rows'"), "{message}");
}

#[test]
fn rows_without_columns_or_with_types_that_read_only_some_texts_are_refused() {
    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Dated {
        day: Date,
    }
    let sink = ParquetSink::new("out");
    assert_eq!(Sink::<Stone>::target(&sink), Ok("out".to_owned()));
    let message = Sink::<Dated>::target(&sink).unwrap_err();
    assert!(
        message.contains("Dated cannot be rows of Parquet") && message.contains("right are"),
        "{message}"
    );
    let message = Sink::<i64>::target(&sink).unwrap_err();
    assert!(message.contains("i64 cannot be rows of Parquet"), "{message}");
    assert!(Sink::<Stone>::target(&ParquetSink::new("/a")).unwrap_err().contains("is not a directory"));
}
