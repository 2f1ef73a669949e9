//! The source of a dataflow that needs nothing: rows that follow from their places, in splits whose
//! assignment and snapshots are as the plan says.

use serde::{Deserialize, Serialize};

use crate::api::{FunctionError, Out};
use crate::connectors::{Source, SourceReaderContext};
use crate::coordinator::SplitAssignment;

use super::lineage::{Keeps, RecordId};
use super::row::Row;
use super::source::Places;

/// The accumulator in which sources count their rows.
const ROWS_READ: &str = "rows-read";

/// `rows` rows, cut into `splits` pieces whose lengths differ by at most one; longer pieces come
/// first, and pieces may be empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSource {
    /// Which source of the plan, from 0.
    pub number: u32,
    pub places: Places,
    pub assignment: SplitAssignment,
    pub snapshots: bool,
    pub keeps: Keeps,
}

/// A split and how many rows it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    split: u32,
    rows: u32,
}

impl RowSource {
    pub(super) fn rows_of(self, piece: Piece) -> impl Iterator<Item = Row> {
        let keys = self.places.keys.max(1);
        let id = move |offset| RecordId { source: self.number, split: piece.split, offset };
        (0..piece.rows).map(move |offset| Row::generate(id(offset), keys, self.keeps))
    }
}

impl Source for RowSource {
    type Record = Row;
    type Split = Piece;

    fn splits(&self) -> Vec<Piece> {
        let Places { rows, splits, .. } = self.places;
        let length = |split| rows / splits.max(1) + u32::from(split < rows % splits.max(1));
        (0..splits).map(|split| Piece { split, rows: length(split) }).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.assignment
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.snapshots
    }

    async fn read(&self, piece: Piece, _: &SourceReaderContext, out: &Out<Row>) -> Result<(), FunctionError> {
        for row in self.rows_of(piece) {
            out.collect(row).await;
        }
        out.add_to_accumulator(ROWS_READ, i64::from(piece.rows));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_pieces_come_first_and_all_together_have_the_rows() {
        let lengths = |rows, splits| -> Vec<u32> {
            let (assignment, snapshots) = (SplitAssignment::Static, true);
            let places = Places { rows, splits, keys: 3 };
            RowSource { number: 0, places, assignment, snapshots, keeps: Keeps::Hash }
                .splits()
                .iter()
                .map(|piece| piece.rows)
                .collect()
        };
        assert_eq!(lengths(11, 4), [3, 3, 3, 2]);
        assert_eq!(lengths(2, 4), [1, 1, 0, 0]);
        assert_eq!(lengths(0, 2), [0, 0]);
    }
}
