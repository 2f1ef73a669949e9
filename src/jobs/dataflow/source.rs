//! The source of a dataflow: rows that follow from their places, in splits whose assignment and
//! snapshots are as the plan says.

use serde::{Deserialize, Serialize};

use crate::api::{FunctionError, Out};
use crate::connectors::{Source, SourceReaderContext};
use crate::coordinator::SplitAssignment;

use super::row::Row;

/// What the plan says of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceOptions {
    /// Of all splits together.
    pub rows: u32,
    pub splits: u32,
    /// How many keys there can be.
    pub keys: u32,
    pub assignment: SplitAssignment,
    pub snapshots: bool,
}

/// The accumulator in which sources count their rows.
const ROWS_READ: &str = "rows-read";

/// `rows` rows, cut into `splits` pieces whose lengths differ by at most one; longer pieces come
/// first, and pieces may be empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSource {
    /// Which source of the plan, from 0.
    pub number: u32,
    pub options: SourceOptions,
}

/// A split and how many rows it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    split: u32,
    rows: u32,
}

impl Source for RowSource {
    type Record = Row;
    type Split = Piece;

    fn splits(&self) -> Vec<Piece> {
        let SourceOptions { rows, splits, .. } = self.options;
        let length = |split| rows / splits.max(1) + u32::from(split < rows % splits.max(1));
        (0..splits).map(|split| Piece { split, rows: length(split) }).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.options.assignment
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.options.snapshots
    }

    async fn read(&self, piece: Piece, _: &SourceReaderContext, out: &Out<Row>) -> Result<(), FunctionError> {
        for offset in 0..piece.rows {
            out.collect(Row::generate(self.number, piece.split, offset, self.options.keys.max(1))).await;
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
            let options = SourceOptions { rows, splits, keys: 3, assignment, snapshots };
            RowSource { number: 0, options }.splits().iter().map(|piece| piece.rows).collect()
        };
        assert_eq!(lengths(11, 4), [3, 3, 3, 2]);
        assert_eq!(lengths(2, 4), [1, 1, 0, 0]);
        assert_eq!(lengths(0, 2), [0, 0]);
    }
}
