//! Streams of records with keys.

use std::marker::PhantomData;

use serde::Serialize;

use crate::connectors::Sink;

use super::{DataStream, DataStreamSink, Record};

/// Records whose consumer has all records of one key in one of its subtasks (Flink's class of this
/// name). `K` is the type of the keys. The results of its operators have no keys any more.
pub struct KeyedStream<K, T> {
    stream: DataStream<T>,
    key: PhantomData<fn() -> K>,
}

impl<K, T> Clone for KeyedStream<K, T> {
    fn clone(&self) -> Self {
        Self { stream: self.stream.clone(), key: PhantomData }
    }
}

impl<K: Serialize + 'static, T: Record> KeyedStream<K, T> {
    pub(super) fn new(stream: DataStream<T>) -> Self {
        Self { stream, key: PhantomData }
    }

    /// See [`DataStream::map`].
    pub fn map<U: Record>(&self, function: impl Fn(T) -> U + Send + Sync + 'static) -> DataStream<U> {
        self.stream.map(function)
    }

    /// See [`DataStream::filter`].
    pub fn filter(&self, keep: impl Fn(&T) -> bool + Send + Sync + 'static) -> DataStream<T> {
        self.stream.filter(keep)
    }

    /// See [`DataStream::flat_map`].
    pub fn flat_map<U: Record, I: IntoIterator<Item = U> + 'static>(
        &self,
        function: impl Fn(T) -> I + Send + Sync + 'static,
    ) -> DataStream<U> {
        self.stream.flat_map(function)
    }

    /// Gives up the keys for others.
    pub fn key_by<L: Serialize + 'static>(
        &self,
        key_of: impl Fn(&T) -> L + Send + Sync + 'static,
    ) -> KeyedStream<L, T> {
        self.stream.key_by(key_of)
    }

    /// Gives up the keys and deals the records round robin.
    pub fn rebalance(&self) -> DataStream<T> {
        self.stream.rebalance()
    }

    /// Gives up the keys; see [`DataStream::rescale`].
    pub fn rescale(&self) -> DataStream<T> {
        self.stream.rescale()
    }

    /// Gives up the keys; see [`DataStream::broadcast`].
    pub fn broadcast(&self) -> DataStream<T> {
        self.stream.broadcast()
    }

    /// See [`DataStream::sink_to`].
    pub fn sink_to(&self, sink: impl Sink<T>) -> DataStreamSink {
        self.stream.sink_to(sink)
    }

    /// The same exchange as a stream whose type does not mention keys: its consumer still has all
    /// records of one key in one subtask. A full-window partition of it is all that a subtask
    /// gets, which may be several keys.
    pub fn into_data_stream(self) -> DataStream<T> {
        self.stream
    }
}
