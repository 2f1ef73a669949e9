//! The programs in `examples` give what they promise, by other ways of coming to it: tables straight from
//! their generator, sorts and sums of the standard library, values from the definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use clap::Parser;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen::text::TextPool;
use xxhash_rust::xxh3::xxh3_64;

use crate::harness::Directory;

#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/deduplicate_by_key.rs"]
mod deduplicate_by_key;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/linear_model_per_partition.rs"]
mod linear_model_per_partition;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/sketch_per_partition.rs"]
mod sketch_per_partition;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/sort_tpch_table.rs"]
mod sort_tpch_table;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/top_k_per_partition.rs"]
mod top_k_per_partition;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/word_count.rs"]
mod word_count;

/// 1,500 orders with some 6,000 line items.
const SCALE_FACTOR: f64 = 0.001;

fn arguments<A: Parser>(line: &[&str]) -> A {
    parse(line).unwrap_or_else(|error| panic!("{error}"))
}

fn parse<A: Parser>(line: &[&str]) -> Result<A, clap::Error> {
    A::try_parse_from(["example"].iter().chain(line))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn pool() -> TextPool {
    TextPool::new(4 << 10, Distributions::static_default())
}

/// The rows of CSV files, each under the names of its columns, one file's behind the other's.
fn csv_rows<'a>(files: impl IntoIterator<Item = &'a Path>) -> Vec<BTreeMap<String, String>> {
    let read = |file| csv::Reader::from_path(file).unwrap().into_deserialize().collect::<Result<Vec<_>, _>>();
    files.into_iter().flat_map(|file| read(file).unwrap()).collect()
}

/// Price, order and customer.
type Order = (i64, i64, i64);

/// The largest first.
fn orders() -> Vec<Order> {
    let (distributions, pool) = (Distributions::static_default(), pool());
    let generator =
        OrderGenerator::new_with_distributions_and_text_pool(SCALE_FACTOR, 1, 1, distributions, &pool);
    let mut orders: Vec<_> =
        generator.iter().map(|row| (row.o_totalprice.0, row.o_orderkey, row.o_custkey)).collect();
    orders.sort_by(|one, other| other.cmp(one));
    orders
}

/// Order, line, price and day of shipping, in no order that is wanted.
fn line_items() -> Vec<(i64, i32, i64, String)> {
    let (distributions, pool) = (Distributions::static_default(), pool());
    let generator =
        LineItemGenerator::new_with_distributions_and_text_pool(SCALE_FACTOR, 1, 1, distributions, &pool);
    let row = |row: tpchgen::generators::LineItem| {
        (row.l_orderkey, row.l_linenumber, row.l_extendedprice.0, row.l_shipdate.to_string())
    };
    generator.iter().map(row).collect()
}

/// Those of each partition, and those of all.
fn top_k(line: &[&str]) -> [Vec<Order>; 2] {
    let found = top_k_per_partition::run(arguments(&[&["--scale-factor", "0.001"], line].concat())).unwrap();
    let plain = |orders: Vec<top_k_per_partition::LargeOrder>| {
        orders.into_iter().map(|order| (order.totalprice, order.orderkey, order.custkey)).collect()
    };
    [found.of_each_partition, found.of_all].map(plain)
}

#[test]
fn top_k_per_partition_finds_the_largest_orders_and_no_partition_keeps_back_a_larger_one() {
    let orders = orders();
    let [of_each, of_all] = top_k(&["--k", "5", "--partitions", "3"]);
    assert_eq!(of_all, orders[..5]);
    assert_eq!(of_each.len(), 15);
    let partitions: Vec<_> = of_each.chunks(5).collect();
    assert!(partitions.iter().all(|partition| partition.is_sorted_by(|one, next| one > next)));
    // An order that was left out was smaller than all that its partition kept.
    for order in orders.iter().filter(|order| !of_each.contains(order)) {
        assert!(partitions.iter().any(|partition| partition[4] > *order), "{order:?}");
    }
    assert!(of_each.iter().all(|order| orders.contains(order)));
}

#[test]
fn top_k_per_partition_gives_all_orders_where_there_are_fewer_than_wanted() {
    assert_eq!(top_k(&["--k", "2000", "--partitions", "2"])[1], orders());
}

#[test]
fn deduplicate_by_key_keeps_the_latest_report_of_each_device() {
    let directory = Directory::new("deduplicate");
    let (input, output) = (directory.path("in"), directory.path("out"));
    fs::create_dir(&input).unwrap();
    let mut expected: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let mut files = [String::new(), String::new()];
    for number in 0..200_u64 {
        // Times repeat and go up and down; some states need quotes in CSV.
        let (device, time, state) =
            (format!("device-{}", number % 17), number * 37 % 23, format!("s,{}", number % 5));
        let report = format!("{{\"device\":\"{device}\",\"time\":{time},\"state\":\"{state}\"}}\n");
        files[usize::from(number % 3 == 0)].push_str(&report);
        let latest = expected.entry(device).or_default();
        *latest = (*latest).clone().max((time, state));
    }
    files[0] += "{\"device\":\"device-1\",\"time\":\"noon\",\"state\":\"x\"}\nnothing\n";
    fs::write(input.join("monday.ndjson"), &files[0]).unwrap();
    fs::write(input.join("tuesday.ndjson"), &files[1]).unwrap();
    let line = ["--input", text(&input), "--output", text(&output)];
    let summary = deduplicate_by_key::run(arguments(&line)).unwrap();
    let rows = csv_rows(summary.files.iter().map(AsRef::as_ref));
    let found =
        rows.iter().map(|row| (row["device"].clone(), (row["time"].parse().unwrap(), row["state"].clone())));
    assert_eq!(rows.len(), 17);
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    assert_eq!((summary.devices, summary.bad_lines), (17, 2));
}

#[test]
fn deduplicate_by_key_says_what_is_wrong_with_its_input_and_its_output() {
    let directory = Directory::new("deduplicate-errors");
    let (input, output) = (directory.path("in"), directory.path("out"));
    let refusal = |files: &[&str]| {
        let line = [&["--input", text(&input), "--output", text(&output)], files].concat();
        deduplicate_by_key::run(arguments(&line)).err().expect("it is refused").to_string()
    };
    let missing = refusal(&[]);
    assert!(missing.starts_with(&format!("the input directory {}: ", input.display())), "{missing}");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("monday.ndjson"), "").unwrap();
    let missing = refusal(&["tuesday.ndjson"]);
    assert!(missing.contains("there is no file 'tuesday.ndjson'"), "{missing}");
    let outside = refusal(&["../in/monday.ndjson"]);
    assert!(outside.contains("'../in/monday.ndjson' is not a path in the input directory"), "{outside}");
    fs::write(output.join("kept"), "").unwrap();
    let full = refusal(&[]);
    assert!(full.contains("is not empty"), "{full}");
    let error = parse::<deduplicate_by_key::Arguments>(&["--input", "in"]).unwrap_err();
    assert!(error.to_string().contains("--output <OUTPUT>"), "{error}");
}

/// The registers by their definition, bit by bit.
fn registers(values: impl IntoIterator<Item = i64>, precision: usize) -> Vec<u8> {
    let mut registers = vec![0; 1 << precision];
    for value in values {
        let bits = format!("{:064b}", xxh3_64(&value.to_le_bytes()));
        let (register, rest) = bits.split_at(precision);
        let rank = rest.find('1').unwrap_or(rest.len()) + 1;
        let register = &mut registers[usize::from_str_radix(register, 2).unwrap()];
        *register = (*register).max(u8::try_from(rank).unwrap());
    }
    registers
}

#[test]
fn sketch_per_partition_estimates_the_exact_number_within_its_error() {
    let line = ["--scale-factor", "0.001", "--precision", "8", "--partitions", "3"];
    let found = sketch_per_partition::run(arguments(&line)).unwrap();
    let orders: BTreeSet<i64> = line_items().into_iter().map(|(order, ..)| order).collect();
    assert_eq!(found.exact, orders.len() as u64);
    let (error, bound) = (found.of_all.estimate() / orders.len() as f64 - 1.0, 3.0 * 1.04 / 16.0);
    assert!(error.abs() < bound, "{error}");
    assert_eq!(found.of_all.registers(), registers(orders, 8));
    assert_eq!(found.of_each_partition.len(), 3);
    // None of them has seen it all.
    assert!(found.of_each_partition.iter().all(|sketch| *sketch != found.of_all));
}

#[test]
fn sketch_per_partition_keeps_its_error_bound_from_nothing_to_many_values() {
    const REPEATS: i64 = 20;
    for count in [0_i64, 1, 100, 1000, 3000, 20_000] {
        let errors = (0..REPEATS).map(|repeat| {
            let mut sketch = sketch_per_partition::Sketch::new(10);
            let values = repeat << 32..(repeat << 32) + count;
            values.clone().chain(values).for_each(|value| sketch.add(value));
            (sketch.estimate() - count as f64) / (count.max(1) as f64)
        });
        let squares: f64 = errors.map(|error| error * error).sum();
        let (error, bound) = ((squares / REPEATS as f64).sqrt(), 1.04 / 32.0);
        // The error of so few repeats is itself uncertain by a sixth.
        assert!(error <= 1.5 * bound, "{error} at {count}");
        assert!(count < 3000 || error > bound / 2.0, "{error} at {count} is too good");
    }
}

#[test]
fn linear_model_per_partition_leaves_no_error_that_a_model_could_explain() {
    use linear_model_per_partition::Row;
    let fitted =
        linear_model_per_partition::run(arguments(&["--rows", "3001", "--partitions", "3"])).unwrap();
    let parts = [0..1001, 1001..2001, 2001..3001];
    assert_eq!(fitted.of_each_partition.len(), 3);
    let mut expected = [0.0; 3];
    for (model, part) in fitted.of_each_partition.iter().zip(parts) {
        let rows: Vec<Row> = part.clone().map(Row::numbered).collect();
        // What is left over is orthogonal to each column: that is what makes squares least.
        for column in 0..3 {
            let product: f64 = rows.iter().map(|row| (row.y - model.predict(&row.x)) * row.x[column]).sum();
            assert!(product.abs() < 1e-7, "{product} in column {column} of {part:?}");
        }
        for (mean, weight) in expected.iter_mut().zip(model.weights) {
            *mean += weight * rows.len() as f64 / 3001.0;
        }
    }
    let average = fitted.average.unwrap();
    for ((weight, expected), truth) in average.weights.into_iter().zip(expected).zip([2.0, 3.0, -1.0]) {
        assert!((weight - expected).abs() < 1e-12, "{weight} is not {expected}");
        assert!((weight - truth).abs() < 0.03, "{weight} is not near {truth}");
    }
    let noise = |row: &Row| row.y - (2.0 + 3.0 * row.x[1] - row.x[2]);
    assert!((0..3001).map(Row::numbered).all(|row| noise(&row).abs() <= 0.25));
}

#[test]
fn linear_model_per_partition_has_no_model_of_too_few_rows() {
    // Two rows and one, then two and two, then three and two.
    for (rows, fitted_to) in [("3", None), ("4", None), ("5", Some(3.0))] {
        let line = ["--rows", rows, "--partitions", "2"];
        let fitted = linear_model_per_partition::run(arguments(&line)).unwrap();
        assert_eq!(fitted.of_each_partition.first().map(|model| model.rows), fitted_to);
        assert_eq!(fitted.of_each_partition.len(), fitted_to.into_iter().count());
        assert_eq!(fitted.average.as_ref(), fitted.of_each_partition.first());
    }
}

/// The files of a sorted table, as rows.
fn sorted(by: &str) -> Vec<Vec<BTreeMap<String, String>>> {
    let directory = Directory::new(&format!("sort-{by}"));
    let output = directory.path("out");
    let line = ["--by", by, "--output", text(&output), "--scale-factor", "0.001", "--files", "3"];
    let line = [&line[..], &["--sort-memory", "16 kb"]].concat();
    let files = sort_tpch_table::run(arguments(&line)).unwrap();
    assert_eq!(files.len(), 3);
    assert!(files[0].1.is_none() && files[1].1.is_some() && files[1].1 < files[2].1);
    files.iter().map(|(file, _)| csv_rows([file.as_path()])).collect()
}

#[test]
fn sort_tpch_table_has_each_row_once_in_order_from_file_to_file() {
    let mut expected = line_items();
    expected.sort();
    for by in ["extendedprice", "shipdate"] {
        let files = sorted(by);
        assert!(files.iter().all(|file| file.len() > expected.len() / 6), "a range is nearly empty");
        let rows = files.concat();
        let number = |row: &BTreeMap<String, String>, column: &str| row[column].parse::<i64>().unwrap();
        if by == "shipdate" {
            assert!(rows.is_sorted_by_key(|row| &row["shipdate"]));
        } else {
            assert!(rows.is_sorted_by_key(|row| number(row, by)));
        }
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| {
                let line = i32::try_from(number(row, "linenumber")).unwrap();
                (number(row, "orderkey"), line, number(row, "extendedprice"), row["shipdate"].clone())
            })
            .collect();
        found.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn sort_tpch_table_says_which_columns_and_which_memory_would_be_right() {
    let directory = Directory::new("sort-errors");
    let output = directory.path("out");
    let line = |by: &'static str| ["--by", by, "--output", text(&output), "--sort-memory", "lots"];
    let error = parse::<sort_tpch_table::Arguments>(&line("color")).unwrap_err().to_string();
    assert!(error.contains("[possible values: orderkey, extendedprice, quantity, shipdate]"), "{error}");
    let error = sort_tpch_table::run(arguments(&line("quantity"))).unwrap_err().to_string();
    assert!(error.contains("'execution.sort-partition.memory': 'lots' is not a memory size"), "{error}");
}

#[test]
fn word_count_gives_the_most_frequent_words_of_all_files() {
    let directory = Directory::new("words");
    fs::create_dir(directory.path("poems")).unwrap();
    fs::write(directory.path("a.txt"), "The raven, the door; and the bust.\n\nDoor!").unwrap();
    fs::write(directory.path("poems/b.txt"), "Above the door: a RAVEN").unwrap();
    let input = directory.path("");
    let top = |count: &str| {
        let top = word_count::run(arguments(&["--input", text(&input), "--top", count])).unwrap();
        top.into_iter().map(|row| (row.word, row.count)).collect::<Vec<_>>()
    };
    let words = [("the", 4), ("door", 3), ("raven", 2), ("a", 1), ("above", 1), ("and", 1), ("bust", 1)];
    let words = words.map(|(word, count)| (word.to_owned(), count));
    assert_eq!(top("5"), words[..5]);
    assert_eq!(top("100"), words);
}

#[test]
fn word_count_says_where_it_looked_for_files() {
    let directory = Directory::new("words-errors");
    let refusal =
        |input: &Path| word_count::run(arguments(&["--input", text(input)])).unwrap_err().to_string();
    let (missing, empty) = (directory.path("none"), directory.path(""));
    assert!(refusal(&missing).starts_with(&format!("the input directory {}: ", missing.display())));
    assert!(refusal(&empty).contains("has nothing to read"), "{}", refusal(&empty));
}

#[test]
fn each_example_is_in_the_readme_and_is_tested_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let tests = fs::read_to_string(root.join("tests/it/examples.rs")).unwrap();
    let examples = fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    for example in examples.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()) {
        assert!(readme.contains(&format!("| `{example}` |")), "{example}");
        assert!(tests.contains(&format!("\nmod {example};")), "{example}");
    }
}
