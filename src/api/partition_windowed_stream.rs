//! Full-window partitions (FLIP-380): all records of a subtask, or of a key, processed when the input
//! has ended or while it comes.

use std::ops::Deref;

use crate::graph::{GraphError, NodeKind};
use crate::operators::{self, Head, Out, Partition, Records};

use super::{AggregateFunction, DataStream, FunctionError, Order, Record, RichMapPartitionFunction, SortKey};

/// The records of each subtask, or of each key of a keyed stream, as one window (Flink's class of this
/// name). It is a [`DataStream`], and what is called on it as one means the records themselves.
///
/// Its operators start a task of their own and have the parallelism of the stream before, unless they
/// say another. There is no other window on a stream without keys: where one begins and ends would
/// have to be remembered in timers and keyed state.
///
/// ```
/// # use revenant::api::Order;
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let window = env.from_collection("numbers", [5, 1, 4]).full_window_partition();
///     window.sort_partition(|n| *n, Order::Ascending).collect("sorted");
///     window.map(|n| n + 1).collect("next"); // Of the records, as they come.
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("sorted")?, [1, 4, 5]);
/// assert_eq!(result.collected::<i32>("next")?, [6, 2, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PartitionWindowedStream<T> {
    stream: DataStream<T>,
    partition: Partition<T>,
}

impl<T> Clone for PartitionWindowedStream<T> {
    fn clone(&self) -> Self {
        Self { stream: self.stream.clone(), partition: self.partition.clone() }
    }
}

impl<T> Deref for PartitionWindowedStream<T> {
    type Target = DataStream<T>;

    fn deref(&self) -> &DataStream<T> {
        &self.stream
    }
}

impl<T: Record> PartitionWindowedStream<T> {
    pub(super) fn new(stream: DataStream<T>, partition: Partition<T>) -> Self {
        Self { stream, partition }
    }

    fn window<U: Record>(&self, name: &str, head: Head) -> DataStream<U> {
        self.stream.operator(name, NodeKind::Window { head })
    }

    /// Runs `function` once for each partition, also for a subtask without records. It pulls records and
    /// pushes results as it likes; neither side is held in memory. An error fails the task. It waits for
    /// its records and results and for nothing else: there is no runtime for timers or sockets in a task.
    ///
    /// ```
    /// # use revenant::api::{Out, Records};
    /// # use revenant::connectors::NumberSequenceSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let numbers = env.from_source("squares", NumberSequenceSource::new(0, 5, 1)).map(|n| n * n);
    ///     let differences = numbers.full_window_partition().map_partition(
    ///         async |records: &mut Records<i64>, out: &Out<i64>| {
    ///             let Some(mut last) = records.next().await else { return Ok(()) };
    ///             while let Some(number) = records.next().await {
    ///                 out.collect(number.checked_sub(last).ok_or("the difference is too large")?).await;
    ///                 last = number;
    ///             }
    ///             Ok(())
    ///         },
    ///     );
    ///     differences.collect("differences");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i64>("differences")?, [1, 3, 5, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_partition<U: Record>(
        &self,
        function: impl AsyncFn(&mut Records<T>, &Out<U>) -> Result<(), FunctionError> + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.window("MapPartition", operators::map_partition(self.partition.clone(), function))
    }

    /// As [`Self::map_partition`], with a function that is opened and closed in each subtask.
    ///
    /// ```
    /// # use revenant::api::{FunctionError, Out, Records, RichFunction, RichMapPartitionFunction, RuntimeContext};
    /// # use revenant::runtime::run;
    /// /// Counts the records of a subtask.
    /// #[derive(Clone, Default)]
    /// struct Count {
    ///     of: String,
    /// }
    ///
    /// impl RichFunction for Count {
    ///     fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
    ///         let (index, count) = (context.index_of_this_subtask(), context.number_of_parallel_subtasks());
    ///         self.of = format!("{index} of {count}");
    ///         Ok(())
    ///     }
    /// }
    ///
    /// impl RichMapPartitionFunction<i32> for Count {
    ///     type Output = (String, u32);
    ///
    ///     async fn map_partition(
    ///         &mut self,
    ///         records: &mut Records<i32>,
    ///         out: &Out<(String, u32)>,
    ///     ) -> Result<(), FunctionError> {
    ///         let mut count = 0;
    ///         while records.next().await.is_some() {
    ///             count += 1;
    ///         }
    ///         out.collect((self.of.clone(), count)).await;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     let numbers = env.from_collection("numbers", 0..5).rebalance();
    ///     let counts = numbers.full_window_partition().rich_map_partition(Count::default()).set_parallelism(2);
    ///     counts.collect("counts");
    ///     Ok(())
    /// })?;
    /// let counts = [("0 of 2".to_owned(), 3), ("1 of 2".to_owned(), 2)];
    /// assert_eq!(result.collected::<(String, u32)>("counts")?, counts);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rich_map_partition<F: RichMapPartitionFunction<T>>(&self, function: F) -> DataStream<F::Output> {
        self.window("MapPartition", operators::rich_map_partition(self.partition.clone(), function))
    }

    /// The records of each subtask, ordered by `key_of`. Records with equal keys stay in the order of
    /// their arrival, in both directions. The records of a keyed stream are brought together by key,
    /// in the order of the keys' encodings, and are ordered by `key_of` within each. What does not fit
    /// into `execution.sort-partition.memory` goes to disk meanwhile; with keys, it is
    /// `execution.sort-keyed-partition.memory`.
    ///
    /// ```
    /// # use revenant::api::Order;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let heights = env.from_collection("heights", vec![1.85, 1.62, f64::NAN, 1.79]);
    ///     heights.full_window_partition().sort_partition(|h| *h, Order::Descending).collect("tallest");
    ///     Ok(())
    /// })?;
    /// let tallest = result.collected::<f64>("tallest")?;
    /// assert!(tallest[0].is_nan());
    /// assert_eq!(tallest[1..], [1.85, 1.79, 1.62]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A sort says its direction, and what has no total order is no key:
    ///
    /// ```compile_fail,E0061
    /// # use revenant::api::StreamExecutionEnvironment;
    /// # let mut env = StreamExecutionEnvironment::new();
    /// let numbers = env.from_collection("numbers", vec![1, 2]);
    /// numbers.full_window_partition().sort_partition(|n| *n);
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # use revenant::api::{Order, StreamExecutionEnvironment};
    /// # let mut env = StreamExecutionEnvironment::new();
    /// let numbers = env.from_collection("numbers", vec![1, 2]);
    /// numbers.full_window_partition().sort_partition(|n| std::cell::Cell::new(*n), Order::Ascending);
    /// ```
    pub fn sort_partition<K: SortKey>(
        &self,
        key_of: impl Fn(&T) -> K + Send + Sync + 'static,
        order: Order,
    ) -> DataStream<T> {
        let key_of = move |record: &T| Ok(key_of(record));
        self.window("SortPartition", operators::sort_partition(self.partition.clone(), key_of, order))
    }

    /// As [`Self::sort_partition`], by the field of this name of a struct, as serde has it. A field that
    /// the records do not have, or that has no order (lists, maps, structs, enums), is refused when the
    /// graph is built.
    ///
    /// ```
    /// # use revenant::api::Order;
    /// # use revenant::runtime::run;
    /// #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// struct City {
    ///     name: String,
    ///     people: u32,
    /// }
    ///
    /// let result = run(|env| {
    ///     let cities = [("Ulm", 126_000), ("Bonn", 331_000), ("Jena", 111_000)];
    ///     let cities = cities.map(|(name, people)| City { name: name.to_owned(), people });
    ///     let cities = env.from_collection("cities", cities);
    ///     cities.full_window_partition().sort_partition_by_field("people", Order::Ascending).collect("cities");
    ///     Ok(())
    /// })?;
    /// let names: Vec<String> = result.collected::<City>("cities")?.into_iter().map(|city| city.name).collect();
    /// assert_eq!(names, ["Jena", "Ulm", "Bonn"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sort_partition_by_field(&self, field: &str, order: Order) -> DataStream<T> {
        let name = field.to_owned();
        let key_of = move |record: &T| operators::field_key(record, &name);
        let head = operators::sort_partition(self.partition.clone(), key_of, order);
        let sorted = self.window("SortPartition", head);
        if let Err(problem) = operators::check_field::<T>(field) {
            let (operator, field) = ("SortPartition".to_owned(), field.to_owned());
            self.stream.misuse(GraphError::SortField { operator, field, problem });
        }
        sorted
    }

    /// One result for each partition; for a subtask without records, that of a new accumulator.
    ///
    /// ```
    /// # use revenant::api::AggregateFunction;
    /// # use revenant::runtime::run;
    /// struct Mean;
    ///
    /// impl AggregateFunction<f64> for Mean {
    ///     type Accumulator = (f64, f64);
    ///     type Output = Option<f64>;
    ///
    ///     fn create_accumulator(&self) -> (f64, f64) {
    ///         (0.0, 0.0)
    ///     }
    ///
    ///     fn add(&self, value: f64, (sum, count): (f64, f64)) -> (f64, f64) {
    ///         (sum + value, count + 1.0)
    ///     }
    ///
    ///     fn get_result(&self, (sum, count): (f64, f64)) -> Option<f64> {
    ///         (count > 0.0).then(|| sum / count)
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     let weights = env.from_collection("weights", vec![3.0, 5.0, 7.0]);
    ///     weights.full_window_partition().aggregate(Mean).collect("mean");
    ///     weights.filter(|weight| *weight > 9.0).full_window_partition().aggregate(Mean).collect("mean-of-none");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<Option<f64>>("mean")?, [Some(5.0)]);
    /// assert_eq!(result.collected::<Option<f64>>("mean-of-none")?, [None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn aggregate<A: AggregateFunction<T>>(&self, function: A) -> DataStream<A::Output> {
        self.window("PartitionAggregate", operators::aggregate(self.partition.clone(), function))
    }

    /// The records of each partition folded into one, in the order of their arrival; nothing for a
    /// subtask without records.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let letters = env.from_collection("letters", vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    ///     letters.full_window_partition().reduce(|word, letter| word + &letter).collect("word");
    ///     letters.key_by(|letter| letter != "b").reduce(|word, letter| word + &letter).collect("by-key");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<String>("word")?, ["abc"]);
    /// let mut by_key = result.collected::<String>("by-key")?;
    /// by_key.sort();
    /// assert_eq!(by_key, ["ac", "b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce(&self, function: impl Fn(T, T) -> T + Send + Sync + 'static) -> DataStream<T> {
        self.window("PartitionReduce", operators::reduce(self.partition.clone(), function))
    }
}
