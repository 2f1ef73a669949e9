//! The rows of TPC-H LINEITEM, read from the generator without the engine's source, once per
//! scenario.

use tpchgen::distribution::Distributions;
use tpchgen::generators::LineItemGenerator;
use tpchgen::text::TextPool;

/// The columns that a job uses. Money in hundredths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub orderkey: i64,
    pub linenumber: i32,
    pub quantity: i64,
    pub extendedprice: i64,
    pub discount: i64,
    /// `yyyy-mm-dd`, which sorts as the dates do.
    pub shipdate: String,
}

/// The rows of each part of the table; part `n` is split `n - 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub parts: Vec<Vec<Row>>,
}

/// Comments, which no job reads, are cut from a pool of this size. That of the default pool takes
/// seconds to make.
const TEXT_POOL_BYTES: i32 = 64 << 10;

impl Table {
    pub fn generate(scale_factor: f64, parts: u32) -> Self {
        let pool = TextPool::new(TEXT_POOL_BYTES, Distributions::static_default());
        Self { parts: (1..=parts).map(|part| rows(scale_factor, part, parts, &pool)).collect() }
    }

    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.parts.iter().flatten()
    }

    /// The rows of splits, in the order of consumption.
    pub fn of_splits(&self, splits: &[u32]) -> Result<Vec<&Row>, String> {
        let mut rows = Vec::new();
        for &split in splits {
            let part = self.parts.get(split as usize).ok_or_else(|| format!("there is no split {split}"))?;
            rows.extend(part);
        }
        Ok(rows)
    }
}

/// The rows of one part, counted from 1.
fn rows(scale_factor: f64, part: u32, parts: u32, pool: &TextPool) -> Vec<Row> {
    let distributions = Distributions::static_default();
    let (part, parts) = (part.cast_signed(), parts.cast_signed());
    let rows = LineItemGenerator::new_with_distributions_and_text_pool(
        scale_factor,
        part,
        parts,
        distributions,
        pool,
    );
    let row = |row: tpchgen::generators::LineItem| Row {
        orderkey: row.l_orderkey,
        linenumber: row.l_linenumber,
        quantity: row.l_quantity,
        extendedprice: row.l_extendedprice.0,
        discount: row.l_discount.0,
        shipdate: row.l_shipdate.to_string(),
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_of_scale_factor_1_is_that_of_dbgen() {
        let pool = TextPool::new(TEXT_POOL_BYTES, Distributions::static_default());
        let first = rows(1.0, 1, 10_000, &pool).swap_remove(0);
        assert_eq!((first.orderkey, first.linenumber, first.quantity), (1, 1, 17));
        assert_eq!((first.extendedprice, first.discount), (2_116_823, 4));
        assert_eq!(first.shipdate, "1996-03-13");
    }

    #[test]
    fn the_parts_are_the_whole() {
        let whole = Table::generate(0.001, 1);
        let parts = Table::generate(0.001, 7);
        assert!(whole.rows().count() > 5000);
        assert!(whole.rows().eq(parts.rows()));
        assert_eq!(parts.of_splits(&[2, 0]).unwrap().len(), parts.parts[2].len() + parts.parts[0].len());
        assert!(parts.of_splits(&[7]).is_err());
    }
}
