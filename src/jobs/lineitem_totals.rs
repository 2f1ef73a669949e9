//! `lineitem-totals`: totals over line items of few pieces, twice: each partition's totals by
//! `aggregate`, and again by `reduce`; each branch sums them in one subtask. Both files must say the
//! same, except that without any row the aggregate says zero and the reduce says nothing.

use serde::{Deserialize, Serialize};

use crate::api::{AggregateFunction, DataStream, JobError, JobParameters, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, LineItem};

use super::line_items::{output_directory, small_line_items};

/// Counts and sums over some rows; a row of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Totals {
    rows: i64,
    /// Pieces.
    quantity: i64,
    /// In hundredths.
    extendedprice_hundredths: i64,
    /// Sum of the rows' discounts, in hundredths of the price.
    discount_hundredths: i64,
}

impl Totals {
    fn plus(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            quantity: self.quantity + other.quantity,
            extendedprice_hundredths: self.extendedprice_hundredths + other.extendedprice_hundredths,
            discount_hundredths: self.discount_hundredths + other.discount_hundredths,
        }
    }
}

impl From<LineItem> for Totals {
    fn from(row: LineItem) -> Self {
        Self {
            rows: 1,
            quantity: row.quantity,
            extendedprice_hundredths: row.extendedprice,
            discount_hundredths: row.discount,
        }
    }
}

/// Sums by value.
struct Sum;

impl AggregateFunction<Totals> for Sum {
    type Accumulator = Totals;
    type Output = Totals;

    fn create_accumulator(&self) -> Totals {
        Totals::default()
    }

    fn add(&self, value: Totals, accumulator: Totals) -> Totals {
        accumulator.plus(value)
    }

    fn get_result(&self, accumulator: Totals) -> Totals {
        accumulator
    }
}

pub(super) fn describe(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    let rows = small_line_items(env, job)?.map(Totals::from);
    let output = output_directory(job, "lineitem-totals")?;
    // In this order, so that each branch's vertices have ids next to each other.
    let aggregated = rows.full_window_partition().aggregate(Sum);
    sum_up(&aggregated, "SumAggregated", "aggregate", &output);
    let reduced = rows.full_window_partition().reduce(Totals::plus);
    sum_up(&reduced, "SumReduced", "reduce", &output);
    Ok(())
}

fn sum_up(partitions: &DataStream<Totals>, name: &str, branch: &str, output: &str) {
    let total = partitions.rebalance().full_window_partition().reduce(Totals::plus);
    let total = total.set_parallelism(1).name(name);
    total.sink_to(CsvSink::new(format!("{output}/{branch}"))).name(branch);
}
