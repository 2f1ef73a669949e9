//! Decides what the author left open: the parallelism of each operator, as far as it can be known
//! before the job runs, and the partitioner of each edge.
//!
//! An edge of which nothing was said is forward if that leaves the consumer's parallelism as it was
//! asked for: when both sides have the same known parallelism, or when the consumer has one such edge
//! and asks for nothing, in which case it takes the producer's, known or to be decided. Otherwise it
//! is a rebalance.
//!
//! The partitions of a window are the subtasks of its input, so a window takes the parallelism of the
//! input over such an edge, whatever the default for operators that say none.

use crate::config::MAX_PARALLELISM;

use super::{Exchange, GraphError, NodeKind, Partitioner, StreamGraph, StreamNode};

/// What is decided for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub parallelism: Option<u32>,
    pub max_parallelism: Option<u32>,
    /// In the order of the node's inputs.
    pub partitioners: Vec<Partitioner>,
}

/// `default` is the parallelism of operators that say none.
pub(super) fn resolve(graph: &StreamGraph, default: Option<u32>) -> Result<Vec<Resolved>, GraphError> {
    let mut resolved: Vec<Resolved> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        check(node, default)?;
        let next = resolve_node(node, default, &resolved);
        check_forward(graph, node, &next, &resolved)?;
        resolved.push(next);
    }
    Ok(resolved)
}

fn check(node: &StreamNode, default: Option<u32>) -> Result<(), GraphError> {
    for parallelism in [node.parallelism.or(default), node.max_parallelism].into_iter().flatten() {
        if !(1..=MAX_PARALLELISM).contains(&parallelism) {
            return Err(GraphError::Parallelism {
                operator: node.name.clone(),
                parallelism,
                max: MAX_PARALLELISM,
            });
        }
    }
    if let (NodeKind::Source { enumerator: None, .. }, Some(parallelism @ 2..)) =
        (&node.kind, node.parallelism)
    {
        return Err(GraphError::ParallelSourceFunction { operator: node.name.clone(), parallelism });
    }
    match (node.parallelism, node.max_parallelism) {
        (Some(parallelism), Some(max_parallelism)) if parallelism > max_parallelism => {
            Err(GraphError::AboveMaximum { operator: node.name.clone(), parallelism, max_parallelism })
        }
        _ => Ok(()),
    }
}

/// An edge that the author wants to be forward is.
fn check_forward(
    graph: &StreamGraph,
    node: &StreamNode,
    resolved: &Resolved,
    before: &[Resolved],
) -> Result<(), GraphError> {
    let edges = node.inputs.iter().zip(&resolved.partitioners);
    let broken = edges.filter(|(edge, _)| matches!(edge.exchange, Exchange::Forward));
    let broken = broken.map(|(edge, partitioner)| (edge.producer, *partitioner));
    let Some((producer, _)) = { broken }.find(|(_, partitioner)| *partitioner != Partitioner::Forward) else {
        return Ok(());
    };
    let people = |parallelism: Option<u32>| {
        parallelism.map_or_else(|| "a parallelism to be decided".to_owned(), |p| format!("parallelism {p}"))
    };
    Err(GraphError::Forward {
        producer: graph.node(producer).name.clone(),
        has: people(before[producer.0].parallelism),
        operator: node.name.clone(),
        own: people(resolved.parallelism),
    })
}

fn resolve_node(node: &StreamNode, default: Option<u32>, before: &[Resolved]) -> Resolved {
    let open: Vec<&Resolved> = node
        .inputs
        .iter()
        .filter(|edge| matches!(edge.exchange, Exchange::Unspecified | Exchange::Forward))
        .map(|edge| &before[edge.producer.0])
        .collect();
    // What the consumer takes over if its open edges are forward.
    let inherited = match open.as_slice() {
        [producer] => Some(*producer),
        [first, others @ ..] if others.iter().all(|other| other.parallelism == first.parallelism) => {
            // Several producers whose parallelism is to be decided may come to different ones.
            first.parallelism.map(|_| *first)
        }
        _ => None,
    };
    let default = default.filter(|&default| node.max_parallelism.is_none_or(|max| default <= max));
    let takes_over = matches!(node.kind, NodeKind::Window { .. }) && inherited.is_some();
    let wanted = node.parallelism.or(default.filter(|_| !takes_over));
    let forward = inherited.filter(|producer| match wanted {
        Some(wanted) => producer.parallelism == Some(wanted),
        None => node.max_parallelism.is_none_or(|max| stays_within(producer, max)),
    });
    let (parallelism, max_parallelism) = match (wanted, forward) {
        (None, Some(producer)) => (producer.parallelism, producer.max_parallelism),
        (wanted, _) => (wanted, node.max_parallelism),
    };
    let partitioner = |exchange: &Exchange, producer: &Resolved| match exchange {
        Exchange::Hash(_) => Partitioner::Hash,
        Exchange::Custom(_) => Partitioner::Custom,
        Exchange::Shuffle => Partitioner::Shuffle,
        Exchange::Rebalance => Partitioner::Rebalance,
        Exchange::Rescale => Partitioner::Rescale,
        Exchange::Broadcast => Partitioner::Broadcast,
        // With a known parallelism each edge stands for itself.
        Exchange::Unspecified | Exchange::Forward if wanted.is_some() && producer.parallelism == wanted => {
            Partitioner::Forward
        }
        Exchange::Unspecified | Exchange::Forward if forward.is_some() => Partitioner::Forward,
        // For a forward that is none, this is refused.
        Exchange::Unspecified | Exchange::Forward => Partitioner::Rebalance,
    };
    let partitioners =
        node.inputs.iter().map(|edge| partitioner(&edge.exchange, &before[edge.producer.0])).collect();
    Resolved { parallelism, max_parallelism, partitioners }
}

/// Whether the producer can never have more than `max` subtasks.
fn stays_within(producer: &Resolved, max: u32) -> bool {
    producer.parallelism.or(producer.max_parallelism).is_some_and(|bound| bound <= max)
}
