//! The operators that are measured, as a job describes them.

use revenant::api::{AggregateFunction, DataStream, Order, Out, Records, StreamExecutionEnvironment};
use revenant::connectors::{Sink, SinkWriter, Source, SourceReaderContext};
use revenant::coordinator::SplitAssignment;
use revenant::operators::OperatorContext;
use revenant::task::BodyError;

use crate::records::{Digest, Measured};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    MapPartition,
    SortPartition,
    /// With memory for a part of the records.
    SpillingSortPartition,
    Aggregate,
    Reduce,
}

/// `map_partition` makes one of so many.
pub const BLOCK: usize = 16;

impl Operator {
    pub const ALL: [Self; 5] =
        [Self::MapPartition, Self::SortPartition, Self::SpillingSortPartition, Self::Aggregate, Self::Reduce];

    pub const fn name(self) -> &'static str {
        match self {
            Self::MapPartition => "map_partition",
            Self::SortPartition => "sort_partition in memory",
            Self::SpillingSortPartition => "sort_partition spilling",
            Self::Aggregate => "aggregate",
            Self::Reduce => "reduce",
        }
    }

    fn of<T: Measured>(self, records: &DataStream<T>) -> DataStream<T> {
        let partition = records.full_window_partition();
        match self {
            Self::MapPartition => partition.map_partition(async |records: &mut Records<T>, out: &Out<T>| {
                while let Some(mut block) = records.next().await {
                    for _ in 1..BLOCK {
                        let Some(next) = records.next().await else { break };
                        block = block.merged(next);
                    }
                    out.collect(block).await;
                }
                Ok(())
            }),
            Self::SortPartition | Self::SpillingSortPartition => {
                partition.sort_partition(T::key, Order::Ascending)
            }
            Self::Aggregate => partition.aggregate(Merged),
            Self::Reduce => partition.reduce(T::merged),
        }
    }
}

struct Merged;

impl<T: Measured> AggregateFunction<T> for Merged {
    type Accumulator = Option<T>;
    type Output = T;

    fn create_accumulator(&self) -> Option<T> {
        None
    }

    fn add(&self, record: T, merged: Option<T>) -> Option<T> {
        Some(match merged {
            Some(merged) => merged.merged(record),
            None => record,
        })
    }

    fn get_result(&self, merged: Option<T>) -> T {
        merged.unwrap_or_else(|| T::new(0))
    }
}

/// The accumulator that has the sum of the subtasks' digests.
pub const DIGEST: &str = "digest";

/// `records` in `parallelism` subtasks, through the operator, into a digest.
pub fn describe<T: Measured>(
    env: &mut StreamExecutionEnvironment,
    operator: Operator,
    records: u64,
    parallelism: u32,
) {
    let source = Numbers { records, splits: parallelism, record: std::marker::PhantomData::<fn() -> T> };
    let stream = env.from_source("records", source).set_parallelism(parallelism);
    operator.of(&stream).sink_to(DigestSink);
}

/// Records by number, in one split for each subtask.
struct Numbers<T> {
    records: u64,
    splits: u32,
    record: std::marker::PhantomData<fn() -> T>,
}

/// The numbers of one subtask's records.
pub fn numbers_of(subtask: u32, records: u64, parallelism: u32) -> std::ops::Range<u64> {
    let each = records / u64::from(parallelism);
    u64::from(subtask) * each..(u64::from(subtask) + 1) * each
}

impl<T: Measured> Source for Numbers<T> {
    type Record = T;
    type Split = u32;

    fn splits(&self) -> Vec<u32> {
        (0..self.splits).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        SplitAssignment::Static
    }

    async fn read(
        &self,
        split: u32,
        _: &SourceReaderContext,
        out: &Out<T>,
    ) -> Result<(), revenant::api::FunctionError> {
        for number in numbers_of(split, self.records, self.splits) {
            out.collect(T::new(number)).await;
        }
        Ok(())
    }
}

/// Keeps nothing of its records but a digest.
struct DigestSink;

struct DigestWriter {
    context: OperatorContext,
    digest: Digest,
}

impl<T: Measured> Sink<T> for DigestSink {
    type Writer = DigestWriter;

    fn name(&self) -> String {
        DIGEST.to_owned()
    }

    fn target(&self) -> Result<String, String> {
        Ok(DIGEST.to_owned())
    }

    fn writer(&self, context: &OperatorContext) -> DigestWriter {
        DigestWriter { context: context.clone(), digest: Digest::default() }
    }
}

impl<T: Measured> SinkWriter<T> for DigestWriter {
    fn write(&mut self, record: T) -> Result<usize, BodyError> {
        self.digest.add(&record);
        Ok(0)
    }

    async fn flush(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), BodyError> {
        self.context.task().add_to_accumulator(DIGEST, self.digest.value());
        Ok(())
    }
}
