//! What the tables have in common.

use std::sync::LazyLock;

use tpchgen::distribution::Distributions;
use tpchgen::text::TextPool;

use crate::api::Record;

/// A table of TPC-H: the type is that of its rows.
pub trait TpchTable: Record {
    /// As the specification has it, in small letters.
    const NAME: &'static str;

    /// Whether its rows depend on the scale factor. If not, it is not cut either.
    const SCALES: bool = true;

    /// The rows of a part, in order.
    fn rows(piece: Piece, text: &Text) -> impl Iterator<Item = Self>;
}

/// Part `number`, from 1, of `count` of a table.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub scale_factor: f64,
    pub number: i32,
    pub count: i32,
}

/// The words of the tables.
pub struct Text {
    pub distributions: &'static Distributions,
    pub pool: TextPool,
}

impl Text {
    /// Size in bytes of the pool from which comments are cut. The default is 300 MB, which takes
    /// seconds to make. The pool's size bounds where a comment begins, but neither how many random
    /// numbers that takes nor any other column, each of which has a stream of its own. It must be longer
    /// than any comment: that has at most 198 bytes.
    const POOL_BYTES: i32 = 4 << 10;

    /// As every source reads it. It is the same for all, and making it costs more than a small part of a table.
    pub fn standard() -> &'static Self {
        static STANDARD: LazyLock<Text> = LazyLock::new(|| Text::with_pool(Text::POOL_BYTES));
        &STANDARD
    }

    pub fn with_pool(bytes: i32) -> Self {
        let distributions = Distributions::static_default();
        Self { distributions, pool: TextPool::new(bytes, distributions) }
    }
}

/// The one letter of a flag.
pub(super) fn letter(text: &str) -> char {
    text.chars().next().unwrap_or(' ')
}
