//! The TPC-H table LINEITEM, generated: one split for each part of the table, as dbgen cuts it.
//! The comment column is left out; all others are those of dbgen.

use serde::{Deserialize, Serialize};
use tpchgen::distribution::Distributions;
use tpchgen::generators::LineItemGenerator;
use tpchgen::text::TextPool;

use crate::api::FunctionError;
use crate::operators::Out;

use super::{Date, Source, SourceReaderContext};

/// A row of LINEITEM. Columns are those of the TPC-H specification without their prefix `l_`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineItem {
    pub orderkey: i64,
    pub partkey: i64,
    pub suppkey: i64,
    /// Position in the order, from 1.
    pub linenumber: i32,
    /// Pieces.
    pub quantity: i64,
    /// In hundredths.
    pub extendedprice: i64,
    /// In hundredths of the price.
    pub discount: i64,
    /// In hundredths of the discounted price.
    pub tax: i64,
    /// `R` returned, `A` accepted, `N` neither.
    pub returnflag: char,
    /// `O` open, `F` fulfilled.
    pub linestatus: char,
    pub shipdate: Date,
    pub commitdate: Date,
    pub receiptdate: Date,
    pub shipinstruct: String,
    pub shipmode: String,
}

/// LINEITEM at a scale factor, in `parts` splits.
#[derive(Clone, Copy, Debug)]
pub struct TpchLineItemSource {
    scale_factor: f64,
    parts: u32,
}

impl TpchLineItemSource {
    /// Below, the table of suppliers would be empty.
    pub const MIN_SCALE_FACTOR: f64 = 0.0001;
    pub const MAX_SCALE_FACTOR: f64 = 1000.0;
    pub const MAX_PARTS: u32 = 10_000;

    /// Size in bytes of the pool from which comments are cut. The default is 300 MB, which takes
    /// seconds to make. The pool's size bounds where a comment begins, but neither how many random
    /// numbers that takes nor any other column, each of which has a stream of its own.
    const TEXT_POOL_BYTES: i32 = 4 << 10;

    /// Scale factor 1 has about 6 million rows. Values out of range are moved into it:
    /// [`Self::MIN_SCALE_FACTOR`] to [`Self::MAX_SCALE_FACTOR`], 1 to [`Self::MAX_PARTS`].
    pub const fn new(scale_factor: f64, parts: u32) -> Self {
        let scale_factor = if scale_factor >= Self::MIN_SCALE_FACTOR {
            scale_factor.min(Self::MAX_SCALE_FACTOR)
        } else {
            Self::MIN_SCALE_FACTOR
        };
        let parts = if parts == 0 {
            1
        } else if parts > Self::MAX_PARTS {
            Self::MAX_PARTS
        } else {
            parts
        };
        Self { scale_factor, parts }
    }
}

impl Source for TpchLineItemSource {
    type Record = LineItem;
    /// The part, from 1.
    type Split = u32;

    fn splits(&self) -> Vec<u32> {
        (1..=self.parts).collect()
    }

    async fn read(
        &self,
        part: u32,
        _: &SourceReaderContext,
        out: &Out<LineItem>,
    ) -> Result<(), FunctionError> {
        if part == 0 || part > self.parts {
            return Err(format!("there is no part {part} of {}", self.parts).into());
        }
        let distributions = Distributions::static_default();
        let pool = TextPool::new(Self::TEXT_POOL_BYTES, distributions);
        for row in self.generator(part, distributions, &pool).iter() {
            out.collect(LineItem::from(row)).await;
        }
        Ok(())
    }
}

impl TpchLineItemSource {
    fn generator<'a>(
        &self,
        part: u32,
        distributions: &'a Distributions,
        pool: &'a TextPool,
    ) -> LineItemGenerator<'a> {
        LineItemGenerator::new_with_distributions_and_text_pool(
            self.scale_factor,
            part.cast_signed(),
            self.parts.cast_signed(),
            distributions,
            pool,
        )
    }
}

impl From<tpchgen::generators::LineItem<'_>> for LineItem {
    fn from(row: tpchgen::generators::LineItem<'_>) -> Self {
        // Both flags are one letter.
        let letter = |text: &str| text.chars().next().unwrap_or(' ');
        Self {
            orderkey: row.l_orderkey,
            partkey: row.l_partkey,
            suppkey: row.l_suppkey,
            linenumber: row.l_linenumber,
            quantity: row.l_quantity,
            extendedprice: row.l_extendedprice.0,
            discount: row.l_discount.0,
            tax: row.l_tax.0,
            returnflag: letter(row.l_returnflag),
            linestatus: letter(row.l_linestatus),
            shipdate: Date(row.l_shipdate.to_unix_epoch()),
            commitdate: Date(row.l_commitdate.to_unix_epoch()),
            receiptdate: Date(row.l_receiptdate.to_unix_epoch()),
            shipinstruct: row.l_shipinstruct.to_owned(),
            shipmode: row.l_shipmode.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(source: TpchLineItemSource, part: u32, pool_bytes: i32) -> Vec<LineItem> {
        let distributions = Distributions::static_default();
        let pool = TextPool::new(pool_bytes, distributions);
        source.generator(part, distributions, &pool).iter().map(LineItem::from).collect()
    }

    fn first_rows_of_scale_factor_1(count: usize) -> Vec<LineItem> {
        let distributions = Distributions::static_default();
        let pool = TextPool::new(TpchLineItemSource::TEXT_POOL_BYTES, distributions);
        TpchLineItemSource::new(1.0, 100)
            .generator(1, distributions, &pool)
            .iter()
            .take(count)
            .map(LineItem::from)
            .collect()
    }

    /// The row that every listing of dbgen's output begins with.
    #[test]
    fn the_first_row_of_scale_factor_1_is_that_of_dbgen() {
        let expected = LineItem {
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
            shipdate: "1996-03-13".parse().unwrap(),
            commitdate: "1996-02-12".parse().unwrap(),
            receiptdate: "1996-03-22".parse().unwrap(),
            shipinstruct: "DELIVER IN PERSON".to_owned(),
            shipmode: "TRUCK".to_owned(),
        };
        assert_eq!(first_rows_of_scale_factor_1(1), [expected]);
    }

    #[test]
    fn the_parts_of_a_table_are_the_table() {
        let whole = rows(TpchLineItemSource::new(0.001, 1), 1, TpchLineItemSource::TEXT_POOL_BYTES);
        assert!(whole.len() > 5000);
        let source = TpchLineItemSource::new(0.001, 7);
        let parts: Vec<LineItem> = source
            .splits()
            .into_iter()
            .flat_map(|part| rows(source, part, TpchLineItemSource::TEXT_POOL_BYTES))
            .collect();
        assert_eq!(parts, whole);
    }

    #[test]
    fn no_column_depends_on_the_size_of_the_text_pool() {
        let source = TpchLineItemSource::new(0.001, 3);
        let small = rows(source, 2, TpchLineItemSource::TEXT_POOL_BYTES);
        assert_eq!(small, rows(source, 2, 1 << 20));
        assert_eq!(small, rows(source, 2, 77));
    }

    /// Takes seconds: the default pool has 300 MB.
    #[test]
    #[ignore = "slow: makes the text pool of 300 MB"]
    fn the_columns_are_those_of_the_default_generator() {
        let source = TpchLineItemSource::new(0.001, 1);
        let default: Vec<LineItem> = LineItemGenerator::new(0.001, 1, 1).iter().map(LineItem::from).collect();
        assert_eq!(rows(source, 1, TpchLineItemSource::TEXT_POOL_BYTES), default);
    }

    #[test]
    fn the_smallest_table_and_more_parts_than_orders_have_rows() {
        for parts in [1, 10_000] {
            let source = TpchLineItemSource::new(TpchLineItemSource::MIN_SCALE_FACTOR, parts);
            let last = rows(source, parts, TpchLineItemSource::TEXT_POOL_BYTES);
            assert!(!last.is_empty());
        }
    }
}
