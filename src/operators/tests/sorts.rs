//! Sorts that spill: whatever fits into memory, the order is the same.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Cluster, Outcome, row};
use crate::api::{
    DataStream, Order, Out, PartitionWindowedStream, Records, SortKey, StreamExecutionEnvironment,
};
use crate::connectors::{CsvSink, NumberSequenceSource};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Item {
    key: Option<i8>,
    text: String,
    /// Where it stood in the input.
    place: u32,
}

const MEMORY: &str = "execution.sort-partition.memory";
const KEYED_MEMORY: &str = "execution.sort-keyed-partition.memory";

/// These items as a stream of one subtask.
fn items(env: &mut StreamExecutionEnvironment, items: Vec<Item>) -> DataStream<Item> {
    let one = env.from_source("one", NumberSequenceSource::new(0, 1, 1)).set_parallelism(1);
    one.flat_map(move |_| items.clone())
}

fn write(stream: &DataStream<Item>) {
    let rows = stream.map(|item| row(item.place.into(), format!("{:?} {}", item.key, item.text)));
    rows.sink_to(CsvSink::new("out"));
}

fn places(outcome: &Outcome) -> Vec<u32> {
    outcome.rows("out", 0).iter().map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
}

fn sorted<K: SortKey + Clone>(
    input: &[Item],
    memory: &str,
    order: Order,
    key_of: impl Fn(&Item) -> K + Send + Sync + 'static,
) -> Outcome {
    let cluster = Cluster::new(|env| {
        write(&items(env, input.to_vec()).full_window_partition().sort_partition(key_of, order));
    });
    cluster.set(MEMORY, memory).finish().unwrap()
}

fn input() -> impl Strategy<Value = Vec<Item>> {
    let item = (prop::option::of(-3_i8..3), "[a-c]{0,12}");
    prop::collection::vec(item, 0..200).prop_map(|items| {
        let items = items.into_iter().zip(0..);
        items.map(|((key, text), place)| Item { key, text, place }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With 64 bytes nearly every record is a run of its own, and runs are merged again and again.
    #[test]
    fn a_sort_is_stable_and_complete_whatever_fits_into_memory(
        input in input(),
        memory in prop::sample::select(vec!["64 b", "500 b", "3 kb", "128 mb"]),
        descending in any::<bool>(),
    ) {
        let mut expected = input.clone();
        let order = if descending { Order::Descending } else { Order::Ascending };
        let key_of = |item: &Item| (item.key, item.text.clone());
        if descending {
            expected.sort_by_key(|item| std::cmp::Reverse(key_of(item)));
        } else {
            expected.sort_by_key(key_of);
        }
        let outcome = sorted(&input, memory, order, key_of);
        prop_assert_eq!(places(&outcome), expected.iter().map(|item| item.place).collect::<Vec<_>>());
    }

    /// The same of records that are kept as they are; in 1 kb there is room for some of them.
    #[test]
    fn a_sort_of_plain_records_is_stable_and_complete_whatever_fits_into_memory(
        keys in prop::collection::vec(-3_i64..3, 0..300),
        memory in prop::sample::select(vec!["64 b", "1 kb", "128 mb"]),
        descending in any::<bool>(),
    ) {
        let input: Vec<(i64, u32)> = keys.into_iter().zip(0..).collect();
        let mut expected = input.clone();
        let order = if descending { Order::Descending } else { Order::Ascending };
        if descending {
            expected.sort_by_key(|record| std::cmp::Reverse(record.0));
        } else {
            expected.sort_by_key(|record| record.0);
        }
        let cluster = Cluster::new(|env| {
            let window = env.from_collection("records", input).full_window_partition();
            let sorted = window.sort_partition(|record| record.0, order);
            sorted.map(|(key, place)| row(place.into(), key.to_string())).sink_to(CsvSink::new("out"));
        });
        let outcome = cluster.set(MEMORY, memory).finish().unwrap();
        prop_assert_eq!(places(&outcome), expected.iter().map(|record| record.1).collect::<Vec<_>>());
    }

    /// The same of a keyed sort: keys are brought together, and the sort is within each.
    #[test]
    fn a_keyed_sort_is_a_sort_within_each_key_whatever_fits_into_memory(
        input in input(),
        memory in prop::sample::select(vec!["64 b", "1 kb", "128 mb"]),
    ) {
        let mut expected = input.clone();
        expected.sort_by_key(|item| {
            (postcard::to_stdvec(&item.text).unwrap(), std::cmp::Reverse(item.key))
        });
        let cluster = Cluster::new(|env| {
            let by_text = items(env, input).key_by(|item| item.text.clone());
            let sorted = by_text.full_window_partition().sort_partition(|item| item.key, Order::Descending);
            write(&sorted.set_parallelism(1));
        });
        let outcome = cluster.set(KEYED_MEMORY, memory).finish().unwrap();
        prop_assert_eq!(places(&outcome), expected.iter().map(|item| item.place).collect::<Vec<_>>());
    }

    /// Each key once, its records in the order of their arrival.
    #[test]
    fn records_are_brought_together_by_key_whatever_fits_into_memory(
        input in input(),
        memory in prop::sample::select(vec!["64 b", "1 kb", "128 mb"]),
    ) {
        let mut expected: std::collections::BTreeMap<Vec<u8>, String> = std::collections::BTreeMap::new();
        for item in &input {
            let places = expected.entry(postcard::to_stdvec(&item.key).unwrap()).or_default();
            write!(places, "{} ", item.place).unwrap();
        }
        let cluster = Cluster::new(|env| {
            let by_key = items(env, input).key_by(|item| item.key).full_window_partition();
            let lists = by_key.map_partition(async |items: &mut Records<Item>, out: &Out<String>| {
                let mut places = String::new();
                while let Some(item) = items.next().await {
                    write!(places, "{} ", item.place).unwrap();
                }
                out.collect(places).await;
                Ok(())
            });
            lists.set_parallelism(1).map(|places| row(0, places)).sink_to(CsvSink::new("out"));
        });
        let rows = cluster.set(KEYED_MEMORY, memory).finish().unwrap().rows("out", 0);
        prop_assert_eq!(rows, expected.into_values().map(|places| format!("0,{places}")).collect::<Vec<_>>());
    }
}

/// Three kilobytes of records in a kilobyte.
#[test]
fn a_sort_beyond_its_memory_goes_to_disk_and_one_within_it_does_not() {
    let input: Vec<Item> =
        (0..100).map(|place| Item { key: Some(place as i8), text: "x".repeat(30), place }).collect();
    let within = sorted(&input, "100 kb", Order::Ascending, |item| item.key);
    let beyond = sorted(&input, "1 kb", Order::Ascending, |item| item.key);
    assert_eq!(within.spills, 0);
    assert!((4..40).contains(&beyond.spills), "{} runs", beyond.spills);
    assert_eq!(places(&within), places(&beyond));
}

/// A plain record of 16 bytes takes 32 with its key and its place, however short its encoding is.
#[test]
fn a_sort_of_plain_records_counts_what_they_take_in_memory() {
    let spills = |memory: &str| {
        let cluster = Cluster::new(|env| {
            let window = env.from_collection("records", vec![(1_i64, 2_i64); 64]).full_window_partition();
            let sorted = window.sort_partition(|record| record.0, Order::Ascending);
            sorted.map(|(key, _)| row(key, "")).sink_to(CsvSink::new("out"));
        });
        cluster.set(MEMORY, memory).finish().unwrap().spills
    };
    assert_eq!(spills("2048 b"), 0);
    assert_eq!(spills("2047 b"), 2);
    assert_eq!(spills("1024 b"), 2);
}

/// A job may want other memory than the cluster gives.
#[test]
fn a_job_may_set_the_memory_of_its_sorts() {
    let input: Vec<Item> = (0..100).map(|place| Item { key: None, text: String::new(), place }).collect();
    let job = |memory: Option<&str>| {
        Cluster::run(|env| {
            if let Some(memory) = memory {
                env.configure(MEMORY, memory);
            }
            let all = items(env, input.clone()).full_window_partition();
            write(&all.sort_partition(|item| item.place, Order::Descending));
        })
        .spills
    };
    assert_eq!(job(None), 0);
    assert!(job(Some("100 b")) > 0);
}

#[test]
fn a_record_larger_than_the_memory_is_sorted_too() {
    let input: Vec<Item> = (0..5)
        .map(|place| Item { key: Some(-(place as i8)), text: "long ".repeat(place as usize * 100), place })
        .collect();
    assert_eq!(places(&sorted(&input, "64 b", Order::Ascending, |item| item.key)), [4, 3, 2, 1, 0]);
}

#[test]
fn records_are_sorted_by_the_name_of_a_field() {
    let input: Vec<Item> = [(Some(2), "b"), (None, "c"), (Some(1), "a")]
        .into_iter()
        .zip(0..)
        .map(|((key, text), place)| Item { key, text: text.to_owned(), place })
        .collect();
    for (field, order, expected) in [
        ("key", Order::Ascending, [1, 2, 0]),
        ("text", Order::Descending, [1, 0, 2]),
        ("place", Order::Ascending, [0, 1, 2]),
    ] {
        let outcome = Cluster::run(|env| {
            let all = items(env, input.clone()).full_window_partition();
            write(&all.sort_partition_by_field(field, order));
        });
        assert_eq!(places(&outcome), expected, "{field}");
    }
}

/// What is ordered in ways of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Keys {
    float: f64,
    option: Option<i64>,
    text: String,
    place: u32,
}

#[test]
fn floats_options_and_strings_have_total_orders_by_a_function_and_by_a_field() {
    type Sort = fn(&PartitionWindowedStream<Keys>, &'static str, Order) -> DataStream<Keys>;
    let by_function: Sort = |window, field, order| match field {
        "float" => window.sort_partition(|keys| keys.float, order),
        "option" => window.sort_partition(|keys| keys.option, order),
        _ => window.sort_partition(|keys| keys.text.clone(), order),
    };
    let by_field: Sort = |window, field, order| window.sort_partition_by_field(field, order);
    let keys = [
        (f64::NAN, Some(1), "b"),
        (0.0, None, "\u{10000}"),
        (-0.0, Some(-1), "Z"),
        (f64::INFINITY, Some(1), "\u{ffff}"),
        (f64::NEG_INFINITY, None, "a"),
    ];
    let keys: Vec<Keys> = keys
        .into_iter()
        .zip(0..)
        .map(|((float, option, text), place)| Keys { float, option, text: text.to_owned(), place })
        .collect();
    for (field, order, expected) in [
        ("float", Order::Ascending, [4, 2, 1, 3, 0]),
        ("float", Order::Descending, [0, 3, 1, 2, 4]),
        // Nothing first, from the top last; equal ones as they came in both directions.
        ("option", Order::Ascending, [1, 4, 2, 0, 3]),
        ("option", Order::Descending, [0, 3, 2, 1, 4]),
        // By bytes. By units of UTF-16, U+10000 would stand before U+FFFF.
        ("text", Order::Ascending, [2, 4, 0, 3, 1]),
        ("text", Order::Descending, [1, 3, 0, 4, 2]),
    ] {
        for sort in [by_function, by_field] {
            for memory in ["128 mb", "64 b"] {
                let cluster = Cluster::new(|env| {
                    let window = env.from_collection("keys", keys.clone()).full_window_partition();
                    let sorted = sort(&window, field, order);
                    sorted.map(|keys| row(keys.place.into(), "")).sink_to(CsvSink::new("out"));
                });
                let outcome = cluster.set(MEMORY, memory).finish().unwrap();
                assert_eq!(places(&outcome), expected, "{field} {order:?} {memory}");
            }
        }
    }
}
