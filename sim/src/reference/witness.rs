//! What the interpreter must be told about a run, because the run was free to choose it.

use revenant::message::IndexRange;

/// By vertex, in the job graph's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    pub vertices: Vec<VertexWitness>,
}

/// By subtask; the number of subtasks is the vertex's parallelism.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VertexWitness {
    /// (partitions, subpartitions) that the subtask read, by gate.
    pub inputs: Vec<Vec<(IndexRange, IndexRange)>>,
    /// Splits that the subtask consumed, in order.
    pub splits: Vec<Vec<u32>>,
}

impl VertexWitness {
    pub fn parallelism(&self) -> u32 {
        self.splits.len() as u32
    }
}
