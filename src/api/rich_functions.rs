//! Functions with a life of their own in each subtask: they are opened, may keep what they like from
//! record to record, and are closed (Flink's `RichFunction`s).

use std::future::Future;

use crate::operators::{OperatorContext, Out, Records};
use crate::task::LongCounter;

use super::{FunctionError, Record};

/// Where a function runs (Flink's interface of this name).
///
/// ```
/// # use revenant::api::{FunctionError, LongCounter, RichFunction, RichMapFunction, RuntimeContext};
/// # use revenant::runtime::run;
/// /// Says where it is, and counts letters.
/// #[derive(Clone, Default)]
/// struct Tell {
///     place: String,
///     letters: LongCounter,
/// }
///
/// impl RichFunction for Tell {
///     fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
///         let (index, count) = (context.index_of_this_subtask(), context.number_of_parallel_subtasks());
///         let (operator, attempt) = (context.operator_name(), context.attempt_number());
///         self.place = format!("{operator} {index}/{count}, attempt {attempt}");
///         self.letters = context.long_counter("letters");
///         context.add_to_accumulator("subtasks", 1);
///         Ok(())
///     }
/// }
///
/// impl RichMapFunction<String> for Tell {
///     type Output = String;
///
///     fn map(&mut self, word: String) -> Result<String, FunctionError> {
///         self.letters.add(word.len() as i64);
///         Ok(format!("{word}: {}", self.place))
///     }
/// }
///
/// let result = run(|env| {
///     let words = env.from_collection("words", ["to", "not"].map(String::from));
///     words.rebalance().rich_map(Tell::default()).name("Tell").set_parallelism(2).collect("told");
///     Ok(())
/// })?;
/// let told = ["to: Tell 0/2, attempt 1", "not: Tell 1/2, attempt 1"];
/// assert_eq!(result.collected::<String>("told")?, told);
/// assert_eq!(result.accumulators().get("letters"), Some(&5));
/// assert_eq!(result.accumulators().get("subtasks"), Some(&2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// A sum of the whole job, to be kept and added to with every record.
    pub fn long_counter(&self, name: &str) -> LongCounter {
        self.operator.task().long_counter(name)
    }

    /// Adds to the sum of this name. It counts when this attempt is accepted as
    /// its subtask's finish, and then once, whatever is lost and recovered afterwards.
    pub fn add_to_accumulator(&self, name: &str, value: i64) {
        self.operator.task().add_to_accumulator(name, value);
    }
}

/// What all rich functions have. Each subtask of each attempt works on a clone of its own.
///
/// ```
/// # use revenant::api::{FunctionError, RichFunction, RichMapFunction, RuntimeContext};
/// # use revenant::runtime::run;
/// /// Keeps a journal while it runs.
/// #[derive(Clone)]
/// struct Journal {
///     directory: std::path::PathBuf,
///     lines: Vec<String>,
/// }
///
/// impl RichFunction for Journal {
///     fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
///         self.lines.push(format!("{} is opened", context.operator_name()));
///         Ok(())
///     }
///
///     fn close(&mut self) -> Result<(), FunctionError> {
///         self.lines.push("closed".to_owned());
///         Ok(std::fs::write(self.directory.join("journal"), self.lines.join(", "))?)
///     }
/// }
///
/// impl RichMapFunction<i32> for Journal {
///     type Output = i32;
///
///     fn map(&mut self, number: i32) -> Result<i32, FunctionError> {
///         self.lines.push(number.to_string());
///         number.checked_mul(2).ok_or_else(|| "the number is too large".into())
///     }
/// }
///
/// let directory = std::env::temp_dir().join(format!("revenant-journal-{}", std::process::id()));
/// std::fs::create_dir_all(&directory)?;
/// let journal = Journal { directory: directory.clone(), lines: vec![] };
/// run(move |env| {
///     env.from_collection("numbers", [1, 2]).rich_map(journal.clone()).collect("twice");
///     Ok(())
/// })?;
/// let written = std::fs::read_to_string(directory.join("journal"))?;
/// assert_eq!(written, "Map is opened, 1, 2, closed");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
///
/// See [`super::DataStream::rich_map`] for an example.
pub trait RichMapFunction<T>: RichFunction {
    type Output: Record;

    fn map(&mut self, record: T) -> Result<Self::Output, FunctionError>;
}

/// Which records go on.
///
/// See [`super::DataStream::rich_filter`] for an example.
pub trait RichFilterFunction<T>: RichFunction {
    fn filter(&mut self, record: &T) -> Result<bool, FunctionError>;
}

/// Any number of results for each record.
///
/// See [`super::DataStream::rich_flat_map`] for an example.
pub trait RichFlatMapFunction<T>: RichFunction {
    type Output: Record;

    fn flat_map(&mut self, record: T, collect: &mut dyn FnMut(Self::Output)) -> Result<(), FunctionError>;
}

/// Any number of results for each full-window partition. One function has all partitions of a
/// subtask, one after the other.
///
/// See [`super::PartitionWindowedStream::rich_map_partition`] for an example.
pub trait RichMapPartitionFunction<T>: RichFunction {
    type Output: Record;

    fn map_partition(
        &mut self,
        records: &mut Records<T>,
        out: &Out<Self::Output>,
    ) -> impl Future<Output = Result<(), FunctionError>>;
}
