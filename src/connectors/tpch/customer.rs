//! The table CUSTOMER.

use serde::{Deserialize, Serialize};
use tpchgen::generators::CustomerGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of CUSTOMER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// From 1.
    pub custkey: i64,
    pub name: String,
    pub address: String,
    pub nationkey: i64,
    pub phone: String,
    /// In hundredths; may be negative.
    pub acctbal: i64,
    pub mktsegment: String,
}

impl TpchTable for Customer {
    const NAME: &'static str = "customer";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = CustomerGenerator::new_with_distributions_and_text_pool(
            piece.scale_factor,
            piece.number,
            piece.count,
            text.distributions,
            &text.pool,
        );
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Customer<'_>> for Customer {
    fn from(row: tpchgen::generators::Customer<'_>) -> Self {
        Self {
            custkey: row.c_custkey,
            name: row.c_name.to_string(),
            address: row.c_address.to_string(),
            nationkey: row.c_nationkey,
            phone: row.c_phone.to_string(),
            acctbal: row.c_acctbal.0,
            mktsegment: row.c_mktsegment.to_owned(),
        }
    }
}
