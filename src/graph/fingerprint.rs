//! The digest by which processes know that they mean the same job graph.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::{Determinacy, JobEdge, JobVertex, Partitioner};
use crate::coordinator::SplitEnumeratorFactory;
use crate::message::SourceSplit;

#[derive(Serialize)]
struct Structure<'a> {
    name: &'a str,
    options: &'a [(String, String)],
    vertices: Vec<VertexStructure<'a>>,
    /// Producer, consumer, partitioner.
    edges: Vec<(u32, u32, &'static str)>,
}

#[derive(Serialize)]
struct VertexStructure<'a> {
    name: &'a str,
    parallelism: Option<u32>,
    max_parallelism: Option<u32>,
    splits: Vec<SourceSplit>,
    determinacy: &'static str,
    uids: &'a [String],
}

/// XXH3 (64 bits, no seed) over the postcard encoding of everything that the scheduler sees, source
/// splits included. The encoding is the same on every platform.
pub(super) fn fingerprint(
    name: &str,
    options: &[(String, String)],
    vertices: &[JobVertex],
    edges: &[JobEdge],
) -> u64 {
    let structure = Structure {
        name,
        options,
        vertices: vertices
            .iter()
            .map(|vertex| VertexStructure {
                name: &vertex.name,
                parallelism: vertex.parallelism,
                max_parallelism: vertex.max_parallelism,
                splits: vertex.source.as_ref().map_or_else(Vec::new, |source| input(source.as_ref())),
                determinacy: determinacy_name(vertex.determinacy),
                uids: &vertex.uids,
            })
            .collect(),
        edges: edges
            .iter()
            .map(|edge| (edge.producer.0, edge.consumer.0, partitioner_name(edge.partitioner)))
            .collect(),
    };
    xxh3_64(&postcard::to_stdvec(&structure).expect("plain data always has an encoding"))
}

/// The splits, or the paths of the files from which they follow: what is there is not known here.
fn input(source: &dyn SplitEnumeratorFactory) -> Vec<SourceSplit> {
    let paths = source.paths().into_iter().zip(0..);
    let paths = paths.map(|(path, id)| SourceSplit { id, payload: path.into_bytes().into() });
    source.splits().into_iter().chain(paths).collect()
}

const fn determinacy_name(determinacy: Determinacy) -> &'static str {
    match determinacy {
        Determinacy::Determinate => "determinate",
        Determinacy::Unordered => "unordered",
        Determinacy::Indeterminate => "indeterminate",
    }
}

const fn partitioner_name(partitioner: Partitioner) -> &'static str {
    match partitioner {
        Partitioner::Forward => "forward",
        Partitioner::Hash => "hash",
        Partitioner::Rebalance => "rebalance",
        Partitioner::Shuffle => "shuffle",
        Partitioner::Custom => "custom",
        Partitioner::Rescale => "rescale",
        Partitioner::Broadcast => "broadcast",
    }
}
