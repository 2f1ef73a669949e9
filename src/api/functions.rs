//! Records and the functions that users write over them.

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Out;

/// What streams consist of. Between tasks a record is its postcard encoding, so the order of a
/// struct's fields is part of the format, and a type is read as it is written: serde's `untagged`,
/// `flatten` and `skip…` on fields cannot be used. `Clone` is for streams with several consumers.
///
/// ```
/// # use revenant::runtime::run;
/// #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// struct Visit {
///     page: String,
///     seconds: Option<f32>,
/// }
///
/// let result = run(|env| {
///     let visits = [("/", Some(2.5)), ("/about", None)];
///     let visits = visits.map(|(page, seconds)| Visit { page: page.to_owned(), seconds });
///     env.from_collection("visits", visits).filter(|visit| visit.seconds.is_some()).collect("read");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<Visit>("read")?, [Visit { page: "/".to_owned(), seconds: Some(2.5) }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "records of type `{Self}` cannot travel between tasks",
    note = "records are owned values that derive or implement Clone, serde::Serialize and serde::Deserialize"
)]
pub trait Record: Serialize + DeserializeOwned + Clone + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + 'static> Record for T {}

/// Why a user's function gave up: fails its task, with this as the reason.
pub type FunctionError = Box<dyn std::error::Error + Send + Sync>;

/// Emits the records of a source that has no splits (Flink's interface of this name).
///
/// See [`super::StreamExecutionEnvironment::add_source`] for an example.
pub trait SourceFunction: Send + Sync + 'static {
    type Record: Record;

    /// Collects all records.
    fn run(&self, out: &Out<Self::Record>) -> impl Future<Output = Result<(), FunctionError>>;
}

/// The direction of a sort.
///
/// Equal keys keep the order of their arrival in both:
///
/// ```
/// # use revenant::api::Order;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let words = env.from_collection("words", ["be", "a", "to", "I"].map(String::from));
///     let window = words.full_window_partition();
///     window.sort_partition(|word| word.len(), Order::Ascending).collect("short-first");
///     window.sort_partition(|word| word.len(), Order::Descending).collect("long-first");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<String>("short-first")?, ["a", "I", "be", "to"]);
/// assert_eq!(result.collected::<String>("long-first")?, ["be", "to", "a", "I"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Aggregates the records of a partition (Flink's interface of this name). The accumulator that
/// [`Self::add`] returns is the one that goes on; it need not be the one that came in.
///
/// See [`super::PartitionWindowedStream::aggregate`] for an example.
pub trait AggregateFunction<T>: Send + Sync + 'static {
    type Accumulator: 'static;
    type Output: Record;

    fn create_accumulator(&self) -> Self::Accumulator;

    fn add(&self, value: T, accumulator: Self::Accumulator) -> Self::Accumulator;

    /// Called once for each partition, also for a subtask without records.
    fn get_result(&self, accumulator: Self::Accumulator) -> Self::Output;
}
