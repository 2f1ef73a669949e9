//! TPC-H's table LINEITEM sorted by a column, as CSV files that are sorted as a whole: every row of a file
//! comes before those of the next.
//!
//! ```console
//! $ cargo run --release --example sort_tpch_table -- --by shipdate --output sorted --sort-memory "16 mb"
//! ```
//!
//! Two jobs: the first samples the column, from which the bounds of the ranges follow; the second sends each
//! row to the subtask of its range and sorts there, on disk where the memory does not suffice. Prints
//! the files and where their ranges begin.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::exit;

use clap::{Parser, ValueEnum};
use revenant::api::{Order, Out, Program, Records, StreamExecutionEnvironment};
use revenant::connectors::{CsvSink, Date, LineItem, TpchLineItemSource};
use revenant::runtime::{JobExecutionError, MiniCluster};

/// One row of so many is in the sample.
const SAMPLED: usize = 50;

/// Line items of TPC-H, sorted by a column.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    #[arg(long)]
    by: Column,
    /// Directory for the files, new or empty.
    #[arg(long)]
    output: PathBuf,
    /// Size of the table: at 1 it has 6 million rows.
    #[arg(long, default_value = "0.01")]
    scale_factor: f64,
    /// How many files there will be.
    #[arg(long, default_value = "4")]
    files: NonZeroU32,
    /// Memory of each sort.
    #[arg(long, default_value = "64 mb")]
    sort_memory: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Column {
    Orderkey,
    Extendedprice,
    Quantity,
    Shipdate,
}

impl Column {
    /// The field of the row type.
    fn field(self) -> &'static str {
        match self {
            Self::Orderkey => "orderkey",
            Self::Extendedprice => "extendedprice",
            Self::Quantity => "quantity",
            Self::Shipdate => "shipdate",
        }
    }

    /// The column as a number of the same order.
    fn of(self, row: &LineItem) -> i64 {
        match self {
            Self::Orderkey => row.orderkey,
            Self::Extendedprice => row.extendedprice,
            Self::Quantity => row.quantity,
            Self::Shipdate => row.shipdate.0.into(),
        }
    }

    /// The value of such a number.
    fn show(self, key: i64) -> String {
        match self {
            Self::Shipdate => Date(key as i32).to_string(),
            Self::Orderkey | Self::Extendedprice | Self::Quantity => key.to_string(),
        }
    }
}

/// Collects the column of some rows.
pub fn describe_sample(env: &mut StreamExecutionEnvironment, arguments: &Arguments) {
    let by = arguments.by;
    let rows = TpchLineItemSource::new(arguments.scale_factor, arguments.files.get());
    env.from_source("lineitem", rows)
        .map(move |row| by.of(&row))
        .full_window_partition()
        .map_partition(async |keys: &mut Records<i64>, out: &Out<i64>| {
            let mut count = 0;
            while let Some(key) = keys.next().await {
                if count % SAMPLED == 0 {
                    out.collect(key).await;
                }
                count += 1;
            }
            Ok(())
        })
        .collect("sample");
}

/// Where the ranges begin, but for the first: `parts` of about the same number of rows.
fn bounds(mut sample: Vec<i64>, parts: u32) -> Vec<i64> {
    sample.sort_unstable();
    let at = |part: usize| sample.get(part * sample.len() / parts as usize).copied();
    (1..parts as usize).filter_map(at).collect()
}

/// Sorts the table in ranges.
pub fn describe_sort(env: &mut StreamExecutionEnvironment, arguments: &Arguments, bounds: Vec<i64>) {
    let (by, files) = (arguments.by, arguments.files.get());
    env.configure("execution.sort-partition.memory", &arguments.sort_memory);
    let range_of = move |key: &i64, _: u32| bounds.partition_point(|bound| bound <= key) as u32;
    env.from_source("lineitem", TpchLineItemSource::new(arguments.scale_factor, files))
        .partition_custom(range_of, move |row| by.of(row))
        .full_window_partition()
        .sort_partition_by_field(by.field(), Order::Ascending)
        .set_parallelism(files)
        .sink_to(CsvSink::new("lineitem"));
}

/// A file and where its range begins; the first has all that is below the second.
pub type File = (PathBuf, Option<i64>);

pub fn run(arguments: Arguments) -> Result<Vec<File>, JobExecutionError> {
    let (files, output, of_sort) = (arguments.files.get(), arguments.output.clone(), arguments.clone());
    let sampled = revenant::runtime::run(move |env| {
        describe_sample(env, &arguments);
        Ok(())
    })?;
    let bounds = bounds(sampled.collected("sample")?, files);
    let of_files = bounds.clone();
    let program = Program::new().register("sort", "Sorts LINEITEM.", move |env, _| {
        describe_sort(env, &of_sort, bounds.clone());
        Ok(())
    });
    let result = MiniCluster::new(program).output(&output).run("sort")?;
    let begins = std::iter::once(None).chain(of_files.into_iter().map(Some));
    Ok(result.files()?.iter().map(|file| output.join(file)).zip(begins).collect())
}

fn main() {
    let arguments = Arguments::parse();
    let by = arguments.by;
    let files = run(arguments).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1)
    });
    for (file, begin) in files {
        let range = begin.map_or_else(String::new, |key| format!("  {} from {}", by.field(), by.show(key)));
        println!("{}{range}", file.display());
    }
}
