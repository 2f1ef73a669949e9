//! The table PART.

use serde::{Deserialize, Serialize};
use tpchgen::generators::PartGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of PART.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// From 1.
    pub partkey: i64,
    pub name: String,
    pub mfgr: String,
    pub brand: String,
    pub r#type: String,
    pub size: i32,
    pub container: String,
    /// In hundredths.
    pub retailprice: i64,
}

impl TpchTable for Part {
    const NAME: &'static str = "part";

    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = PartGenerator::new_with_distributions_and_text_pool(
            piece.scale_factor,
            piece.number,
            piece.count,
            text.distributions,
            &text.pool,
        );
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Part<'_>> for Part {
    fn from(row: tpchgen::generators::Part<'_>) -> Self {
        Self {
            partkey: row.p_partkey,
            name: row.p_name.to_string(),
            mfgr: row.p_mfgr.to_string(),
            brand: row.p_brand.to_string(),
            r#type: row.p_type.to_owned(),
            size: row.p_size,
            container: row.p_container.to_owned(),
            retailprice: row.p_retailprice.0,
        }
    }
}
