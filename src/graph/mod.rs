//! The job graph: what the scheduler needs to know of a job and what a task needs to run it. It is
//! built by the job's function from its arguments and nothing else, so that every process and every
//! incarnation has the same vertices, edges, ids and [`JobGraph::fingerprint`].

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::config::Configuration;
use crate::coordinator::SplitEnumeratorFactory;
use crate::ids::{IntermediateDataSetId, JobVertexId};
use crate::task::TaskBodyFactory;

mod chaining;
mod error;
mod fingerprint;
mod options;
mod resolve;
mod stream_graph;
#[cfg(test)]
mod tests;

pub use error::GraphError;
pub use stream_graph::{Exchange, NodeId, NodeKind, StreamEdge, StreamGraph, StreamNode};

/// A job after chaining: vertices in topological order, vertex `i` at index `i`; edge `i` carries
/// data set `i`.
pub struct JobGraph {
    pub name: String,
    /// Options of the cluster that are other ones for this job.
    pub options: Vec<(String, String)>,
    pub vertices: Vec<JobVertex>,
    pub edges: Vec<JobEdge>,
    /// Digest of the structure: names, options, parallelisms, edges and partitioners.
    pub fingerprint: u64,
}

/// A chain of operators that runs as one task per subtask.
pub struct JobVertex {
    pub id: JobVertexId,
    /// Names of the chained operators, as in `Source: lineitem -> Filter`.
    pub name: String,
    /// Set by the user, or to be decided.
    pub parallelism: Option<u32>,
    /// Upper bound of a decided parallelism, if the user set one.
    pub max_parallelism: Option<u32>,
    /// In the order of the task's gates.
    pub inputs: Vec<IntermediateDataSetId>,
    /// In the order of the task's outputs.
    pub outputs: Vec<IntermediateDataSetId>,
    /// Makes the enumerator of the vertex's source, if it begins with one.
    pub source: Option<Arc<dyn SplitEnumeratorFactory>>,
    /// The ids that the author gave to the chained operators.
    pub uids: Vec<String>,
    /// Of the whole chain: that of its least determinate operator.
    pub determinacy: Determinacy,
    /// Why a job with this vertex cannot recover from the loss of its JobManager.
    pub recovery_obstacles: Vec<String>,
    pub body: Arc<dyn TaskBodyFactory>,
}

/// An exchange. All are blocking: the consumer starts when the producers are finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEdge {
    pub data_set: IntermediateDataSetId,
    pub producer: JobVertexId,
    pub consumer: JobVertexId,
    pub partitioner: Partitioner,
}

/// How records of one producer are dealt to its subpartitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Partitioner {
    /// One subpartition; consumer subtask `i` reads the partition of producer subtask `i`.
    Forward,
    /// By hash of the key: ALL_TO_ALL.
    Hash,
    /// Round robin, starting at the producer's index modulo the number of subpartitions: ALL_TO_ALL.
    Rebalance,
    /// As if drawn, but the same in every attempt: ALL_TO_ALL.
    Shuffle,
    /// By the author's own function of the key: ALL_TO_ALL.
    Custom,
    /// As rebalance, but each producer deals to a few consumers only: POINTWISE.
    Rescale,
    /// One subpartition, which every consumer reads.
    Broadcast,
}

/// Whether another attempt of a subtask has the same result, its inputs being the same. When one that
/// is not determinate runs again, its consumers run again with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Determinacy {
    /// The same records in the same order.
    #[default]
    Determinate,
    /// The same records, perhaps in another order.
    Unordered,
    /// Perhaps other records.
    Indeterminate,
}

impl Partitioner {
    /// Whether every consumer may get records of every producer.
    pub const fn is_all_to_all(self) -> bool {
        matches!(self, Self::Hash | Self::Rebalance | Self::Shuffle | Self::Custom)
    }
}

impl JobGraph {
    /// The configuration by which this job runs in a cluster with `config`.
    pub fn configured<'a>(&self, config: &'a Configuration) -> Cow<'a, Configuration> {
        let mut config = Cow::Borrowed(config);
        for (key, value) in &self.options {
            // They were checked when the graph was built.
            let _ = config.to_mut().set(key, value);
        }
        config
    }

    pub fn vertex(&self, id: JobVertexId) -> &JobVertex {
        &self.vertices[id.0 as usize]
    }

    pub fn edge(&self, id: IntermediateDataSetId) -> &JobEdge {
        &self.edges[id.0 as usize]
    }
}

impl fmt::Debug for JobGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobGraph")
            .field("name", &self.name)
            .field("options", &self.options)
            .field("vertices", &self.vertices)
            .field("edges", &self.edges)
            .field("fingerprint", &self.fingerprint)
            .finish()
    }
}

impl fmt::Debug for JobVertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobVertex")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("parallelism", &self.parallelism)
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}
