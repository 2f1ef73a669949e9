//! Streams of records without keys.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use crate::connectors::Sink;
use crate::graph::{
    Determinacy, Exchange, GraphError, NodeId, NodeKind, StreamEdge, StreamGraph, StreamNode,
};
use crate::operators::{self, Link, Partition, RecordType, input_head};

use super::{
    KeyedStream, PartitionWindowedStream, Record, RichFilterFunction, RichFlatMapFunction, RichMapFunction,
};

/// Records of type `T` (Flink's class of this name). A stream may have several consumers; each gets
/// all of its records.
///
/// What is called on a stream describes an operator behind it or another way to its consumer, and gives
/// back the new stream; the old one stays.
///
/// ```
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let numbers = env.from_collection("numbers", 1..7);
///     let even = numbers.filter(|n| n % 2 == 0);
///     numbers.full_window_partition().reduce(|a, b| a + b).collect("sum");
///     even.map(|n| n * n).collect("squares");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("sum")?, [21]);
/// assert_eq!(result.collected::<i32>("squares")?, [4, 16, 36]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DataStream<T> {
    graph: Rc<RefCell<StreamGraph>>,
    /// Where the records come from, and how they travel to a consumer.
    upstream: Vec<StreamEdge>,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for DataStream<T> {
    fn clone(&self) -> Self {
        Self { graph: Rc::clone(&self.graph), upstream: self.upstream.clone(), record: PhantomData }
    }
}

impl<T: Record> DataStream<T> {
    /// The results of a new operator.
    pub(super) fn of_node(graph: &Rc<RefCell<StreamGraph>>, node: StreamNode) -> Self {
        let producer = graph.borrow_mut().add(node);
        let upstream = vec![StreamEdge { producer, exchange: Exchange::Unspecified }];
        Self { graph: Rc::clone(graph), upstream, record: PhantomData }
    }

    /// Adds an operator that consumes this stream.
    pub(super) fn operator<U: Record>(&self, name: &str, kind: NodeKind) -> DataStream<U> {
        let mut node = StreamNode::new(name.to_owned(), kind, RecordType::of::<U>());
        node.inputs.clone_from(&self.upstream);
        DataStream::of_node(&self.graph, node)
    }

    /// Notes what is wrong with the job, to be said when its graph is built.
    pub(super) fn misuse(&self, misuse: GraphError) {
        self.graph.borrow_mut().misuses.push(misuse);
    }

    fn push_operator<U: Record>(&self, name: &str, link: Link) -> DataStream<U> {
        self.operator(name, NodeKind::Push { head: input_head::<T>(), link })
    }

    /// How many operators were described so far, in this stream's environment.
    pub(super) fn operator_count(&self) -> usize {
        self.graph.borrow().nodes.len()
    }

    /// The same records on another way to their consumer.
    fn exchanged(&self, exchange: &Exchange) -> Self {
        let mut stream = self.clone();
        stream.upstream.iter_mut().for_each(|edge| edge.exchange = exchange.clone());
        stream
    }

    /// One result for each record.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let words = env.from_collection("words", ["to", "be", "or"].map(String::from));
    ///     words.map(|word| word.to_uppercase()).collect("loud");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<String>("loud")?, ["TO", "BE", "OR"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A function that may fail is a [`RichMapFunction`]; one that leaves out what it cannot use is a
    /// [`Self::flat_map`] to an `Option` or a `Result`.
    pub fn map<U: Record>(&self, function: impl Fn(T) -> U + Send + Sync + 'static) -> DataStream<U> {
        self.push_operator("Map", operators::map(function))
    }

    /// The records that `keep` accepts.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     env.from_collection("numbers", 0..10).filter(|n| n % 4 == 0).collect("fourths");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("fourths")?, [0, 4, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter(&self, keep: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.push_operator("Filter", operators::filter(keep))
    }

    /// Any number of results for each record, in the order of the iterator.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     env.from_collection("numbers", 0..4).flat_map(|n| vec![n; n as usize]).collect("triangle");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("triangle")?, [1, 2, 2, 3, 3, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flat_map<U: Record, I: IntoIterator<Item = U> + 'static>(
        &self,
        function: impl Fn(T) -> I + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.push_operator("FlatMap", operators::flat_map(function))
    }

    /// As [`Self::map`], with a function that is opened and closed in each subtask.
    ///
    /// ```
    /// # use revenant::api::{FunctionError, RichFunction, RichMapFunction, RuntimeContext};
    /// # use revenant::runtime::run;
    /// /// Numbers records within their subtask.
    /// #[derive(Clone, Default)]
    /// struct Numbered {
    ///     subtask: u32,
    ///     count: u32,
    /// }
    ///
    /// impl RichFunction for Numbered {
    ///     fn open(&mut self, context: &RuntimeContext) -> Result<(), FunctionError> {
    ///         self.subtask = context.index_of_this_subtask();
    ///         Ok(())
    ///     }
    /// }
    ///
    /// impl RichMapFunction<String> for Numbered {
    ///     type Output = String;
    ///
    ///     fn map(&mut self, word: String) -> Result<String, FunctionError> {
    ///         self.count += 1;
    ///         Ok(format!("{}.{} {word}", self.subtask, self.count))
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     let words = env.from_collection("words", vec!["to".to_owned(), "be".to_owned()]);
    ///     words.rich_map(Numbered::default()).collect("numbered");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<String>("numbered")?, ["0.1 to", "0.2 be"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rich_map<F: RichMapFunction<T>>(&self, function: F) -> DataStream<F::Output> {
        self.push_operator("Map", operators::rich_map(function))
    }

    /// As [`Self::filter`], with a function that is opened and closed in each subtask.
    ///
    /// ```
    /// # use revenant::api::{FunctionError, RichFilterFunction, RichFunction};
    /// # use revenant::runtime::run;
    /// /// Lets a record pass if it is not the one before.
    /// #[derive(Clone, Default)]
    /// struct Changes {
    ///     last: Option<i32>,
    /// }
    ///
    /// impl RichFunction for Changes {}
    ///
    /// impl RichFilterFunction<i32> for Changes {
    ///     fn filter(&mut self, number: &i32) -> Result<bool, FunctionError> {
    ///         Ok(self.last.replace(*number) != Some(*number))
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     env.from_collection("numbers", [1, 1, 2, 2, 1]).rich_filter(Changes::default()).collect("changes");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("changes")?, [1, 2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rich_filter<F: RichFilterFunction<T>>(&self, function: F) -> Self {
        self.push_operator("Filter", operators::rich_filter(function))
    }

    /// As [`Self::flat_map`], with a function that is opened and closed in each subtask.
    ///
    /// ```
    /// # use revenant::api::{FunctionError, RichFlatMapFunction, RichFunction};
    /// # use revenant::runtime::run;
    /// /// Puts records together in pairs.
    /// #[derive(Clone, Default)]
    /// struct Pairs {
    ///     first: Option<i32>,
    /// }
    ///
    /// impl RichFunction for Pairs {}
    ///
    /// impl RichFlatMapFunction<i32> for Pairs {
    ///     type Output = (i32, i32);
    ///
    ///     fn flat_map(&mut self, number: i32, collect: &mut dyn FnMut((i32, i32))) -> Result<(), FunctionError> {
    ///         match self.first.take() {
    ///             Some(first) => collect((first, number)),
    ///             None => self.first = Some(number),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     env.from_collection("numbers", 1..6).rich_flat_map(Pairs::default()).collect("pairs");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<(i32, i32)>("pairs")?, [(1, 2), (3, 4)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rich_flat_map<F: RichFlatMapFunction<T>>(&self, function: F) -> DataStream<F::Output> {
        self.push_operator("FlatMap", operators::rich_flat_map(function))
    }

    /// Sends all records of one key to one subtask of the consumer, which is found by the hash of
    /// the key's postcard encoding.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let words = env.from_collection("words", ["b1", "a1", "b2", "a2"].map(String::from));
    ///     let by_letter = words.key_by(|word| word.chars().next());
    ///     // One subtask has all keys here; it has them in the order of their encodings.
    ///     by_letter.reduce(|line, word| line + " " + &word).set_parallelism(1).collect("lines");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<String>("lines")?, ["a1 a2", "b1 b2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_by<K: Serialize + 'static>(
        &self,
        key_of: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> KeyedStream<K, T> {
        let key_of: Arc<dyn Fn(&T) -> K + Send + Sync> = Arc::new(key_of);
        let tail = operators::hash_tail(Arc::clone(&key_of));
        KeyedStream::new(self.exchanged(&Exchange::Hash(tail)), key_of)
    }

    /// Sends each record to the subpartition that `partitioner` says, given the record's key and the
    /// number of subpartitions; a number that is not below it fails the task. Neighbouring
    /// subpartitions may belong to one subtask of the consumer, but none is ever split. With ranges of
    /// the key in their order, and a sort behind, a stream is sorted as a whole: the example
    /// `sort_tpch_table` does.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let numbers = env.from_collection("numbers", vec![3_u32, 10, 4]);
    ///     let apart = numbers.partition_custom(|key: &bool, count| u32::from(*key) % count, |n| n % 2 == 0);
    ///     apart.full_window_partition().reduce(|a, b| a + b).set_parallelism(2).collect("sums");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<u32>("sums")?, [3, 14]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition_custom<K: 'static>(
        &self,
        partitioner: impl Fn(&K, u32) -> u32 + Send + Sync + 'static,
        key_of: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> Self {
        let choose = move |record: &T, count: u32| partitioner(&key_of(record), count);
        self.exchanged(&Exchange::Custom(operators::custom_tail(Arc::new(choose))))
    }

    /// Sends the records of each subtask to the consumer's subtask of the same number. Refused when
    /// the graph is built if the parallelisms differ.
    ///
    /// ```
    /// # use revenant::connectors::CollectionSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let source = CollectionSource::new([1, 2, 30, 40]).with_splits(2);
    ///     let numbers = env.from_source("numbers", source).set_parallelism(2); // 1 and 2; 30 and 40
    ///     numbers.forward().full_window_partition().reduce(|a, b| a + b).set_parallelism(2).collect("sums");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("sums")?, [3, 70]);
    ///
    /// let refused = run(|env| {
    ///     env.from_collection("one", [1]).forward().map(|n| n).set_parallelism(2).collect("two");
    ///     Ok(())
    /// });
    /// let error = refused.err().expect("one subtask cannot lead to two").to_string();
    /// assert!(error.contains("'Source: one' has parallelism 1 and 'Map' has parallelism 2"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forward(&self) -> Self {
        self.exchanged(&Exchange::Forward)
    }

    /// Deals the records to the consumer's subtasks as if at random: by a hash of the producer's
    /// number and the record's, so that a subtask that runs again deals in the same way.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let dealt = env.from_collection("numbers", 0..100).shuffle().map(|n| n).set_parallelism(2);
    ///     dealt.collect("numbers");
    ///     dealt.full_window_partition().reduce(|a, _| a).collect("first-of-each");
    ///     Ok(())
    /// })?;
    /// let mut numbers = result.collected::<i32>("numbers")?;
    /// assert!(!numbers.is_sorted(), "those of subtask 0 come first");
    /// numbers.sort_unstable();
    /// assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    /// assert_eq!(result.collected::<i32>("first-of-each")?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shuffle(&self) -> Self {
        self.exchanged(&Exchange::Shuffle)
    }

    /// Deals the records round robin to the consumer's subtasks.
    ///
    /// Each subtask begins with the consumer's subtask of its own number, counted round if there are fewer,
    /// so that one that runs again deals in the same way. (If the scheduler decides the consumer's
    /// parallelism, it does so after the dealing, and a subtask may get the records of several places.)
    ///
    /// ```
    /// # use revenant::connectors::CollectionSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let source = CollectionSource::new([0, 1, 2, 10, 11, 12]).with_splits(2);
    ///     let numbers = env.from_source("numbers", source).set_parallelism(2); // 0 to 2; 10 to 12
    ///     numbers.rebalance().map(|n| n).set_parallelism(2).collect("dealt");
    ///     Ok(())
    /// })?;
    /// let (of_subtask_0, of_subtask_1) = ([0, 2, 11], [1, 10, 12]);
    /// assert_eq!(result.collected::<i32>("dealt")?, [of_subtask_0, of_subtask_1].concat());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebalance(&self) -> Self {
        self.exchanged(&Exchange::Rebalance)
    }

    /// Deals the records of each subtask round robin to a few subtasks of the consumer, those that
    /// belong to it: with 2 producers and 4 consumers each deals to 2, with 4 and 2 each sends to 1.
    ///
    /// ```
    /// # use revenant::connectors::CollectionSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let source = CollectionSource::new([0, 1, 2, 10, 11, 12]).with_splits(2);
    ///     let numbers = env.from_source("numbers", source).set_parallelism(2); // 0 to 2; 10 to 12
    ///     let dealt = numbers.rescale().map(|n| n).set_parallelism(4);
    ///     dealt.full_window_partition().map_partition(async |records, out| {
    ///         let mut all = vec![];
    ///         while let Some(number) = records.next().await {
    ///             all.push(number);
    ///         }
    ///         out.collect(all).await;
    ///         Ok(())
    ///     }).collect("dealt");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<Vec<i32>>("dealt")?, [vec![0, 2], vec![1], vec![11], vec![10, 12]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rescale(&self) -> Self {
        self.exchanged(&Exchange::Rescale)
    }

    /// Gives every record to every subtask of the consumer.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     env.from_collection("numbers", [1, 2]).broadcast().map(|n| n).set_parallelism(3).collect("numbers");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("numbers")?, [1, 2, 1, 2, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn broadcast(&self) -> Self {
        self.exchanged(&Exchange::Broadcast)
    }

    /// The records of this stream and of `other`. A consumer's subtask gets those of this stream
    /// first.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let (old, new) = (env.from_collection("old", [3, 4]), env.from_collection("new", [1, 2]));
    ///     old.union(&new).union(&old).collect("all");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("all")?, [3, 4, 1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        if Rc::ptr_eq(&self.graph, &other.graph) {
            union.upstream.extend(other.upstream.iter().cloned());
        } else {
            self.misuse(GraphError::OtherEnvironment);
        }
        union
    }

    /// All records of a subtask as one window that ends with the input (FLIP-380).
    ///
    /// ```
    /// # use revenant::connectors::CollectionSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let source = CollectionSource::new([4, 9, 2, 7]).with_splits(2);
    ///     let numbers = env.from_source("numbers", source).set_parallelism(2); // 4 and 9; 2 and 7
    ///     numbers.full_window_partition().reduce(|a, b| a.max(b)).collect("largest-of-each");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i32>("largest-of-each")?, [9, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn full_window_partition(&self) -> PartitionWindowedStream<T> {
        PartitionWindowedStream::new(self.clone(), Partition::Subtask)
    }

    /// Writes the records to a sink; the operator is called `Sink: <name>`.
    ///
    /// ```
    /// # use revenant::connectors::CsvSink;
    /// # use revenant::runtime::run;
    /// #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// struct City {
    ///     name: String,
    ///     people: u32,
    /// }
    ///
    /// let result = run(|env| {
    ///     let cities = [("Ulm", 126_000), ("Bonn", 331_000)];
    ///     let cities = cities.map(|(name, people)| City { name: name.to_owned(), people });
    ///     env.from_collection("cities", cities).sink_to(CsvSink::new("cities"));
    ///     Ok(())
    /// })?;
    /// let csv = std::fs::read_to_string(result.output().join("cities/part-00000.csv"))?;
    /// assert_eq!(csv, "name,people\nUlm,126000\nBonn,331000\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sink_to(&self, sink: impl Sink<T>) -> DataStreamSink {
        let name = format!("Sink: {}", sink.name());
        let (target, idempotent) = (sink.target(), sink.is_idempotent());
        let kind = NodeKind::Sink { head: input_head::<T>(), leaf: operators::sink::<T, _>(sink), target };
        let DataStream { graph, upstream, .. } = self.operator::<T>(&name, kind);
        let node = upstream[0].producer;
        if !idempotent {
            graph.borrow_mut().node_mut(node).recovery_obstacle =
                Some("is a sink that is not idempotent: its records would be written again");
        }
        DataStreamSink { graph, node }
    }

    /// The parallelism of the operator whose results these are. Without it: that of the operator
    /// before, or what the environment says, or what the scheduler decides. Like all calls that say
    /// something of an operator, it changes that operator and returns the same stream.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     env.from_collection("numbers", [7, 8, 9]).map(|n| n * n).set_parallelism(3).print();
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.printed(), ["1> 49", "2> 64", "3> 81"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_parallelism(&self, parallelism: u32) -> Self {
        self.change("set_parallelism", |node| node.parallelism = Some(parallelism))
    }

    /// Upper bound of the parallelism that the scheduler decides for this operator.
    ///
    /// ```
    /// # use revenant::api::StreamExecutionEnvironment;
    /// # use revenant::connectors::NumberSequenceSource;
    /// let mut env = StreamExecutionEnvironment::new();
    /// let numbers = env.from_source("numbers", NumberSequenceSource::new(0, 1_000_000, 100));
    /// numbers.rebalance().map(|n| n % 1000).set_max_parallelism(8).collect("rests");
    /// let rests = &env.job_graph("rests")?.vertices[1];
    /// assert_eq!((rests.parallelism, rests.max_parallelism), (None, Some(8)));
    /// # Ok::<(), revenant::graph::GraphError>(())
    /// ```
    pub fn set_max_parallelism(&self, max_parallelism: u32) -> Self {
        self.change("set_max_parallelism", |node| node.max_parallelism = Some(max_parallelism))
    }

    /// Whether the operator whose results these are has the same results when it runs again with the
    /// same input. Without it, operators count as determinate. A source whose splits go to whoever
    /// asks first is indeterminate whatever is said.
    ///
    /// ```
    /// # use revenant::api::{Determinacy, StreamExecutionEnvironment};
    /// let mut env = StreamExecutionEnvironment::new();
    /// let hosts = env.from_collection("hosts", ["a".to_owned()]);
    /// let answers = hosts.map(|host| (host, std::process::id())); // Another in each process.
    /// answers.set_determinacy(Determinacy::Indeterminate).collect("answers");
    /// // What has read the results of an attempt runs again when another attempt replaces it.
    /// assert_eq!(env.job_graph("answers")?.vertices[0].determinacy, Determinacy::Indeterminate);
    /// # Ok::<(), revenant::graph::GraphError>(())
    /// ```
    pub fn set_determinacy(&self, determinacy: Determinacy) -> Self {
        self.change("set_determinacy", |node| node.determinacy = determinacy)
    }

    /// Names the operator whose results these are, in place of what it does (`Map`); sources and
    /// sinks keep `Source: ` and `Sink: ` before it.
    ///
    /// ```
    /// # use revenant::api::StreamExecutionEnvironment;
    /// let mut env = StreamExecutionEnvironment::new();
    /// env.from_collection("numbers", [1]).name("ones").map(|n| n * 2).name("Double").collect("twos");
    /// assert_eq!(env.job_graph("job")?.vertices[0].name, "Source: ones -> Double -> Sink: collect twos");
    /// # Ok::<(), revenant::graph::GraphError>(())
    /// ```
    pub fn name(&self, name: &str) -> Self {
        self.change("name", |node| node.rename(name))
    }

    /// An id of the operator whose results these are that stays when its name or its place changes.
    /// No two operators have the same; a job whose uids are others is another job.
    ///
    /// ```
    /// # use revenant::api::StreamExecutionEnvironment;
    /// let mut env = StreamExecutionEnvironment::new();
    /// let numbers = env.from_collection("numbers", [1]).uid("numbers");
    /// numbers.map(|n| n * 2).uid("double").collect("twos");
    /// assert_eq!(env.job_graph("job")?.vertices[0].uids, ["numbers", "double"]);
    ///
    /// numbers.filter(|n| *n > 0).uid("double").collect("positive");
    /// let error = env.job_graph("job").unwrap_err().to_string();
    /// assert_eq!(error, "'Map' and 'Filter' both have the uid 'double'; give each operator one of its own");
    /// # Ok::<(), revenant::graph::GraphError>(())
    /// ```
    pub fn uid(&self, uid: &str) -> Self {
        self.change("uid", |node| node.uid = Some(uid.to_owned()))
    }

    fn change(&self, call: &'static str, change: impl FnOnce(&mut StreamNode)) -> Self {
        let mut graph = self.graph.borrow_mut();
        match self.upstream.as_slice() {
            [StreamEdge { producer, exchange: Exchange::Unspecified }] => change(graph.node_mut(*producer)),
            edges => {
                let operators: Vec<NodeId> = edges.iter().map(|edge| edge.producer).collect();
                let after = graph.names(&operators);
                graph.misuses.push(GraphError::NotAnOperator { call, after });
            }
        }
        self.clone()
    }
}

/// A stream's end in a sink (Flink's class of this name).
///
/// ```
/// # use revenant::api::StreamExecutionEnvironment;
/// let mut env = StreamExecutionEnvironment::new();
/// let numbers = env.from_collection("numbers", [1]);
/// numbers.rebalance().collect("numbers").set_parallelism(2).name("both").uid("end");
/// let sink = &env.job_graph("job")?.vertices[1];
/// assert_eq!((sink.name.as_str(), sink.parallelism), ("Sink: both", Some(2)));
/// assert_eq!(sink.uids, ["end"]);
/// # Ok::<(), revenant::graph::GraphError>(())
/// ```
pub struct DataStreamSink {
    graph: Rc<RefCell<StreamGraph>>,
    node: NodeId,
}

impl DataStreamSink {
    /// See [`DataStream::set_parallelism`].
    pub fn set_parallelism(self, parallelism: u32) -> Self {
        self.graph.borrow_mut().node_mut(self.node).parallelism = Some(parallelism);
        self
    }

    /// See [`DataStream::name`].
    pub fn name(self, name: &str) -> Self {
        self.graph.borrow_mut().node_mut(self.node).rename(name);
        self
    }

    /// See [`DataStream::uid`].
    pub fn uid(self, uid: &str) -> Self {
        self.graph.borrow_mut().node_mut(self.node).uid = Some(uid.to_owned());
        self
    }
}
