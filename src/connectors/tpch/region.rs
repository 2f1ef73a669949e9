//! The table REGION.

use serde::{Deserialize, Serialize};
use tpchgen::generators::RegionGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of REGION.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// From 0.
    pub regionkey: i64,
    pub name: String,
}

impl TpchTable for Region {
    const NAME: &'static str = "region";
    const SCALES: bool = false;

    fn rows(_: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = RegionGenerator::new_with_distributions_and_text_pool(text.distributions, &text.pool);
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Region<'_>> for Region {
    fn from(row: tpchgen::generators::Region<'_>) -> Self {
        Self { regionkey: row.r_regionkey, name: row.r_name.to_owned() }
    }
}
