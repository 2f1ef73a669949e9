//! What an actor waits for: its disk operations under way, each with what it is for.

use std::collections::BTreeMap;

use super::DiskOpId;

/// Hands out operation numbers and remembers a value for each until it completes.
#[derive(Debug)]
pub struct Pending<T> {
    next: u64,
    waiting: BTreeMap<DiskOpId, T>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { next: 1, waiting: BTreeMap::new() }
    }
}

impl<T> Pending<T> {
    pub fn begin(&mut self, what: T) -> DiskOpId {
        let op = DiskOpId(self.next);
        self.next += 1;
        self.waiting.insert(op, what);
        op
    }

    /// What the completed operation was for; `None` if it is not one of ours or is forgotten.
    pub fn complete(&mut self, op: DiskOpId) -> Option<T> {
        self.waiting.remove(&op)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets all operations: their completions will mean nothing.
    pub fn forget_all(&mut self) {
        self.waiting.clear();
    }
}
