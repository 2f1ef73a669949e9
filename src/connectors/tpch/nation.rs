//! The table NATION.

use serde::{Deserialize, Serialize};
use tpchgen::generators::NationGenerator;

use super::table::{Piece, Text, TpchTable};

/// A row of NATION.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nation {
    /// From 0.
    pub nationkey: i64,
    pub name: String,
    pub regionkey: i64,
}

impl TpchTable for Nation {
    const NAME: &'static str = "nation";
    const SCALES: bool = false;

    fn rows(_: Piece, text: &Text) -> impl Iterator<Item = Self> {
        let generator = NationGenerator::new_with_distributions_and_text_pool(text.distributions, &text.pool);
        generator.iter().map(Self::from)
    }
}

impl From<tpchgen::generators::Nation<'_>> for Nation {
    fn from(row: tpchgen::generators::Nation<'_>) -> Self {
        Self { nationkey: row.n_nationkey, name: row.n_name.to_owned(), regionkey: row.n_regionkey }
    }
}
