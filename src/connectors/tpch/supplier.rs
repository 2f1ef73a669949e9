//! The table SUPPLIER.

use serde::{Deserialize, Serialize};
use tpchgen::generators::SupplierGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of SUPPLIER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supplier {
    /// From 1.
    pub suppkey: i64,
    pub name: String,
    pub address: String,
    pub nationkey: i64,
    pub phone: String,
    /// In hundredths; may be negative.
    pub acctbal: i64,
}

impl TpchTable for Supplier {
    const NAME: &'static str = "supplier";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = SupplierGenerator::new_with_distributions_and_text_pool(
            piece.scale_factor,
            piece.number,
            piece.count,
            text.distributions,
            &text.pool,
        );
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Supplier> for Supplier {
    fn from(row: tpchgen::generators::Supplier) -> Self {
        Self {
            suppkey: row.s_suppkey,
            name: row.s_name.to_string(),
            address: row.s_address.to_string(),
            nationkey: row.s_nationkey,
            phone: row.s_phone.to_string(),
            acctbal: row.s_acctbal.0,
        }
    }
}
