//! `lineitem-by-ship-date`: line items of few pieces, sorted by their ship date.
//!
//! Source → filter (`quantity < quantity-below`) → by order → map to [`Shipment`] → rebalance → sort
//! of each partition by ship date, ascending → CSV. Rows of one day stay in the order in which they
//! reached the partition: the sort is stable and nothing else breaks ties.

use serde::{Deserialize, Serialize};

use crate::api::{JobError, JobParameters, Order, StreamExecutionEnvironment};
use crate::connectors::{CsvSink, Date, LineItem};

use super::line_items::{output_directory, small_line_items};
use super::parallelism;

/// A row of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shipment {
    orderkey: i64,
    linenumber: i32,
    shipdate: Date,
    /// Pieces.
    quantity: i64,
    /// In hundredths.
    extendedprice_hundredths: i64,
    /// Price after discount, in units of 1/10000: exact, since price and discount are hundredths.
    revenue_ten_thousandths: i64,
}

impl From<LineItem> for Shipment {
    fn from(row: LineItem) -> Self {
        Self {
            orderkey: row.orderkey,
            linenumber: row.linenumber,
            shipdate: row.shipdate,
            quantity: row.quantity,
            extendedprice_hundredths: row.extendedprice,
            revenue_ten_thousandths: row.extendedprice * (100 - row.discount),
        }
    }
}

pub(super) fn describe(env: &mut StreamExecutionEnvironment, job: &JobParameters) -> Result<(), JobError> {
    let rows = small_line_items(env, job)?;
    let mut shipments = rows.key_by(|row| row.orderkey).map(Shipment::from);
    if let Some(parallelism) = parallelism(job, "map-parallelism")? {
        shipments = shipments.set_parallelism(parallelism);
    }
    let mut sorted = shipments
        .rebalance()
        .full_window_partition()
        .sort_partition(|shipment| shipment.shipdate, Order::Ascending);
    if let Some(parallelism) = parallelism(job, "sort-parallelism")? {
        sorted = sorted.set_parallelism(parallelism);
    }
    sorted.sink_to(CsvSink::new(output_directory(job, "lineitem-by-ship-date")?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revenue_is_exact() {
        let row = LineItem {
            orderkey: 1,
            partkey: 155_190,
            suppkey: 7706,
            linenumber: 1,
            quantity: 17,
            extendedprice: 2_116_823,
            discount: 4,
            tax: 2,
            returnflag: 'N',
            linestatus: 'O',
            shipdate: Date(9568),
            commitdate: Date(9538),
            receiptdate: Date(9577),
            shipinstruct: String::new(),
            shipmode: String::new(),
        };
        // 21168.23 * 0.96 = 20321.5008
        assert_eq!(Shipment::from(row).revenue_ten_thousandths, 203_215_008);
    }
}
