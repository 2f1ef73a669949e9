//! Where a job's description begins.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use crate::connectors::{CollectionSource, Source};
use crate::coordinator::{SplitAssignment, SplitEnumeratorFactory};
use crate::disk::DirectoryEntry;
use crate::graph::{Determinacy, GraphError, JobGraph, NodeKind, StreamGraph, StreamNode};
use crate::message::SourceSplit;
use crate::operators::{RecordType, read_source, run_source};

use super::{DataStream, Record, SourceFunction};

/// Collects the description of one job (Flink's class of this name).
///
/// ```
/// use revenant::api::StreamExecutionEnvironment;
///
/// let mut env = StreamExecutionEnvironment::new();
/// env.set_parallelism(3); // Of all operators that say no other.
/// let words = env.from_collection("words", ["to", "be"].map(String::from));
/// words.map(|word| word.len()).collect("lengths");
/// let graph = env.job_graph("lengths")?;
/// assert_eq!(graph.vertices[0].name, "Source: words");
/// assert_eq!(graph.vertices[1].name, "Map -> Sink: collect lengths");
/// assert_eq!((graph.vertices[0].parallelism, graph.vertices[1].parallelism), (Some(1), Some(3)));
/// # Ok::<(), revenant::graph::GraphError>(())
/// ```
#[derive(Default)]
pub struct StreamExecutionEnvironment {
    graph: Rc<RefCell<StreamGraph>>,
}

impl StreamExecutionEnvironment {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an option for this job: `parallelism.default`, `execution.runtime-mode` (BATCH, or
    /// AUTOMATIC, which is the same),
    /// or one of the cluster's that this job wants otherwise: those that begin with
    /// `execution.batch.adaptive.`, `execution.sort-` and `restart-strategy.`. What is wrong is said
    /// when the graph is built.
    ///
    /// ```
    /// # use revenant::api::{JobError, JobParameters, StreamExecutionEnvironment};
    /// fn job(env: &mut StreamExecutionEnvironment, _: &JobParameters) -> Result<(), JobError> {
    ///     env.configure("execution.sort-partition.memory", "16 mb");
    ///     env.configure("restart-strategy.type", "fixed-delay");
    ///     // …
    /// #   Ok(())
    /// }
    /// ```
    pub fn configure(&mut self, key: &str, value: &str) {
        self.graph.borrow_mut().options.push((key.to_owned(), value.to_owned()));
    }

    /// Parallelism of all operators that say none; windows on streams without keys have that of their
    /// input. Without it, the scheduler decides.
    pub fn set_parallelism(&mut self, parallelism: u32) {
        self.graph.borrow_mut().default_parallelism = Some(parallelism);
    }

    /// The records of a source; the operator is called `Source: <name>`.
    ///
    /// ```
    /// # use revenant::connectors::NumberSequenceSource;
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let numbers = env.from_source("numbers", NumberSequenceSource::new(1, 101, 4));
    ///     numbers.rebalance().full_window_partition().reduce(|a, b| a + b).set_parallelism(1).collect("sum");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i64>("sum")?, [5050]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_source<S: Source>(&mut self, name: &str, source: S) -> DataStream<S::Record> {
        let source = Arc::new(source);
        let kind = NodeKind::Source {
            head: read_source(Arc::clone(&source)),
            enumerator: Some(Arc::new(Enumerator(source))),
        };
        let node = StreamNode::new(format!("Source: {name}"), kind, RecordType::of::<S::Record>());
        DataStream::of_node(&self.graph, node)
    }

    /// The records of a list, in its order, as one subtask. They go along with the job's graph: this is
    /// for examples, tests and small tables. A list in several splits is read by
    /// [`CollectionSource`] and [`Self::from_source`].
    ///
    /// ```
    /// # use revenant::api::{StreamExecutionEnvironment};
    /// # use revenant::connectors::CsvSink;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Clone, Serialize, Deserialize)]
    /// struct Word {
    ///     word: String,
    ///     length: usize,
    /// }
    ///
    /// let mut env = StreamExecutionEnvironment::new();
    /// env.from_collection("words", ["to", "be"].map(str::to_owned))
    ///     .map(|word| Word { length: word.len(), word })
    ///     .sink_to(CsvSink::new("words"));
    /// assert_eq!(env.job_graph("words")?.vertices[0].name, "Source: words -> Map -> Sink: csv");
    /// # Ok::<(), revenant::graph::GraphError>(())
    /// ```
    pub fn from_collection<T: Record + Send + Sync>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
    ) -> DataStream<T> {
        self.from_source(name, CollectionSource::new(items)).set_parallelism(1)
    }

    /// The records of a function that emits them all, as one subtask; the operator is called
    /// `Source: <name>`. For jobs without recovery: nobody can record how far such a source is. It
    /// counts as indeterminate unless the author says otherwise.
    ///
    /// ```
    /// # use revenant::api::{FunctionError, Out, SourceFunction};
    /// # use revenant::runtime::run;
    /// struct Fibonacci;
    ///
    /// impl SourceFunction for Fibonacci {
    ///     type Record = u32;
    ///
    ///     async fn run(&self, out: &Out<u32>) -> Result<(), FunctionError> {
    ///         let (mut number, mut next) = (1, 1);
    ///         while number < 20 {
    ///             out.collect(number).await;
    ///             (number, next) = (next, number + next);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let result = run(|env| {
    ///     env.add_source("fibonacci", Fibonacci).collect("numbers");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<u32>("numbers")?, [1, 1, 2, 3, 5, 8, 13]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn add_source<S: SourceFunction>(&mut self, name: &str, function: S) -> DataStream<S::Record> {
        let kind = NodeKind::Source { head: run_source(function), enumerator: None };
        let mut node = StreamNode::new(format!("Source: {name}"), kind, RecordType::of::<S::Record>());
        node.parallelism = Some(1);
        node.determinacy = Determinacy::Indeterminate;
        node.recovery_obstacle = Some("is a source without splits: read it by from_source");
        DataStream::of_node(&self.graph, node)
    }

    /// The job graph of what was described.
    pub fn job_graph(&self, name: &str) -> Result<JobGraph, GraphError> {
        self.graph.borrow().job_graph(name)
    }
}

/// Numbers and encodes a source's splits.
struct Enumerator<S>(Arc<S>);

impl<S: Source> SplitEnumeratorFactory for Enumerator<S> {
    fn splits(&self) -> Vec<SourceSplit> {
        encode(&self.0.splits())
    }

    fn paths(&self) -> Vec<String> {
        self.0.paths()
    }

    fn splits_of(&self, files: &[DirectoryEntry]) -> Vec<SourceSplit> {
        encode(&self.0.splits_of(files))
    }

    fn assignment(&self) -> SplitAssignment {
        self.0.assignment()
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.0.supports_batch_snapshot()
    }
}

fn encode<S: Serialize>(splits: &[S]) -> Vec<SourceSplit> {
    let payload = |split: &S| {
        // Only a hand-written encoding can fail; its reader then says that it cannot decode.
        postcard::to_stdvec(split).map(Bytes::from).unwrap_or_default()
    };
    splits.iter().zip(0..).map(|(split, id)| SourceSplit { id, payload: payload(split) }).collect()
}
