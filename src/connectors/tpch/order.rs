//! The table ORDERS.

use serde::{Deserialize, Serialize};
use tpchgen::generators::OrderGenerator;

use super::table::{Piece, Text, TpchTable, letter};
use crate::connectors::Date;

/// A row of ORDERS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// From 1, with gaps.
    pub orderkey: i64,
    pub custkey: i64,
    /// `O` open, `F` fulfilled, `P` partly so.
    pub orderstatus: char,
    /// In hundredths.
    pub totalprice: i64,
    pub orderdate: Date,
    pub orderpriority: String,
    pub clerk: String,
    pub shippriority: i32,
}

impl TpchTable for Order {
    const NAME: &'static str = "orders";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = OrderGenerator::new_with_distributions_and_text_pool(
            piece.scale_factor,
            piece.number,
            piece.count,
            text.distributions,
            &text.pool,
        );
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Order<'_>> for Order {
    fn from(row: tpchgen::generators::Order<'_>) -> Self {
        Self {
            orderkey: row.o_orderkey,
            custkey: row.o_custkey,
            orderstatus: letter(row.o_orderstatus.as_str()),
            totalprice: row.o_totalprice.0,
            orderdate: Date(row.o_orderdate.to_unix_epoch()),
            orderpriority: row.o_orderpriority.to_owned(),
            clerk: row.o_clerk.to_string(),
            shippriority: row.o_shippriority,
        }
    }
}
