//! Streams of records with keys.

use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;

use crate::operators::Partition;

use super::{AggregateFunction, DataStream, PartitionWindowedStream, Record};

/// Records whose consumer has all records of one key in one of its subtasks (Flink's class of this
/// name). `K` is the type of the keys. It is a [`DataStream`], and what is called on it as one means
/// the records without their keys: the results of `map` have none any more.
///
/// ```
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let by_rest = env.from_collection("numbers", 1..8).key_by(|n| n % 3);
///     by_rest.reduce(|a, b| a + b).set_parallelism(1).collect("sums");
///     by_rest.map(|n| n * 10).set_parallelism(1).collect("tens");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("sums")?, [3 + 6, 1 + 4 + 7, 2 + 5]);
/// let mut tens = result.collected::<i32>("tens")?;
/// tens.sort_unstable();
/// assert_eq!(tens, [10, 20, 30, 40, 50, 60, 70]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyedStream<K, T> {
    stream: DataStream<T>,
    key_of: Arc<dyn Fn(&T) -> K + Send + Sync>,
}

impl<K, T> Clone for KeyedStream<K, T> {
    fn clone(&self) -> Self {
        Self { stream: self.stream.clone(), key_of: Arc::clone(&self.key_of) }
    }
}

impl<K, T> Deref for KeyedStream<K, T> {
    type Target = DataStream<T>;

    fn deref(&self) -> &DataStream<T> {
        &self.stream
    }
}

impl<K: Serialize + 'static, T: Record> KeyedStream<K, T> {
    pub(super) fn new(stream: DataStream<T>, key_of: Arc<dyn Fn(&T) -> K + Send + Sync>) -> Self {
        Self { stream, key_of }
    }

    /// All records of a key as one window that ends with the input. Keys are the same if their
    /// encodings are, and come in the order of their encodings, byte by byte.
    ///
    /// ```
    /// # use revenant::api::{Out, Records};
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let words = env.from_collection("words", ["to", "be", "or", "not", "to", "be"].map(String::from));
    ///     let by_length = words.key_by(|word| word.len()).full_window_partition();
    ///     let longest_first = by_length.map_partition(async |words: &mut Records<String>, out: &Out<String>| {
    ///         let mut line = words.next().await.unwrap_or_default();
    ///         while let Some(word) = words.next().await {
    ///             line = line + " " + &word;
    ///         }
    ///         out.collect(line).await;
    ///         Ok(())
    ///     });
    ///     longest_first.set_parallelism(1).collect("lines");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<String>("lines")?, ["to be or to be", "not"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn full_window_partition(&self) -> PartitionWindowedStream<T> {
        PartitionWindowedStream::new(self.stream.clone(), Partition::by_key(Arc::clone(&self.key_of)))
    }

    /// The records of each key folded into one when the input has ended, in the order of their
    /// arrival.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let words = ["to", "be", "or", "not", "to", "be"].map(|word| (word.to_owned(), 1));
    ///     let by_word = env.from_collection("words", words).key_by(|(word, _)| word.clone());
    ///     by_word.reduce(|(word, a), (_, b)| (word, a + b)).set_parallelism(1).collect("counts");
    ///     Ok(())
    /// })?;
    /// // Shorter words have smaller encodings: those begin with the length.
    /// let counts = [("be", 2), ("or", 1), ("to", 2), ("not", 1)].map(|(word, count)| (word.to_owned(), count));
    /// assert_eq!(result.collected::<(String, i32)>("counts")?, counts);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reduce(&self, function: impl Fn(T, T) -> T + Send + Sync + 'static) -> DataStream<T> {
        self.full_window_partition().reduce(function)
    }

    /// One result for each key when the input has ended.
    ///
    /// ```
    /// # use revenant::api::AggregateFunction;
    /// # use revenant::runtime::run;
    /// struct Longest;
    ///
    /// impl AggregateFunction<String> for Longest {
    ///     type Accumulator = usize;
    ///     type Output = usize;
    ///
    ///     fn create_accumulator(&self) -> usize {
    ///         0
    ///     }
    ///
    ///     fn add(&self, word: String, longest: usize) -> usize {
    ///         longest.max(word.len())
    ///     }
    ///
    ///     fn get_result(&self, longest: usize) -> usize {
    ///         longest
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     let words = env.from_collection("words", ["banana", "apple", "apricot", "blackberry"].map(String::from));
    ///     let by_letter = words.key_by(|word| word.chars().next());
    ///     by_letter.aggregate(Longest).set_parallelism(1).collect("longest");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<usize>("longest")?, ["apricot".len(), "blackberry".len()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn aggregate<A: AggregateFunction<T>>(&self, function: A) -> DataStream<A::Output> {
        self.full_window_partition().aggregate(function)
    }

    /// The same exchange as a stream whose type does not mention keys: its consumer still has all
    /// records of one key in one subtask. A full-window partition of it is all that a subtask
    /// gets, which may be several keys.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let by_rest = env.from_collection("numbers", 1..8).key_by(|n| n % 3);
    ///     let of_subtasks = by_rest.clone().into_data_stream().full_window_partition();
    ///     of_subtasks.reduce(|a, b| a + b).set_parallelism(1).collect("sum");
    ///     by_rest.full_window_partition().reduce(|a, b| a + b).set_parallelism(1).collect("sums-of-keys");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("sum")?, [28]);
    /// assert_eq!(result.collected::<i32>("sums-of-keys")?, [9, 12, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_data_stream(self) -> DataStream<T> {
        self.stream
    }
}
