//! Takes the witness of a run: what the finishes that the commit stands on consumed, and how the
//! vertices were cut. The reference interpreter replays it.

use revenant::ids::ExecutionVertexId;

use super::History;
use crate::reference::{VertexWitness, Witness};

/// `None` if the subtasks were never all finished.
pub fn witness(history: &History) -> Option<Witness> {
    let at = history.complete?;
    let vertices = history.graph.vertices.iter().map(|vertex| {
        let decision = history.initialized(vertex.id, at)?;
        let splits = (0..decision.parallelism)
            .map(|subtask| {
                let finish = history.counted(ExecutionVertexId::new(vertex.id, subtask), at)?;
                Some(finish.splits.to_vec())
            })
            .collect::<Option<_>>()?;
        Some(VertexWitness { inputs: decision.inputs.clone(), splits })
    });
    Some(Witness { vertices: vertices.collect::<Option<_>>()? })
}
