//! The largest orders: the k largest of each partition, and of those the k largest of all. No more than
//! k orders of a partition are ever in memory, and no more than that leaves it.
//!
//! ```console
//! $ cargo run --release --example top_k_per_partition -- --k 3 --scale-factor 0.1 --partitions 4
//! ```
//!
//! Prints the orders, the largest first, and how many orders came from the partitions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::process::exit;

use clap::Parser;
use revenant::api::{FunctionError, Out, Record, Records, StreamExecutionEnvironment};
use revenant::connectors::TpchSource;
use revenant::connectors::tpch::Order;
use revenant::runtime::JobExecutionError;
use serde::{Deserialize, Serialize};

/// The largest orders of TPC-H.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// How many orders are wanted.
    #[arg(long, default_value = "3")]
    k: NonZeroU32,
    /// Size of TPC-H's table ORDERS: at 1 it has 1.5 million rows.
    #[arg(long, default_value = "0.01")]
    scale_factor: f64,
    /// Partitions that look for their largest orders side by side.
    #[arg(long, default_value = "4")]
    partitions: NonZeroU32,
}

/// What is kept of an order. The order of the fields is that of the comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LargeOrder {
    /// In hundredths.
    pub totalprice: i64,
    pub orderkey: i64,
    pub custkey: i64,
}

pub fn describe(env: &mut StreamExecutionEnvironment, arguments: &Arguments) {
    let (k, partitions) = (arguments.k.get() as usize, arguments.partitions.get());
    let of_each = env
        .from_source("orders", TpchSource::<Order>::new(arguments.scale_factor, partitions))
        .map(|Order { totalprice, orderkey, custkey, .. }| LargeOrder { totalprice, orderkey, custkey })
        .rebalance()
        .full_window_partition()
        .map_partition(largest(k))
        .set_parallelism(partitions)
        .name("TopKOfPartition");
    of_each.collect("of-each-partition");
    of_each
        .full_window_partition()
        .map_partition(largest(k))
        .set_parallelism(1)
        .name("TopK")
        .collect("of-all");
}

/// The `k` largest records of a partition, the largest first.
fn largest<T: Record + Ord>(
    k: usize,
) -> impl AsyncFn(&mut Records<T>, &Out<T>) -> Result<(), FunctionError> + Send + Sync + 'static {
    async move |records: &mut Records<T>, out: &Out<T>| {
        let mut kept = BinaryHeap::new();
        while let Some(record) = records.next().await {
            kept.push(Reverse(record)); // So the smallest is on top.
            if kept.len() > k {
                kept.pop();
            }
        }
        for Reverse(record) in kept.into_sorted_vec() {
            out.collect(record).await;
        }
        Ok(())
    }
}

/// What the job found.
pub struct TopK {
    /// One partition's behind the other's.
    pub of_each_partition: Vec<LargeOrder>,
    pub of_all: Vec<LargeOrder>,
}

pub fn run(arguments: Arguments) -> Result<TopK, JobExecutionError> {
    let result = revenant::runtime::run(move |env| {
        describe(env, &arguments);
        Ok(())
    })?;
    let of_each_partition = result.collected("of-each-partition")?;
    Ok(TopK { of_each_partition, of_all: result.collected("of-all")? })
}

fn main() {
    let found = run(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1)
    });
    for LargeOrder { totalprice, orderkey, custkey } in &found.of_all {
        println!("{:>7}.{:02}  order {orderkey} of customer {custkey}", totalprice / 100, totalprice % 100);
    }
    println!("of {} that were the largest of their partition", found.of_each_partition.len());
}
