//! The rows of a dataflow: made from where they stand in their source, and what each operation does
//! with one. A row keeps the identity that it was made with, so that an output says which row was
//! lost or doubled.

use serde::{Deserialize, Serialize};

/// A row; also of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    /// Which source stage of the plan, from 0.
    pub source: u32,
    pub split: u32,
    /// Position in the split, from 0.
    pub offset: u32,
    pub key: i64,
    pub value: i64,
    /// How many rows of sources it stands for.
    pub rows: u64,
}

/// The finalizer of SplitMix64 over `z` after one step: every bit of the result depends on every bit
/// of `z`.
const fn mix(z: u64) -> u64 {
    let z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Row {
    /// The row of this place: its key is below `keys` (at least 1), its value below 1000.
    pub(super) const fn generate(source: u32, split: u32, offset: u32, keys: u32) -> Self {
        let bits = mix(mix(source as u64) ^ ((split as u64) << 32 | offset as u64));
        let key = (bits % keys as u64).cast_signed();
        let value = (mix(bits) % 1000).cast_signed();
        Self { source, split, offset, key, value, rows: 1 }
    }

    /// The row of a line of text: its key is the number of its bytes modulo `keys` (at least 1); its value
    /// begins as 0 and is, for byte after byte, 31 times what it was plus the byte.
    pub(super) fn of_line(source: u32, line: &str, keys: u32) -> Self {
        let value =
            line.bytes().fold(0_i64, |value, byte| value.wrapping_mul(31).wrapping_add(i64::from(byte)));
        let key = (line.len() as u64 % u64::from(keys.max(1))).cast_signed();
        Self { source, split: 0, offset: 0, key, value, rows: 1 }
    }

    /// `map`: another value, from which nothing is lost.
    pub(super) const fn mapped(self) -> Self {
        Self { value: self.value.wrapping_mul(3).wrapping_add(self.key), ..self }
    }

    /// `filter` lets values through that 3 does not divide.
    pub(super) const fn is_kept(&self) -> bool {
        self.value % 3 != 0
    }

    /// `skew`: of four rows, about three have key 0.
    pub(super) const fn skewed(self) -> Self {
        if self.value % 4 == 0 { self } else { Self { key: 0, ..self } }
    }

    /// `join`: the row, given the sum of the first input's values of its key.
    pub(super) const fn joined(self, sum: i64) -> Self {
        Self { value: self.value.wrapping_add(sum), ..self }
    }

    /// `group`: two rows of one key. The smaller identity stays.
    pub(super) fn grouped(self, other: Self) -> Self {
        let identity = |row: &Self| (row.source, row.split, row.offset);
        let first = if identity(&other) < identity(&self) { other } else { self };
        Self {
            value: self.value.wrapping_add(other.value),
            rows: self.rows.wrapping_add(other.rows),
            ..first
        }
    }

    /// `reduce`: depends on the order.
    pub(super) const fn folded(self, next: Self) -> Self {
        Self {
            value: self.value.wrapping_mul(31).wrapping_add(next.value),
            rows: self.rows.wrapping_add(next.rows),
            ..self
        }
    }

    /// `count`: the row that counts no rows yet.
    pub(super) const NONE: Self = Self { source: 0, split: 0, offset: 0, key: 0, value: 0, rows: 0 };

    /// `count`: one row more. The value is the number of rows that came.
    pub(super) const fn counted(self, next: Self) -> Self {
        Self { value: self.value.wrapping_add(1), rows: self.rows.wrapping_add(next.rows), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(offset: u32, key: i64, value: i64) -> Row {
        Row { source: 1, split: 2, offset, key, value, rows: 1 }
    }

    /// The first output of SplitMix64 from state 0, as published.
    #[test]
    fn the_arithmetic_is_that_of_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn rows_of_different_places_differ_and_stay_within_their_bounds() {
        let mut keys = [0; 5];
        for (source, split, offset) in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)] {
            let row = Row::generate(source, split, offset, 1_000_000);
            assert_eq!((row.source, row.split, row.offset, row.rows), (source, split, offset, 1));
            for other in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)] {
                let other = Row::generate(other.0, other.1, other.2, 1_000_000);
                assert_eq!(row.key == other.key, row == other);
            }
        }
        for offset in 0..100 {
            let row = Row::generate(0, 0, offset, 5);
            assert!((0..1000).contains(&row.value));
            keys[row.key.cast_unsigned() as usize] += 1;
        }
        assert!(keys.iter().all(|&count| count > 5), "{keys:?}");
    }

    #[test]
    fn a_line_becomes_a_row_by_its_bytes() {
        let row = Row::of_line(2, "ab", 5);
        assert_eq!((row.source, row.key, row.value, row.rows), (2, 2, 97 * 31 + 98, 1));
        assert_eq!(Row::of_line(0, "", 1).value, 0);
        assert_eq!(Row::of_line(0, "abcdef", 4).key, 2);
    }

    #[test]
    fn what_each_operation_does_with_a_row() {
        assert_eq!(row(0, 4, 10).mapped(), row(0, 4, 34));
        assert!(row(0, 4, 34).is_kept() && row(0, 4, -1).is_kept() && !row(0, 4, -3).is_kept());
        assert_eq!(row(0, 4, 8).skewed(), row(0, 4, 8));
        assert_eq!(row(0, 4, 10).skewed(), row(0, 0, 10));
        assert_eq!(row(0, 4, 10).joined(-3), row(0, 4, 7));
        assert_eq!(row(3, 4, 10).grouped(row(1, 4, 5)), Row { rows: 2, ..row(1, 4, 15) });
        assert_eq!(row(1, 4, 10).grouped(row(3, 4, 5)), Row { rows: 2, ..row(1, 4, 15) });
        assert_eq!(row(3, 4, 10).folded(row(1, 4, 5)), Row { rows: 2, ..row(3, 4, 315) });
        assert_eq!(
            Row::NONE.counted(row(3, 4, 10)).counted(row(1, 4, 5)),
            Row { value: 2, rows: 2, ..Row::NONE }
        );
    }
}
