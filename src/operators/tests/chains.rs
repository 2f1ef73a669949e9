//! Push operators within one task, and the CSV files at their end.

use super::{Cluster, row};
use crate::api::{FunctionError, Out, SourceFunction};
use crate::connectors::{CsvSink, NumberSequenceSource};

#[test]
fn a_record_runs_through_all_branches_of_its_chain() {
    let outcome = Cluster::run(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 6, 1)).set_parallelism(1);
        numbers.map(|n| row(n, "all")).sink_to(CsvSink::new("all"));
        let odd = numbers.filter(|n| n % 2 == 1);
        odd.flat_map(|n| (0..n).map(move |i| row(n, i))).sink_to(CsvSink::new("deep/triangle"));
        odd.key_by(|_| 0).map(|n| row(n, "key")).set_parallelism(1).sink_to(CsvSink::new("key"));
    });
    assert_eq!(outcome.results.len(), 2, "one task for all but the keyed branch");
    assert_eq!(outcome.rows("all", 0), ["0,all", "1,all", "2,all", "3,all", "4,all", "5,all"]);
    let triangle = outcome.rows("deep/triangle", 0);
    assert_eq!(triangle, ["1,0", "3,0", "3,1", "3,2", "5,0", "5,1", "5,2", "5,3", "5,4"]);
    assert_eq!(outcome.rows("key", 0), ["1,key", "3,key", "5,key"]);
}

struct Squares;

impl SourceFunction for Squares {
    type Record = i64;

    async fn run(&self, out: &Out<i64>) -> Result<(), FunctionError> {
        for number in 0..4 {
            out.collect(number * number).await;
        }
        Ok(())
    }
}

#[test]
fn a_source_function_emits_all_its_records_as_one_subtask() {
    let outcome = Cluster::run(|env| {
        env.add_source("squares", Squares).map(|n| row(n, "square")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.results.len(), 1);
    assert_eq!(outcome.rows("out", 0), ["0,square", "1,square", "4,square", "9,square"]);
}

struct GivesUp;

impl SourceFunction for GivesUp {
    type Record = i64;

    async fn run(&self, out: &Out<i64>) -> Result<(), FunctionError> {
        out.collect(1).await;
        Err("no luck".into())
    }
}

#[test]
fn a_source_function_that_gives_up_fails_its_task_with_its_reason() {
    let failed = Cluster::new(|env| {
        env.add_source("unlucky", GivesUp).map(|n| row(n, "never")).sink_to(CsvSink::new("out"));
    })
    .finish();
    let failure = failed.err().expect("it fails");
    assert!(
        failure.message.contains("'Source: unlucky': the source gave up: no luck"),
        "{}",
        failure.message
    );
}

#[test]
fn each_subtask_of_a_csv_sink_writes_a_file_and_an_empty_one_the_header() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 1, 1))
            .set_parallelism(3)
            .map(|n| row(n, "plain"))
            .sink_to(CsvSink::new("out/dir"));
    });
    let files: Vec<(&str, &str)> =
        outcome.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert_eq!(
        files,
        [
            ("out/dir/part-00000.csv", "number,text\n0,plain\n"),
            ("out/dir/part-00001.csv", "number,text\n"),
            ("out/dir/part-00002.csv", "number,text\n"),
        ]
    );
    assert_eq!(
        outcome.pending,
        [
            ".pending/out+dir-v0.0.e3a4.csv",
            ".pending/out+dir-v0.1.e3a4.csv",
            ".pending/out+dir-v0.2.e3a4.csv"
        ]
    );
}

#[test]
fn fields_are_quoted_where_rfc_4180_needs_it() {
    let outcome = Cluster::run(|env| {
        env.from_source("numbers", NumberSequenceSource::new(0, 1, 1))
            .set_parallelism(1)
            .flat_map(|n| ["plain text", "a,b", "say \"hi\"", "two\nlines", ""].map(|text| row(n, text)))
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(
        outcome.files["out/part-00000.csv"],
        "number,text\n0,plain text\n0,\"a,b\"\n0,\"say \"\"hi\"\"\"\n0,\"two\nlines\"\n0,\n"
    );
}

#[test]
fn a_file_larger_than_a_chunk_is_written_whole() {
    let outcome = Cluster::new(|env| {
        let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 20_000, 2));
        numbers.map(|n| row(n, "0123456789")).set_parallelism(1).sink_to(CsvSink::new("out"));
    })
    .segment_size(4096)
    .finish()
    .unwrap();
    let rows = outcome.rows("out", 0);
    assert_eq!(rows.len(), 20_000);
    let mut numbers: Vec<i64> =
        rows.iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>());
}
