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
use crate::operators::{self, Link, RecordType, input_head};

use super::{KeyedStream, PartitionWindowedStream, Record};

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

    fn push_operator<U: Record>(&self, name: &str, link: Link) -> DataStream<U> {
        self.operator(name, NodeKind::Push { head: input_head::<T>(), link })
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

    /// Sends all records of one key to one subtask of the consumer, which is found by the hash of
    /// the key's postcard encoding.
    pub fn key_by<K: Serialize + 'static>(
        &self,
        key_of: impl Fn(&T) -> K + Send + Sync + 'static,
    ) -> KeyedStream<K, T> {
        let tail = operators::hash_tail(Arc::new(key_of));
        KeyedStream::new(self.exchanged(&Exchange::Hash(tail)))
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
            self.graph.borrow_mut().misuses.push(GraphError::OtherEnvironment);
        }
        union
    }

    /// All records of a subtask as one window that ends with the input (FLIP-380).
    pub fn full_window_partition(&self) -> PartitionWindowedStream<T> {
        PartitionWindowedStream::new(self.clone())
    }

    /// Writes the records to a sink; the operator is called `Sink: <name>`.
    pub fn sink_to(&self, sink: impl Sink<T>) -> DataStreamSink {
        let name = format!("Sink: {}", sink.name());
        let target = sink.target();
        let kind = NodeKind::Sink { head: input_head::<T>(), leaf: operators::sink::<T, _>(sink), target };
        let DataStream { graph, upstream, .. } = self.operator::<T>(&name, kind);
        DataStreamSink { graph, node: upstream[0].producer }
    }

    /// The parallelism of the operator whose results these are. Without it: that of the operator
    /// before, or what the environment says, or what the scheduler decides.
    pub fn set_parallelism(self, parallelism: u32) -> Self {
        self.change("set_parallelism", |node| node.parallelism = Some(parallelism))
    }

    /// Upper bound of the parallelism that the scheduler decides for this operator.
    pub fn set_max_parallelism(self, max_parallelism: u32) -> Self {
        self.change("set_max_parallelism", |node| node.max_parallelism = Some(max_parallelism))
    }

    /// Whether the operator whose results these are has the same results when it runs again with the
    /// same input. Without it, operators count as determinate. A source whose splits go to whoever
    /// asks first is indeterminate whatever is said.
    pub fn set_determinacy(self, determinacy: Determinacy) -> Self {
        self.change("set_determinacy", |node| node.determinacy = determinacy)
    }

    /// Names the operator whose results these are, in place of what it does (`Map`); sources and
    /// sinks keep `Source: ` and `Sink: ` before it.
    pub fn name(self, name: &str) -> Self {
        self.change("name", |node| node.rename(name))
    }

    fn change(self, call: &'static str, change: impl FnOnce(&mut StreamNode)) -> Self {
        let mut graph = self.graph.borrow_mut();
        match self.upstream.as_slice() {
            [StreamEdge { producer, exchange: Exchange::Unspecified }] => change(graph.node_mut(*producer)),
            edges => {
                let operators: Vec<NodeId> = edges.iter().map(|edge| edge.producer).collect();
                let after = graph.names(&operators);
                graph.misuses.push(GraphError::NotAnOperator { call, after });
            }
        }
        drop(graph);
        self
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
}
