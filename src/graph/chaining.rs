//! From the stream graph to the job graph (Flink's `StreamingJobGraphGenerator`): decides which
//! operators run in one task, and numbers vertices, data sets and outputs. A push operator or sink
//! is chained behind its only input if that edge is forward; everything else begins a chain.
//!
//! Vertices are ordered by the position of their first operator, and an operator comes after its
//! inputs, so this order is topological; edges are ordered by consumer and gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::coordinator::SplitAssignment;
use crate::ids::{IntermediateDataSetId, JobVertexId};
use crate::operators::{ChainedOperator, Downstream, Output, VertexBody};

use super::fingerprint::fingerprint;
use super::options::JobOptions;
use super::resolve::{Resolved, resolve};
use super::{
    Determinacy, Exchange, GraphError, JobEdge, JobGraph, JobVertex, NodeId, NodeKind, Partitioner,
    StreamGraph, StreamNode,
};

impl StreamGraph {
    /// The job graph, or the first thing that is wrong with the job.
    pub fn job_graph(&self, name: &str) -> Result<JobGraph, GraphError> {
        if let Some(misuse) = self.misuses.first() {
            return Err(misuse.clone());
        }
        check_size(self)?;
        let options = JobOptions::of(self)?;
        let resolved = resolve(self, options.parallelism)?;
        let chains = Chains::new(self, &resolved);
        check_ends(self, &chains.consumers)?;
        check_uids(self)?;
        let edges = chains.edges();
        let vertices: Vec<JobVertex> = chains.heads.iter().map(|&head| chains.vertex(head, &edges)).collect();
        let fingerprint = fingerprint(name, &options.cluster, &vertices, &edges);
        Ok(JobGraph { name: name.to_owned(), options: options.cluster, vertices, edges, fingerprint })
    }
}

/// Chains are built and run by recursion, and each input of an operator is one of each of its tasks.
const OPERATORS_MAX: usize = 1000;
const INPUTS_MAX: usize = 1000;

fn check_size(graph: &StreamGraph) -> Result<(), GraphError> {
    let (count, max) = (graph.nodes.len(), OPERATORS_MAX);
    if count > max {
        return Err(GraphError::TooManyOperators { count, max });
    }
    match graph.nodes.iter().find(|node| node.inputs.len() > INPUTS_MAX) {
        None => Ok(()),
        Some(node) => Err(GraphError::TooManyInputs {
            operator: node.name.clone(),
            count: node.inputs.len(),
            max: INPUTS_MAX,
        }),
    }
}

/// Every stream ends in a sink, and every sink has a place of its own.
fn check_ends(graph: &StreamGraph, consumers: &[Vec<Consumer>]) -> Result<(), GraphError> {
    let mut targets: BTreeMap<&str, &str> = BTreeMap::new();
    for node in &graph.nodes {
        let NodeKind::Sink { target, .. } = &node.kind else { continue };
        let target = target
            .as_ref()
            .map_err(|problem| GraphError::Sink { operator: node.name.clone(), problem: problem.clone() })?;
        if let Some(first) = targets.insert(target, &node.name) {
            return Err(GraphError::SameTarget {
                first: first.to_owned(),
                second: node.name.clone(),
                target: target.clone(),
            });
        }
    }
    if targets.is_empty() {
        return Err(GraphError::NoSink);
    }
    let dangling = graph
        .nodes
        .iter()
        .zip(consumers)
        .find(|(node, consumers)| consumers.is_empty() && !matches!(node.kind, NodeKind::Sink { .. }));
    dangling.map_or(Ok(()), |(node, _)| Err(GraphError::GoesNowhere { operator: node.name.clone() }))
}

fn check_uids(graph: &StreamGraph) -> Result<(), GraphError> {
    let mut uids: BTreeMap<&str, &str> = BTreeMap::new();
    for node in &graph.nodes {
        let Some(uid) = &node.uid else { continue };
        if let Some(first) = uids.insert(uid, &node.name) {
            return Err(GraphError::SameUid {
                first: first.to_owned(),
                second: node.name.clone(),
                uid: uid.clone(),
            });
        }
    }
    Ok(())
}

/// Input number `gate` of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Consumer {
    node: usize,
    gate: usize,
}

struct Chains<'a> {
    graph: &'a StreamGraph,
    resolved: &'a [Resolved],
    /// Who takes each node's results.
    consumers: Vec<Vec<Consumer>>,
    /// The first nodes of the vertices, in the order of the vertices.
    heads: Vec<usize>,
    /// The vertex that each node runs in.
    vertex_of: Vec<JobVertexId>,
}

impl<'a> Chains<'a> {
    fn new(graph: &'a StreamGraph, resolved: &'a [Resolved]) -> Self {
        let mut consumers = vec![Vec::new(); graph.nodes.len()];
        let mut heads = Vec::new();
        let mut vertex_of: Vec<JobVertexId> = Vec::new();
        for (node, description) in graph.nodes.iter().enumerate() {
            for (gate, edge) in description.inputs.iter().enumerate() {
                consumers[edge.producer.0].push(Consumer { node, gate });
            }
            let vertex = chained_behind(description, &resolved[node]).map_or_else(
                || {
                    heads.push(node);
                    JobVertexId(heads.len() as u32 - 1)
                },
                |producer| vertex_of[producer.0],
            );
            vertex_of.push(vertex);
        }
        Self { graph, resolved, consumers, heads, vertex_of }
    }

    fn is_chained(&self, node: usize) -> bool {
        chained_behind(&self.graph.nodes[node], &self.resolved[node]).is_some()
    }

    fn edges(&self) -> Vec<JobEdge> {
        let inputs = self.heads.iter().flat_map(|&head| {
            let partitioners = &self.resolved[head].partitioners;
            self.graph.nodes[head].inputs.iter().zip(partitioners).map(move |(edge, partitioner)| {
                (self.vertex_of[edge.producer.0], self.vertex_of[head], *partitioner)
            })
        });
        inputs
            .zip(0..)
            .map(|((producer, consumer, partitioner), id)| JobEdge {
                data_set: IntermediateDataSetId(id),
                producer,
                consumer,
                partitioner,
            })
            .collect()
    }

    fn vertex(&self, head: usize, edges: &[JobEdge]) -> JobVertex {
        let id = self.vertex_of[head];
        let node = &self.graph.nodes[head];
        let ids_of = |mine: &dyn Fn(&JobEdge) -> bool| -> Vec<IntermediateDataSetId> {
            edges.iter().filter(|edge| mine(edge)).map(|edge| edge.data_set).collect()
        };
        let outputs = ids_of(&|edge| edge.producer == id);
        let (head_function, source) = match &node.kind {
            NodeKind::Source { head, enumerator } => (head, enumerator.clone()),
            NodeKind::Push { head, .. } | NodeKind::Window { head } | NodeKind::Sink { head, .. } => {
                (head, None)
            }
        };
        let body = VertexBody {
            name: node.name.as_str().into(),
            head: Arc::clone(head_function),
            downstream: match node.kind {
                NodeKind::Source { .. } | NodeKind::Window { .. } => self.downstream(head, &outputs),
                // The head only reads; the operator itself is the first that it pushes to.
                NodeKind::Push { .. } | NodeKind::Sink { .. } => Downstream {
                    fan: self.graph.node(node.inputs[0].producer).record.fan,
                    outputs: vec![self.chained(head, &outputs)],
                },
            },
        };
        JobVertex {
            id,
            name: self.chain_name(head),
            parallelism: self.resolved[head].parallelism,
            max_parallelism: self.resolved[head].max_parallelism,
            inputs: ids_of(&|edge| edge.consumer == id),
            outputs,
            source,
            uids: self.chain(id).filter_map(|node| node.uid.clone()).collect(),
            determinacy: self.chain(id).map(determinacy).max().unwrap_or_default(),
            recovery_obstacles: self
                .chain(id)
                .filter_map(|node| Some(format!("'{}' {}", node.name, node.recovery_obstacle?)))
                .collect(),
            body: Arc::new(body),
        }
    }

    /// The operators of a vertex.
    fn chain(&self, id: JobVertexId) -> impl Iterator<Item = &'a StreamNode> {
        let nodes = self.graph.nodes.iter().zip(&self.vertex_of);
        nodes.filter(move |(_, vertex)| **vertex == id).map(|(node, _)| node)
    }

    fn downstream(&self, node: usize, outputs: &[IntermediateDataSetId]) -> Downstream {
        let output = |consumer: &Consumer| {
            if self.is_chained(consumer.node) {
                self.chained(consumer.node, outputs)
            } else {
                self.exchange(*consumer, outputs)
            }
        };
        Downstream {
            fan: self.graph.nodes[node].record.fan,
            outputs: self.consumers[node].iter().map(output).collect(),
        }
    }

    /// A node as part of a chain.
    fn chained(&self, node: usize, outputs: &[IntermediateDataSetId]) -> Output {
        let description = &self.graph.nodes[node];
        let name = description.name.as_str().into();
        match &description.kind {
            NodeKind::Sink { leaf, .. } => Output::Sink { name, leaf: Arc::clone(leaf) },
            NodeKind::Push { link, .. } => Output::Chained(ChainedOperator {
                name,
                link: Arc::clone(link),
                downstream: self.downstream(node, outputs),
            }),
            NodeKind::Source { .. } | NodeKind::Window { .. } => {
                unreachable!("sources and window operators begin chains")
            }
        }
    }

    /// The way to a consumer in another vertex.
    fn exchange(&self, consumer: Consumer, outputs: &[IntermediateDataSetId]) -> Output {
        // Edges are numbered by consumer vertex and gate.
        let gates_before: usize = self
            .heads
            .iter()
            .take_while(|&&head| head != consumer.node)
            .map(|&head| self.graph.nodes[head].inputs.len())
            .sum();
        let data_set = IntermediateDataSetId((gates_before + consumer.gate) as u32);
        let index = outputs.partition_point(|output| *output < data_set);
        let edge = &self.graph.nodes[consumer.node].inputs[consumer.gate];
        let record = &self.graph.node(edge.producer).record;
        let tail = match (&edge.exchange, self.resolved[consumer.node].partitioners[consumer.gate]) {
            (Exchange::Hash(tail) | Exchange::Custom(tail), _) => tail,
            (_, Partitioner::Shuffle) => &record.shuffle,
            (_, Partitioner::Forward | Partitioner::Broadcast) => &record.single,
            (_, _) => &record.round_robin,
        };
        Output::Exchange { index, tail: Arc::clone(tail) }
    }

    /// `Source: lineitem -> Filter`; several chained consumers stand in brackets.
    fn chain_name(&self, node: usize) -> String {
        let name = &self.graph.nodes[node].name;
        let chained: Vec<String> = self.consumers[node]
            .iter()
            .filter(|consumer| self.is_chained(consumer.node))
            .map(|consumer| self.chain_name(consumer.node))
            .collect();
        match chained.as_slice() {
            [] => name.clone(),
            [one] => format!("{name} -> {one}"),
            several => format!("{name} -> ({})", several.join(", ")),
        }
    }
}

/// What an operator's author says, unless its splits go to whoever asks first.
fn determinacy(node: &StreamNode) -> Determinacy {
    match &node.kind {
        NodeKind::Source { enumerator: Some(enumerator), .. }
            if enumerator.assignment() == SplitAssignment::Dynamic =>
        {
            Determinacy::Indeterminate
        }
        _ => node.determinacy,
    }
}

/// The node behind which this one is chained.
fn chained_behind(node: &StreamNode, resolved: &Resolved) -> Option<NodeId> {
    match (&node.kind, node.inputs.as_slice(), resolved.partitioners.as_slice()) {
        (NodeKind::Push { .. } | NodeKind::Sink { .. }, [input], [Partitioner::Forward]) => {
            Some(input.producer)
        }
        _ => None,
    }
}
