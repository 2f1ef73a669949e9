//! The jobs' shapes and arguments, and what they write for a small table.

use std::collections::BTreeMap;

use tpchgen::distribution::Distributions;
use tpchgen::generators::LineItemGenerator;
use tpchgen::text::TextPool;

use super::*;
use crate::config::JobArguments;
use crate::operators::tests::{Cluster, Outcome};

fn job(name: &str, arguments: &[(&str, &str)]) -> JobArguments {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    JobArguments { name: name.to_owned(), arguments }
}

fn shape(name: &str, arguments: &[(&str, &str)]) -> Vec<(String, Option<u32>)> {
    let graph = registry().build(&job(name, arguments)).unwrap();
    graph.vertices.iter().map(|vertex| (vertex.name.clone(), vertex.parallelism)).collect()
}

fn run(name: &str, arguments: &[(&str, &str)]) -> Outcome {
    let cluster = Cluster::of_program(&registry(), job(name, arguments)).segment_size(1024);
    cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message))
}

#[test]
fn line_items_by_ship_date_are_three_stages() {
    assert_eq!(
        shape("lineitem-by-ship-date", &[("map-parallelism", "3"), ("sort-parallelism", "2")]),
        [
            ("Source: lineitem -> Filter".to_owned(), None),
            ("Map".to_owned(), Some(3)),
            ("SortPartition -> Sink: csv".to_owned(), Some(2)),
        ]
    );
}

#[test]
fn the_totals_have_two_branches_that_end_in_one_subtask_each() {
    assert_eq!(
        shape("lineitem-totals", &[("source-parallelism", "4")]),
        [
            ("Source: lineitem -> Filter -> Map".to_owned(), Some(4)),
            ("PartitionAggregate".to_owned(), Some(4)),
            ("SumAggregated -> Sink: aggregate".to_owned(), Some(1)),
            ("PartitionReduce".to_owned(), Some(4)),
            ("SumReduced -> Sink: reduce".to_owned(), Some(1)),
        ]
    );
}

#[test]
fn wrong_arguments_are_refused() {
    for (name, value) in [
        ("scale-factor", "0"),
        ("scale-factor", "1001"),
        ("scale-factor", "NaN"),
        ("splits", "0"),
        ("map-parallelism", "0"),
    ] {
        let error = registry().build(&job("lineitem-by-ship-date", &[(name, value)])).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(&format!("argument '{name}': '{value}' is not ")), "{error}");
    }
}

/// The rows that the jobs should keep, straight from the generator, as CSV lines of the sorted job.
fn small_rows(scale_factor: f64, quantity_below: i64) -> Vec<String> {
    let distributions = Distributions::static_default();
    let pool = TextPool::new(1000, distributions);
    LineItemGenerator::new_with_distributions_and_text_pool(scale_factor, 1, 1, distributions, &pool)
        .iter()
        .filter(|row| row.l_quantity < quantity_below)
        .map(|row| {
            format!(
                "{},{},{},{},{},{}",
                row.l_orderkey,
                row.l_linenumber,
                row.l_shipdate,
                row.l_quantity,
                row.l_extendedprice.0,
                row.l_extendedprice.0 * (100 - row.l_discount.0)
            )
        })
        .collect()
}

#[test]
fn every_small_line_item_is_written_once_and_each_file_is_in_the_order_of_ship_dates() {
    let outcome = run(
        "lineitem-by-ship-date",
        &[("map-parallelism", "3"), ("scale-factor", "0.001"), ("sort-parallelism", "2"), ("splits", "5")],
    );
    let mut all = Vec::new();
    for subtask in 0..2 {
        let rows = outcome.rows("lineitem-by-ship-date", subtask);
        let dates: Vec<&str> = rows.iter().map(|line| line.split(',').nth(2).unwrap()).collect();
        assert!(dates.is_sorted());
        all.extend(rows);
    }
    let mut expected = small_rows(0.001, 24);
    assert!(expected.len() > 2000);
    expected.sort();
    all.sort();
    assert_eq!(all, expected);
    let header = "orderkey,linenumber,shipdate,quantity,extendedprice_hundredths,revenue_ten_thousandths\n";
    assert!(outcome.files.values().all(|text| text.starts_with(header)));
}

#[test]
fn both_ways_to_total_come_to_the_sums_of_the_table() {
    let outcome =
        run("lineitem-totals", &[("output", "sums"), ("quantity-below", "10"), ("scale-factor", "0.001")]);
    let rows = small_rows(0.001, 10);
    let column =
        |line: &String, index: usize| -> i64 { line.split(',').nth(index).unwrap().parse().unwrap() };
    let quantity: i64 = rows.iter().map(|line| column(line, 3)).sum();
    let price: i64 = rows.iter().map(|line| column(line, 4)).sum();
    let discount: i64 = rows.iter().map(|line| 100 - column(line, 5) / column(line, 4)).sum();
    let expected = [format!("{},{quantity},{price},{discount}", rows.len())];
    assert_eq!(outcome.rows("sums/aggregate", 0), expected);
    assert_eq!(outcome.rows("sums/reduce", 0), expected);
}

#[test]
fn without_rows_the_aggregate_says_zero_and_the_reduce_nothing() {
    let outcome = run("lineitem-totals", &[("quantity-below", "1"), ("scale-factor", "0.0001")]);
    assert_eq!(outcome.rows("lineitem-totals/aggregate", 0), ["0,0,0,0"]);
    assert!(outcome.rows("lineitem-totals/reduce", 0).is_empty());
}

#[test]
fn words_of_a_file_are_counted_wherever_it_is_cut() {
    let text = "To be, or not to be:\r\nthat is the question.\n\nTo die, to sleep\u{2014}no more".repeat(9);
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for word in ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question", "to", "die", "to"] {
        *expected.entry(word.to_owned()).or_default() += 9;
    }
    // The last line of one copy goes on in the first of the next.
    let ends =
        [("sleep", 9), ("no", 9), ("more", 1), ("moreto", 8)].map(|(word, count)| (word.to_owned(), count));
    expected.extend(ends);
    *expected.entry("to".to_owned()).or_default() -= 8;
    let expected: Vec<String> = expected.iter().map(|(word, count)| format!("{word},{count}")).collect();
    for split_bytes in ["7", "100", "100000"] {
        let job = job("word-count", &[("input", "hamlet"), ("split-bytes", split_bytes)]);
        let cluster = Cluster::of_program(&registry(), job).with_input("hamlet", text.as_str());
        let outcome = cluster.finish().unwrap_or_else(|failure| panic!("{}", failure.message));
        let mut rows = [outcome.rows("word-count", 0), outcome.rows("word-count", 1)].concat();
        rows.sort();
        assert_eq!(rows, expected, "in splits of {split_bytes} bytes");
    }
}
