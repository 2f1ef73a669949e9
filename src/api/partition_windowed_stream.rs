//! Full-window partitions (FLIP-380): all records of each subtask, processed when the input has
//! ended or while it comes.

use crate::graph::NodeKind;
use crate::operators::{self, Head, Out, Records};

use super::{AggregateFunction, DataStream, FunctionError, Order, Record};

/// The records of each subtask as one window (Flink's class of this name). Its operators start a
/// task of their own and have the parallelism of the stream before, unless they say another.
pub struct PartitionWindowedStream<T> {
    stream: DataStream<T>,
}

impl<T: Record> PartitionWindowedStream<T> {
    pub(super) fn new(stream: DataStream<T>) -> Self {
        Self { stream }
    }

    fn window<U: Record>(&self, name: &str, head: Head) -> DataStream<U> {
        self.stream.operator(name, NodeKind::Window { head })
    }

    /// Runs `function` once for each subtask, also for one without records. It pulls records and
    /// pushes results as it likes; neither side is held in memory. An error fails the task.
    ///
    /// ```
    /// # use revenant::api::{JobError, Out, Records, StreamExecutionEnvironment};
    /// # use revenant::connectors::NumberSequenceSource;
    /// # let mut env = StreamExecutionEnvironment::new();
    /// let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 100, 4));
    /// let differences = numbers.full_window_partition().map_partition(
    ///     async |records: &mut Records<i64>, out: &Out<i64>| {
    ///         let Some(mut last) = records.next().await else { return Ok(()) };
    ///         while let Some(number) = records.next().await {
    ///             out.collect(number.checked_sub(last).ok_or("the difference is too large")?).await;
    ///             last = number;
    ///         }
    ///         Ok(())
    ///     },
    /// );
    /// ```
    pub fn map_partition<U: Record>(
        &self,
        function: impl AsyncFn(&mut Records<T>, &Out<U>) -> Result<(), FunctionError> + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.window("MapPartition", operators::map_partition(function))
    }

    /// The records of each subtask, ordered by `key_of`. Records with equal keys stay in the order of
    /// their arrival, in both directions.
    pub fn sort_partition<K: Ord + 'static>(
        &self,
        key_of: impl Fn(&T) -> K + Send + Sync + 'static,
        order: Order,
    ) -> DataStream<T> {
        self.window("SortPartition", operators::sort_partition(key_of, order))
    }

    /// One result for each subtask; for one without records, that of a new accumulator.
    pub fn aggregate<A: AggregateFunction<T>>(&self, function: A) -> DataStream<A::Output> {
        self.window("PartitionAggregate", operators::aggregate(function))
    }

    /// The records of each subtask folded into one, in the order of their arrival; nothing for a
    /// subtask without records.
    pub fn reduce(&self, function: impl Fn(T, T) -> T + Send + Sync + 'static) -> DataStream<T> {
        self.window("PartitionReduce", operators::reduce(function))
    }
}
