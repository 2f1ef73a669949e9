//! The values that Flink's own tests of full-window partitions assert: one source subtask leads through a
//! map of parallelism 2 to windows of parallelism 2, and what each of them has is known.

use super::{Cluster, Outcome, Row, row};
use crate::api::{
    AggregateFunction, DataStream, Order, Out, PartitionWindowedStream, Record, Records,
    StreamExecutionEnvironment,
};
use crate::connectors::CsvSink;

/// These records, dealt to two subtasks, each of which has a window.
fn dealt<T: Record + Send + Sync>(
    env: &mut StreamExecutionEnvironment,
    records: impl IntoIterator<Item = T>,
) -> PartitionWindowedStream<T> {
    env.from_collection("one", records).map(|record| record).set_parallelism(2).full_window_partition()
}

fn write(numbers: &DataStream<i64>) {
    numbers.map(|number| row(number, "")).sink_to(CsvSink::new("out"));
}

/// What each of the two subtasks wrote.
fn both(outcome: &Outcome) -> [Vec<String>; 2] {
    [0, 1].map(|subtask| outcome.rows("out", subtask))
}

#[test]
fn a_hundred_records_are_fifty_for_the_map_partition_of_each_subtask() {
    let outcome = Cluster::run(|env| {
        let window = dealt(env, vec!["Test".to_owned(); 100]);
        let counts = window.map_partition(async |records: &mut Records<String>, out: &Out<i64>| {
            let mut count = 0;
            while let Some(record) = records.next().await {
                count += i64::from(record == "Test");
            }
            out.collect(count).await;
            Ok(())
        });
        write(&counts);
    });
    assert_eq!(both(&outcome), [["50,"], ["50,"]]);
}

#[test]
fn a_reduce_of_1_1_1_1_998_998_is_1000_in_each_subtask() {
    let outcome = Cluster::run(|env| {
        write(&dealt(env, [1_i64, 1, 1, 1, 998, 998]).reduce(|a, b| a + b));
    });
    assert_eq!(both(&outcome), [["1000,"], ["1000,"]]);
}

/// Starts at 100 and subtracts.
struct Less;

impl AggregateFunction<i64> for Less {
    type Accumulator = i64;
    type Output = i64;

    fn create_accumulator(&self) -> i64 {
        100
    }

    fn add(&self, value: i64, accumulator: i64) -> i64 {
        accumulator - value
    }

    fn get_result(&self, accumulator: i64) -> i64 {
        accumulator
    }
}

#[test]
fn an_aggregate_of_1_1_2_2_3_3_that_subtracts_from_100_is_94_in_each_subtask() {
    let outcome = Cluster::run(|env| write(&dealt(env, [1, 1, 2, 2, 3, 3]).aggregate(Less)));
    assert_eq!(both(&outcome), [["94,"], ["94,"]]);
}

/// Puts the digits of a sorted partition together.
async fn digits(records: &mut Records<Row>) -> String {
    let mut digits = String::new();
    while let Some(record) = records.next().await {
        digits += &record.number.to_string();
    }
    digits
}

#[test]
fn keys_0_0_3_3_1_1_are_013_in_each_subtask_and_310_from_the_top() {
    type Sort = fn(&PartitionWindowedStream<Row>, Order) -> DataStream<Row>;
    let by_place_in_a_tuple: Sort =
        |rows, order| rows.sort_partition(|row| (row.number, row.text.clone()), order);
    let by_field: Sort = |rows, order| rows.sort_partition_by_field("number", order);
    let by_selector: Sort = |rows, order| rows.sort_partition(|row| row.number, order);
    for sort in [by_place_in_a_tuple, by_field, by_selector] {
        for (order, expected) in [(Order::Ascending, "0,013"), (Order::Descending, "0,310")] {
            let outcome = Cluster::run(|env| {
                let sorted = sort(&dealt(env, [0, 0, 3, 3, 1, 1].map(|key| row(key, ""))), order);
                let joined = sorted.full_window_partition().map_partition(
                    async |records: &mut Records<Row>, out: &Out<Row>| {
                        out.collect(row(0, digits(records).await)).await;
                        Ok(())
                    },
                );
                joined.sink_to(CsvSink::new("out"));
            });
            assert_eq!(both(&outcome), [[expected], [expected]], "{order:?}");
        }
    }
}

struct Sum;

impl AggregateFunction<i64> for Sum {
    /// Nobody can change what is in it.
    type Accumulator = std::rc::Rc<i64>;
    type Output = i64;

    fn create_accumulator(&self) -> Self::Accumulator {
        0.into()
    }

    fn add(&self, value: i64, sum: Self::Accumulator) -> Self::Accumulator {
        (*sum + value).into()
    }

    fn get_result(&self, sum: Self::Accumulator) -> i64 {
        *sum
    }
}

/// In Flink the result is 0.
#[test]
fn the_accumulator_that_add_returns_is_the_one_that_counts() {
    let outcome = Cluster::run(|env| {
        let numbers = env.from_collection("numbers", [1, 2, 3]);
        write(&numbers.full_window_partition().aggregate(Sum));
    });
    assert_eq!(outcome.rows("out", 0), ["6,"]);
}
