//! Functions with a life of their own in each subtask: they are opened, may keep what they like from
//! record to record, and are closed (Flink's `RichFunction`s).

use std::future::Future;

use crate::operators::{OperatorContext, Out, Records};

use super::{FunctionError, Record};

/// Where a function runs (Flink's interface of this name).
#[derive(Clone, Debug)]
pub struct RuntimeContext {
    operator: OperatorContext,
}

impl RuntimeContext {
    pub(crate) fn new(operator: &OperatorContext) -> Self {
        Self { operator: operator.clone() }
    }

    /// The name of the operator.
    pub fn operator_name(&self) -> &str {
        self.operator.operator()
    }

    /// From 0.
    pub fn index_of_this_subtask(&self) -> u32 {
        self.operator.task().subtask()
    }

    /// Of the operator.
    pub fn number_of_parallel_subtasks(&self) -> u32 {
        self.operator.task().parallelism()
    }

    /// From 1. An attempt of a later JobManager begins anew at 1.
    pub fn attempt_number(&self) -> u32 {
        self.operator.task().attempt().number
    }

    /// Adds to a sum of the whole job (Flink's LongCounter). It counts when this attempt is accepted as
    /// its subtask's finish, and then once, whatever is lost and recovered afterwards.
    pub fn add_to_accumulator(&self, name: &str, value: i64) {
        self.operator.task().add_to_accumulator(name, value);
    }
}

/// What all rich functions have. Each subtask of each attempt works on a clone of its own.
pub trait RichFunction: Clone + Send + Sync + 'static {
    /// Before the first record. An error fails the task.
    fn open(&mut self, _context: &RuntimeContext) -> Result<(), FunctionError> {
        Ok(())
    }

    /// After the last record, and also when the task fails or is stopped, if it was opened. An error
    /// fails the task if nothing else has.
    fn close(&mut self) -> Result<(), FunctionError> {
        Ok(())
    }
}

/// One result for each record.
pub trait RichMapFunction<T>: RichFunction {
    type Output: Record;

    fn map(&mut self, record: T) -> Result<Self::Output, FunctionError>;
}

/// Which records go on.
pub trait RichFilterFunction<T>: RichFunction {
    fn filter(&mut self, record: &T) -> Result<bool, FunctionError>;
}

/// Any number of results for each record.
pub trait RichFlatMapFunction<T>: RichFunction {
    type Output: Record;

    fn flat_map(&mut self, record: T, collect: &mut dyn FnMut(Self::Output)) -> Result<(), FunctionError>;
}

/// Any number of results for each full-window partition. One function has all partitions of a
/// subtask, one after the other.
pub trait RichMapPartitionFunction<T>: RichFunction {
    type Output: Record;

    fn map_partition(
        &mut self,
        records: &mut Records<T>,
        out: &Out<Self::Output>,
    ) -> impl Future<Output = Result<(), FunctionError>>;
}
