//! The table PARTSUPP.

use serde::{Deserialize, Serialize};
use tpchgen::generators::PartSuppGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of PARTSUPP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartSupp {
    pub partkey: i64,
    pub suppkey: i64,
    pub availqty: i32,
    /// In hundredths.
    pub supplycost: i64,
}

impl TpchTable for PartSupp {
    const NAME: &'static str = "partsupp";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator =
            PartSuppGenerator::new_with_text_pool(piece.scale_factor, piece.number, piece.count, &text.pool);
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::PartSupp<'_>> for PartSupp {
    fn from(row: tpchgen::generators::PartSupp<'_>) -> Self {
        Self {
            partkey: row.ps_partkey,
            suppkey: row.ps_suppkey,
            availqty: row.ps_availqty,
            supplycost: row.ps_supplycost.0,
        }
    }
}
