//! A sum that a function keeps and adds to while its task runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A sum of the whole job, as far as one subtask adds to it (Flink's class of this name). It counts when
/// the subtask's attempt is accepted as its finish, and then once, whatever is lost and recovered
/// afterwards. Clones are the same sum; one that no runtime context gave out belongs to no job.
#[derive(Clone, Debug, Default)]
pub struct LongCounter(Arc<AtomicI64>);

impl LongCounter {
    pub fn add(&self, value: i64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    /// What this subtask has added so far.
    pub fn local_value(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
