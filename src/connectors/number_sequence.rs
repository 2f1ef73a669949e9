//! A source of whole numbers, mostly for tests (Flink's `NumberSequenceSource`).

use crate::api::FunctionError;
use crate::coordinator::SplitAssignment;
use crate::operators::Out;

use super::{Source, SourceReaderContext};

/// The numbers `from..to`, cut into `splits` pieces whose lengths differ by at most one; longer
/// pieces come first. Pieces may be empty.
///
/// ```
/// # use revenant::connectors::NumberSequenceSource;
/// # use revenant::coordinator::SplitAssignment;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let source = NumberSequenceSource::new(0, 5, 2).assigned(SplitAssignment::Static);
///     env.from_source("numbers", source).set_parallelism(2).print();
///     Ok(())
/// })?;
/// assert_eq!(result.printed(), ["1> 0", "1> 1", "1> 2", "2> 3", "2> 4"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NumberSequenceSource {
    from: i64,
    to: i64,
    splits: u32,
    assignment: SplitAssignment,
    batch_snapshots: bool,
}

impl NumberSequenceSource {
    /// `to` is not part of the sequence; no split, no number.
    pub const fn new(from: i64, to: i64, splits: u32) -> Self {
        Self { from, to, splits, assignment: SplitAssignment::Dynamic, batch_snapshots: true }
    }

    /// The same numbers, with the splits given to readers in this way.
    #[must_use]
    pub const fn assigned(self, assignment: SplitAssignment) -> Self {
        Self { assignment, ..self }
    }

    /// The same numbers from an enumerator whose state cannot be recorded.
    #[must_use]
    pub const fn without_batch_snapshots(self) -> Self {
        Self { batch_snapshots: false, ..self }
    }
}

impl Source for NumberSequenceSource {
    type Record = i64;
    /// First number and the one after the last.
    type Split = (i64, i64);

    fn splits(&self) -> Vec<(i64, i64)> {
        let count = (i128::from(self.to) - i128::from(self.from)).max(0);
        let (length, longer) =
            (count / i128::from(self.splits.max(1)), count % i128::from(self.splits.max(1)));
        let start = |i: u32| {
            let offset = i128::from(i) * length + i128::from(i).min(longer);
            (i128::from(self.from) + offset) as i64
        };
        (0..self.splits).map(|i| (start(i), start(i + 1))).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.assignment
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.batch_snapshots
    }

    async fn read(
        &self,
        (from, to): (i64, i64),
        _: &SourceReaderContext,
        out: &Out<i64>,
    ) -> Result<(), FunctionError> {
        for number in from..to {
            out.collect(number).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_splits_are_the_sequence_once_and_in_order() {
        for (from, to, splits) in [(0, 10, 3), (-5, 5, 4), (0, 2, 5), (3, 3, 2), (9, 1, 2), (0, 7, 7)] {
            let pieces = NumberSequenceSource::new(from, to, splits).splits();
            assert_eq!(pieces.len(), splits as usize);
            let numbers: Vec<i64> = pieces.iter().flat_map(|&(from, to)| from..to).collect();
            assert_eq!(numbers, (from..to).collect::<Vec<_>>());
            let lengths: Vec<i64> = pieces.iter().map(|(from, to)| to - from).collect();
            assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1, "{lengths:?}");
        }
    }

    #[test]
    fn all_whole_numbers_are_a_sequence() {
        let pieces = NumberSequenceSource::new(i64::MIN, i64::MAX, 2).splits();
        assert_eq!(pieces, [(i64::MIN, 0), (0, i64::MAX)]);
    }
}
