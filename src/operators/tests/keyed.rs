//! Partitions by key: all records of a key, and nothing for a key that has none.

use super::{Cluster, row};
use crate::api::{AggregateFunction, KeyedStream, Out, Records, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, NumberSequenceSource};

/// The numbers `0..to` by what is left of a division by 3.
fn by_remainder(env: &mut StreamExecutionEnvironment, to: i64) -> KeyedStream<i64, i64> {
    let numbers = env.from_source("numbers", NumberSequenceSource::new(0, to, 2)).set_parallelism(1);
    numbers.key_by(|n| n % 3)
}

struct Largest;

impl AggregateFunction<i64> for Largest {
    type Accumulator = i64;
    type Output = i64;

    fn create_accumulator(&self) -> i64 {
        -1
    }

    fn add(&self, value: i64, largest: i64) -> i64 {
        largest.max(value)
    }

    fn get_result(&self, largest: i64) -> i64 {
        largest
    }
}

#[test]
fn each_key_is_folded_and_aggregated_by_itself() {
    let outcome = Cluster::run(|env| {
        let numbers = by_remainder(env, 10);
        let sums = numbers.reduce(|a, b| a + b).set_parallelism(1);
        sums.map(|n| row(n, "sum")).sink_to(CsvSink::new("sums"));
        let largest = numbers.aggregate(Largest).set_parallelism(1);
        largest.map(|n| row(n, "largest")).sink_to(CsvSink::new("largest"));
    });
    assert_eq!(outcome.rows("sums", 0), ["18,sum", "12,sum", "15,sum"]);
    assert_eq!(outcome.rows("largest", 0), ["9,largest", "7,largest", "8,largest"]);
}

#[test]
fn a_keyed_stream_without_records_calls_nothing_and_emits_nothing() {
    let outcome = Cluster::run(|env| {
        let numbers = by_remainder(env, 0);
        numbers.aggregate(Largest).map(|n| row(n, "")).sink_to(CsvSink::new("aggregate"));
        let called =
            numbers.full_window_partition().map_partition(async |_: &mut Records<i64>, out: &Out<i64>| {
                out.collect(0).await;
                Ok(())
            });
        called.map(|n| row(n, "")).sink_to(CsvSink::new("map"));
    });
    for subtask in 0..2 {
        assert_eq!(outcome.rows("aggregate", subtask), [""; 0]);
        assert_eq!(outcome.rows("map", subtask), [""; 0]);
    }
}

#[test]
fn what_a_function_leaves_of_one_key_is_not_given_to_the_next() {
    let outcome = Cluster::run(|env| {
        let first_two = by_remainder(env, 20).full_window_partition().map_partition(
            async |numbers: &mut Records<i64>, out: &Out<i64>| {
                for _ in 0..2 {
                    let Some(number) = numbers.next().await else { break };
                    out.collect(number).await;
                }
                Ok(())
            },
        );
        first_two.set_parallelism(1).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), ["0,", "3,", "1,", "4,", "2,", "5,"]);
}

/// The iterator of each key ends once and for all.
#[test]
fn after_the_last_record_of_a_key_there_is_none_however_often_it_is_asked() {
    let outcome = Cluster::run(|env| {
        let counts = by_remainder(env, 7).full_window_partition().map_partition(
            async |numbers: &mut Records<i64>, out: &Out<i64>| {
                let mut count = 0;
                while numbers.next().await.is_some() {
                    count += 1;
                }
                if numbers.next().await.is_some() || numbers.next().await.is_some() {
                    return Err("a record came behind the end".into());
                }
                out.collect(count).await;
                Ok(())
            },
        );
        counts.set_parallelism(1).map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), ["3,", "2,", "2,"]);
}

#[test]
fn what_is_called_on_a_keyed_or_windowed_stream_as_a_stream_means_its_records() {
    let outcome = Cluster::run(|env| {
        let numbers = by_remainder(env, 4);
        numbers.map(|n| row(n, "")).set_parallelism(1).sink_to(CsvSink::new("keyed"));
        let window = numbers.full_window_partition();
        window.filter(|n| *n > 1).set_parallelism(1).map(|n| row(n, "")).sink_to(CsvSink::new("windowed"));
    });
    assert_eq!(outcome.rows("keyed", 0).len(), 4);
    assert_eq!(outcome.rows("windowed", 0), ["2,", "3,"]);
}
