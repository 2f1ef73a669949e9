//! The table LINEITEM.

use serde::{Deserialize, Serialize};
use tpchgen::generators::LineItemGenerator;

use super::table::{Piece, Text, TpchTable, letter};
use crate::connectors::Date;

/// A row of LINEITEM.
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

impl TpchTable for LineItem {
    const NAME: &'static str = "lineitem";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = LineItemGenerator::new_with_distributions_and_text_pool(
            piece.scale_factor,
            piece.number,
            piece.count,
            text.distributions,
            &text.pool,
        );
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::LineItem<'_>> for LineItem {
    fn from(row: tpchgen::generators::LineItem<'_>) -> Self {
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
