//! The rows of a dataflow: made from where they stand in their source, and what each operation does
//! with one. A row keeps the identity that it was made with, and of which records of sources it is made,
//! so that an output says which record was lost or doubled.

use serde::{Deserialize, Serialize};

use super::lineage::{Keeps, Lineage, RecordId, mix};

/// A row; also of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub lineage: Lineage,
}

/// A row of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileRow {
    source: u32,
    split: u32,
    offset: u32,
    key: i64,
    value: i64,
    rows: u64,
}

impl FileRow {
    pub(super) fn row(self, keeps: Keeps) -> Row {
        let Self { source, split, offset, key, value, rows } = self;
        let lineage = Lineage::of(RecordId { source, split, offset }, keeps);
        Row { source, split, offset, key, value, rows, lineage }
    }
}

impl Row {
    /// The row of this place: its key is below `keys` (at least 1), its value below 1000.
    pub(super) fn generate(id: RecordId, keys: u32, keeps: Keeps) -> Self {
        let RecordId { source, split, offset } = id;
        let bits = id.hash();
        let key = (bits % u64::from(keys)).cast_signed();
        let value = (mix(bits) % 1000).cast_signed();
        Self { source, split, offset, key, value, rows: 1, lineage: Lineage::of(id, keeps) }
    }

    /// The row of a line of text: its key is the number of its bytes modulo `keys` (at least 1); its value
    /// begins as 0 and is, for byte after byte, 31 times what it was plus the byte.
    pub(super) fn of_line(id: RecordId, line: &str, keys: u32, keeps: Keeps) -> Self {
        let RecordId { source, split, offset } = id;
        let value =
            line.bytes().fold(0_i64, |value, byte| value.wrapping_mul(31).wrapping_add(i64::from(byte)));
        let key = (line.len() as u64 % u64::from(keys.max(1))).cast_signed();
        Self { source, split, offset, key, value, rows: 1, lineage: Lineage::of(id, keeps) }
    }

    /// `map`: another value, from which nothing is lost.
    pub(super) fn mapped(self) -> Self {
        Self { value: self.value.wrapping_mul(3).wrapping_add(self.key), ..self }
    }

    /// `filter` lets values through that 3 does not divide.
    pub(super) const fn is_kept(&self) -> bool {
        self.value % 3 != 0
    }

    /// `skew`: of four rows, about three have key 0.
    pub(super) fn skewed(self) -> Self {
        if self.value % 4 == 0 { self } else { Self { key: 0, ..self } }
    }

    /// `join`: the row, given the sum of the first input's values of its key and what that is made of.
    pub(super) fn joined(mut self, (sum, lineage): &(i64, Lineage)) -> Self {
        self.value = self.value.wrapping_add(*sum);
        self.lineage.add(lineage);
        self
    }

    /// `group`: two rows of one key. The smaller identity stays.
    pub(super) fn group(&mut self, other: &Self) {
        let identity = |row: &Self| (row.source, row.split, row.offset);
        if identity(other) < identity(self) {
            (self.source, self.split, self.offset) = identity(other);
        }
        self.value = self.value.wrapping_add(other.value);
        self.add(other);
    }

    /// `reduce`: depends on the order.
    pub(super) fn folded(mut self, next: Self) -> Self {
        self.value = self.value.wrapping_mul(31).wrapping_add(next.value);
        self.add(&next);
        self
    }

    /// `count`: the row that counts no rows yet.
    pub(super) const fn none(keeps: Keeps) -> Self {
        let lineage = Lineage::none(keeps);
        Self { source: 0, split: 0, offset: 0, key: 0, value: 0, rows: 0, lineage }
    }

    /// `count`: one row more. The value is the number of rows that came.
    pub(super) fn counted(mut self, next: &Self) -> Self {
        self.value = self.value.wrapping_add(1);
        self.add(next);
        self
    }

    /// It stands for what the other stands for, too.
    fn add(&mut self, other: &Self) {
        self.rows = self.rows.wrapping_add(other.rows);
        self.lineage.add(&other.lineage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(offset: u32) -> RecordId {
        RecordId { source: 1, split: 2, offset }
    }

    fn row(offset: u32, key: i64, value: i64) -> Row {
        let lineage = Lineage::of(id(offset), Keeps::Ids);
        Row { source: 1, split: 2, offset, key, value, rows: 1, lineage }
    }

    /// Of both.
    fn both(row: Row, other: &Row) -> Row {
        let mut lineage = row.lineage.clone();
        lineage.add(&other.lineage);
        Row { rows: 2, lineage, ..row }
    }

    fn generate((source, split, offset): (u32, u32, u32), keys: u32) -> Row {
        Row::generate(RecordId { source, split, offset }, keys, Keeps::Ids)
    }

    #[test]
    fn rows_of_different_places_differ_and_stay_within_their_bounds() {
        let mut keys = [0; 5];
        for (source, split, offset) in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)] {
            let row = generate((source, split, offset), 1_000_000);
            assert_eq!((row.source, row.split, row.offset, row.rows), (source, split, offset, 1));
            assert_eq!(row.lineage.to_string(), format!("{source}.{split}.{offset}"));
            for other in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)] {
                let other = generate(other, 1_000_000);
                assert_eq!(row.key == other.key, row == other);
            }
        }
        for offset in 0..100 {
            let row = generate((0, 0, offset), 5);
            assert!((0..1000).contains(&row.value));
            keys[row.key.cast_unsigned() as usize] += 1;
        }
        assert!(keys.iter().all(|&count| count > 5), "{keys:?}");
    }

    #[test]
    fn a_line_becomes_a_row_by_its_bytes() {
        let of_line = |line: &str, keys| Row::of_line(id(7), line, keys, Keeps::Ids);
        assert_eq!(of_line("ab", 5), row(7, 2, 97 * 31 + 98));
        assert_eq!(of_line("", 1).value, 0);
        assert_eq!(of_line("abcdef", 4).key, 2);
    }

    #[test]
    fn what_each_operation_does_with_a_row() {
        assert_eq!(row(0, 4, 10).mapped(), row(0, 4, 34));
        assert!(row(0, 4, 34).is_kept() && row(0, 4, -1).is_kept() && !row(0, 4, -3).is_kept());
        assert_eq!(row(0, 4, 8).skewed(), row(0, 4, 8));
        assert_eq!(row(0, 4, 10).skewed(), row(0, 0, 10));
        let three = row(3, 4, 10);
        let one = row(1, 4, 5);
        assert_eq!(
            row(0, 4, 10).joined(&(-3, one.lineage.clone())),
            Row { rows: 1, ..both(row(0, 4, 7), &one) }
        );
        let grouped = |mut row: Row, other: &Row| {
            row.group(other);
            row
        };
        assert_eq!(grouped(three.clone(), &one), both(row(1, 4, 15), &three));
        assert_eq!(grouped(row(1, 4, 10), &row(3, 4, 5)), both(row(1, 4, 15), &three));
        assert_eq!(three.clone().folded(one.clone()), both(row(3, 4, 315), &one));
        let none = Row::none(Keeps::Ids);
        let lineage = both(three.clone(), &one).lineage;
        assert_eq!(none.clone().counted(&three).counted(&one), Row { value: 2, rows: 2, lineage, ..none });
    }
}
