//! The job as its author describes it: one node for each operator, with the exchanges that were
//! asked for. It keeps what the API was told and checks nothing; misuse that only the API can see
//! is noted here and refused when the job graph is built.

use std::sync::Arc;

use crate::coordinator::SplitEnumeratorFactory;
use crate::operators::{Head, Leaf, Link, RecordType, Tail};

use super::{Determinacy, GraphError};

/// A node by its position. A node's inputs come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// All operators of a job (Flink's class of this name).
#[derive(Default)]
pub struct StreamGraph {
    pub nodes: Vec<StreamNode>,
    /// Of nodes that say none.
    pub default_parallelism: Option<u32>,
    /// As the author gave them.
    pub options: Vec<(String, String)>,
    pub misuses: Vec<GraphError>,
}

/// An operator.
pub struct StreamNode {
    pub name: String,
    pub kind: NodeKind,
    pub inputs: Vec<StreamEdge>,
    /// Of the results; of the records for a sink.
    pub record: RecordType,
    /// The author's own id of the operator, which no other has.
    pub uid: Option<String>,
    pub parallelism: Option<u32>,
    pub max_parallelism: Option<u32>,
    /// Of the operator alone, its inputs being the same.
    pub determinacy: Determinacy,
    /// Why no job with this operator can recover, and what would help.
    pub recovery_obstacle: Option<&'static str>,
}

/// What an operator does, and how it stands in a chain.
pub enum NodeKind {
    Source {
        head: Head,
        /// None if it has no splits and so runs as one subtask.
        enumerator: Option<Arc<dyn SplitEnumeratorFactory>>,
    },
    /// Chained where its input allows it; otherwise `head` reads for it.
    Push { head: Head, link: Link },
    /// Pulls its input, so it always begins a chain.
    Window { head: Head },
    /// Chained like a push operator.
    Sink {
        head: Head,
        leaf: Leaf,
        /// The place that no other sink may have, or what is wrong with the sink.
        target: Result<String, String>,
    },
}

/// Where an operator's records come from.
#[derive(Clone)]
pub struct StreamEdge {
    pub producer: NodeId,
    pub exchange: Exchange,
}

/// How records travel, as far as the author said.
#[derive(Clone)]
pub enum Exchange {
    /// Forward if the parallelisms allow it, otherwise rebalance.
    Unspecified,
    /// Subtask to subtask; the parallelisms must allow it.
    Forward,
    Rebalance,
    Shuffle,
    Rescale,
    Broadcast,
    /// With the tail that knows the key.
    Hash(Tail),
    /// With the tail that knows the author's partitioner.
    Custom(Tail),
}

impl StreamGraph {
    pub fn add(&mut self, node: StreamNode) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    pub fn node(&self, id: NodeId) -> &StreamNode {
        &self.nodes[id.0]
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut StreamNode {
        &mut self.nodes[id.0]
    }

    /// The operators' names, for a message.
    pub fn names(&self, ids: &[NodeId]) -> String {
        let names: Vec<String> = ids.iter().map(|id| format!("'{}'", self.node(*id).name)).collect();
        names.join(" and ")
    }
}

impl StreamNode {
    pub fn new(name: String, kind: NodeKind, record: RecordType) -> Self {
        Self {
            name,
            kind,
            inputs: Vec::new(),
            record,
            uid: None,
            parallelism: None,
            max_parallelism: None,
            determinacy: Determinacy::Determinate,
            recovery_obstacle: None,
        }
    }

    pub fn rename(&mut self, name: &str) {
        self.name = match self.kind {
            NodeKind::Source { .. } => format!("Source: {name}"),
            NodeKind::Sink { .. } => format!("Sink: {name}"),
            NodeKind::Push { .. } | NodeKind::Window { .. } => name.to_owned(),
        };
    }
}
