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
    pub fn map<U: Record>(&self, function: impl Fn(T) -> U + Send + Sync + 'static) -> DataStream<U> {
        self.push_operator("Map", operators::map(function))
    }

    /// The records that `keep` accepts.
    pub fn filter(&self, keep: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        self.push_operator("Filter", operators::filter(keep))
    }

    /// Any number of results for each record, in the order of the iterator.
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
    pub fn rich_filter<F: RichFilterFunction<T>>(&self, function: F) -> Self {
        self.push_operator("Filter", operators::rich_filter(function))
    }

    /// As [`Self::flat_map`], with a function that is opened and closed in each subtask.
    pub fn rich_flat_map<F: RichFlatMapFunction<T>>(&self, function: F) -> DataStream<F::Output> {
        self.push_operator("FlatMap", operators::rich_flat_map(function))
    }

    /// Sends all records of one key to one subtask of the consumer, which is found by the hash of
    /// the key's postcard encoding.
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
    /// subpartitions may belong to one subtask of the consumer, but none is ever split.
    ///
    /// ```
    /// # use revenant::runtime::run;
    /// # use revenant::api::JobError;
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
    pub fn forward(&self) -> Self {
        self.exchanged(&Exchange::Forward)
    }

    /// Deals the records to the consumer's subtasks as if at random: by a hash of the producer's
    /// number and the record's, so that a subtask that runs again deals in the same way.
    pub fn shuffle(&self) -> Self {
        self.exchanged(&Exchange::Shuffle)
    }

    /// Deals the records round robin to the consumer's subtasks.
    pub fn rebalance(&self) -> Self {
        self.exchanged(&Exchange::Rebalance)
    }

    /// Deals the records of each subtask round robin to a few subtasks of the consumer, those that
    /// belong to it: with 2 producers and 4 consumers each deals to 2, with 4 and 2 each sends to 1.
    pub fn rescale(&self) -> Self {
        self.exchanged(&Exchange::Rescale)
    }

    /// Gives every record to every subtask of the consumer.
    pub fn broadcast(&self) -> Self {
        self.exchanged(&Exchange::Broadcast)
    }

    /// The records of this stream and of `other`. A consumer's subtask gets those of this stream
    /// first.
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
    pub fn full_window_partition(&self) -> PartitionWindowedStream<T> {
        PartitionWindowedStream::new(self.clone(), Partition::Subtask)
    }

    /// Writes the records to a sink; the operator is called `Sink: <name>`.
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
    pub fn set_parallelism(&self, parallelism: u32) -> Self {
        self.change("set_parallelism", |node| node.parallelism = Some(parallelism))
    }

    /// Upper bound of the parallelism that the scheduler decides for this operator.
    pub fn set_max_parallelism(&self, max_parallelism: u32) -> Self {
        self.change("set_max_parallelism", |node| node.max_parallelism = Some(max_parallelism))
    }

    /// Whether the operator whose results these are has the same results when it runs again with the
    /// same input. Without it, operators count as determinate. A source whose splits go to whoever
    /// asks first is indeterminate whatever is said.
    pub fn set_determinacy(&self, determinacy: Determinacy) -> Self {
        self.change("set_determinacy", |node| node.determinacy = determinacy)
    }

    /// Names the operator whose results these are, in place of what it does (`Map`); sources and
    /// sinks keep `Source: ` and `Sink: ` before it.
    pub fn name(&self, name: &str) -> Self {
        self.change("name", |node| node.rename(name))
    }

    /// An id of the operator whose results these are that stays when its name or its place changes.
    /// No two operators have the same; a job whose uids are others is another job.
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
