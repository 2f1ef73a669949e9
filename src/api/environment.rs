//! Where a job's description begins.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::connectors::Source;
use crate::coordinator::{SplitAssignment, SplitEnumeratorFactory};
use crate::graph::{GraphError, JobGraph, NodeKind, StreamGraph, StreamNode};
use crate::message::SourceSplit;
use crate::operators::{RecordType, read_source};

use super::DataStream;

/// Collects the description of one job (Flink's class of this name).
#[derive(Default)]
pub struct StreamExecutionEnvironment {
    graph: Rc<RefCell<StreamGraph>>,
}

impl StreamExecutionEnvironment {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parallelism of all operators that say none. Without it, the scheduler decides.
    pub fn set_parallelism(&mut self, parallelism: u32) {
        self.graph.borrow_mut().default_parallelism = Some(parallelism);
    }

    /// The records of a source; the operator is called `Source: <name>`.
    pub fn from_source<S: Source>(&mut self, name: &str, source: S) -> DataStream<S::Record> {
        let source = Arc::new(source);
        let kind = NodeKind::Source {
            head: read_source(Arc::clone(&source)),
            enumerator: Arc::new(Enumerator(source)),
        };
        let node = StreamNode::new(format!("Source: {name}"), kind, RecordType::of::<S::Record>());
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
        let encode = |split: &S::Split| {
            // Only a hand-written encoding can fail; its reader then says that it cannot decode.
            postcard::to_stdvec(split).map(Bytes::from).unwrap_or_default()
        };
        let splits = self.0.splits();
        splits.iter().zip(0..).map(|(split, id)| SourceSplit { id, payload: encode(split) }).collect()
    }

    fn assignment(&self) -> SplitAssignment {
        self.0.assignment()
    }

    fn supports_batch_snapshot(&self) -> bool {
        self.0.supports_batch_snapshot()
    }
}
