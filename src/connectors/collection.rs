//! Records that are given with the job.

use crate::api::{FunctionError, Record};
use crate::coordinator::SplitAssignment;
use crate::operators::Out;

use super::{Source, SourceReaderContext};

/// The records of a list, in its order (what Flink's `fromCollection` reads). They are part of the job's
/// splits, and with these of its graph, so every process has to build the same list.
///
/// ```
/// # use revenant::connectors::CollectionSource;
/// # use revenant::coordinator::SplitAssignment;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let source = CollectionSource::new([1, 2, 3, 4, 5]).with_splits(2).assigned(SplitAssignment::Static);
///     let numbers = env.from_source("numbers", source).set_parallelism(2);
///     numbers.full_window_partition().reduce(|a, b| a + b).collect("sums");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("sums")?, [1 + 2 + 3, 4 + 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CollectionSource<T> {
    records: Vec<T>,
    splits: usize,
    assignment: SplitAssignment,
}

impl<T: Record + Send + Sync> CollectionSource<T> {
    /// One split, which static assignment gives to the first subtask.
    pub fn new(records: impl IntoIterator<Item = T>) -> Self {
        Self { records: records.into_iter().collect(), splits: 1, assignment: SplitAssignment::Static }
    }

    /// The same list, cut into pieces whose lengths differ by at most one; longer pieces come first. Of
    /// none is made one.
    #[must_use]
    pub fn with_splits(self, splits: usize) -> Self {
        Self { splits: splits.max(1), ..self }
    }

    /// The same records, with the splits given to readers in this way.
    #[must_use]
    pub fn assigned(self, assignment: SplitAssignment) -> Self {
        Self { assignment, ..self }
    }
}

impl<T: Record + Send + Sync> Source for CollectionSource<T> {
    type Record = T;
    type Split = Vec<T>;

    fn splits(&self) -> Vec<Vec<T>> {
        let (each, longer) = (self.records.len() / self.splits, self.records.len() % self.splits);
        let mut rest = self.records.as_slice();
        let piece = |piece| {
            let (records, others) = rest.split_at(each + usize::from(piece < longer));
            rest = others;
            records.to_vec()
        };
        (0..self.splits).map(piece).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.assignment
    }

    async fn read(
        &self,
        records: Vec<T>,
        _: &SourceReaderContext,
        out: &Out<T>,
    ) -> Result<(), FunctionError> {
        for record in records {
            out.collect(record).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::StreamExecutionEnvironment;
    use crate::connectors::CsvSink;
    use crate::operators::tests::{Cluster, row};

    #[test]
    fn the_splits_of_a_list_are_the_list_in_order() {
        for length in 0..12_u8 {
            let records: Vec<u8> = (0..length).collect();
            for count in 0..6 {
                let splits = CollectionSource::new(records.clone()).with_splits(count).splits();
                assert_eq!(splits.len(), count.max(1));
                assert_eq!(splits.concat(), records);
                let lengths = splits.iter().map(Vec::len);
                assert!(lengths.clone().max().unwrap() <= lengths.clone().min().unwrap() + 1);
                assert!(lengths.is_sorted_by(|a, b| a >= b));
            }
        }
    }

    #[test]
    fn a_job_reads_a_collection_in_one_subtask_and_in_order() {
        let numbers = [7_i64, -3, 7, 0];
        let job = move |env: &mut StreamExecutionEnvironment| {
            env.from_collection("numbers", numbers)
                .map(|number| row(number, ""))
                .sink_to(CsvSink::new("out"));
        };
        let outcome = Cluster::new(job).finish().unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(outcome.rows("out", 0), numbers.map(|number| format!("{number},")));
        assert_eq!(outcome.results.len(), 1);
    }

    #[test]
    fn another_list_is_another_job() {
        let fingerprint = |records: &[i64]| {
            let mut env = StreamExecutionEnvironment::new();
            env.from_collection("numbers", records.to_vec())
                .map(|number| row(number, ""))
                .sink_to(CsvSink::new("out"));
            env.job_graph("test").unwrap().fingerprint
        };
        assert_eq!(fingerprint(&[1, 2]), fingerprint(&[1, 2]));
        assert_ne!(fingerprint(&[1, 2]), fingerprint(&[2, 1]));
    }
}
