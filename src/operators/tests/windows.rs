//! Full-window partitions (FLIP-380).

use super::{Cluster, Row, row};
use crate::api::{AggregateFunction, DataStream, Order, Out, Records, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, NumberSequenceSource};

/// Numbers `0..to`, in one source subtask.
fn numbers(env: &mut StreamExecutionEnvironment, to: i64) -> DataStream<i64> {
    env.from_source("numbers", NumberSequenceSource::new(0, to, 3)).set_parallelism(1)
}

#[test]
fn a_sort_is_in_order_and_leaves_equal_keys_in_their_order_in_both_directions() {
    for (order, expected) in [
        (Order::Ascending, [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]),
        (Order::Descending, [2, 5, 8, 1, 4, 7, 0, 3, 6, 9]),
    ] {
        let outcome = Cluster::run(|env| {
            numbers(env, 10)
                .full_window_partition()
                .sort_partition(|n| n % 3, order)
                .map(|n| row(n, ""))
                .sink_to(CsvSink::new("out"));
        });
        let expected: Vec<String> = expected.iter().map(|n| format!("{n},")).collect();
        assert_eq!(outcome.rows("out", 0), expected, "{order:?}");
    }
}

#[test]
fn each_partition_is_sorted_by_itself() {
    let outcome = Cluster::run(|env| {
        let numbers = numbers(env, 100).rebalance().full_window_partition();
        let sorted = numbers.sort_partition(|n| *n, Order::Descending).set_parallelism(3);
        sorted.map(|n| row(n, "")).sink_to(CsvSink::new("out"));
    });
    for subtask in 0..3 {
        let expected: Vec<String> =
            (0..100).rev().filter(|n| n % 3 == i64::from(subtask)).map(|n| format!("{n},")).collect();
        assert_eq!(outcome.rows("out", subtask), expected);
    }
}

/// Counts by value: `add` returns a new accumulator and could not change the old one.
struct Count;

impl AggregateFunction<i64> for Count {
    type Accumulator = u32;
    type Output = Row;

    fn create_accumulator(&self) -> u32 {
        100
    }

    fn add(&self, _: i64, accumulator: u32) -> u32 {
        accumulator + 1
    }

    fn get_result(&self, accumulator: u32) -> Row {
        row(i64::from(accumulator), "result")
    }
}

/// Two records for four subtasks: the last two have none.
#[test]
fn b48_subtasks_without_records_call_map_partition_once_aggregate_and_emit_nothing_else() {
    let outcome = Cluster::run(|env| {
        let few = numbers(env, 2).rebalance();
        let window = few.full_window_partition();
        window.aggregate(Count).set_parallelism(4).sink_to(CsvSink::new("aggregate"));
        window.reduce(|a, b| a + b).set_parallelism(4).map(|n| row(n, "")).sink_to(CsvSink::new("reduce"));
        window
            .sort_partition(|n| *n, Order::Ascending)
            .set_parallelism(4)
            .map(|n| row(n, ""))
            .sink_to(CsvSink::new("sort"));
        window
            .map_partition(async |records: &mut Records<i64>, out: &Out<Row>| {
                let mut count = 0;
                while records.next().await.is_some() {
                    count += 1;
                }
                assert_eq!(records.next().await, None, "the end stays the end");
                out.collect(row(count, "called")).await;
                Ok(())
            })
            .set_parallelism(4)
            .sink_to(CsvSink::new("map"));
    });
    let rows =
        |directory| -> Vec<Vec<String>> { (0..4).map(|subtask| outcome.rows(directory, subtask)).collect() };
    assert_eq!(rows("aggregate"), [["101,result"], ["101,result"], ["100,result"], ["100,result"]]);
    assert_eq!(rows("reduce"), [vec!["0,"], vec!["1,"], vec![], vec![]]);
    assert_eq!(rows("sort"), [vec!["0,"], vec!["1,"], vec![], vec![]]);
    assert_eq!(rows("map"), [["1,called"], ["1,called"], ["0,called"], ["0,called"]]);
}

#[test]
fn a_reduce_folds_in_the_order_of_arrival() {
    let outcome = Cluster::run(|env| {
        numbers(env, 5)
            .map(|n| row(n, n))
            .full_window_partition()
            .reduce(|a, b| row(b.number, format!("({}{})", a.text, b.text)))
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), ["4,((((01)2)3)4)"]);
}

#[test]
fn a_function_that_returns_early_has_its_rest_not_fetched() {
    let outcome = Cluster::run(|env| {
        numbers(env, 10_000)
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, out: &Out<Row>| {
                for _ in 0..3 {
                    let Some(number) = records.next().await else { break };
                    out.collect(row(number, "first")).await;
                }
                Ok(())
            })
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.rows("out", 0), ["0,first", "1,first", "2,first"]);
    assert_eq!(outcome.closed_early, 1);
}

/// Neither side is held in memory: results are written while most of the input is still to come.
#[test]
fn results_leave_while_input_still_comes() {
    let outcome = Cluster::run(|env| {
        numbers(env, 5000)
            .full_window_partition()
            .map_partition(async |records: &mut Records<i64>, out: &Out<i64>| {
                let mut seen = 0;
                while let Some(number) = records.next().await {
                    seen += 1;
                    out.collect(number).await;
                    if seen == 2500 {
                        return Ok(());
                    }
                }
                Err("the input ended".into())
            })
            .key_by(|n| *n)
            .map(|n| row(n, ""))
            .sink_to(CsvSink::new("out"));
    });
    assert_eq!(outcome.closed_early, 1, "the results did not wait for the end of the input");
    let rows: usize = (0..2).map(|subtask| outcome.rows("out", subtask).len()).sum();
    assert_eq!(rows, 2500);
}
