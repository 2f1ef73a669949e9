//! What an operator knows while it runs: its name, its task, and how much its chain wrote since it
//! last settled.

use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use crate::task::{BodyError, TaskContext};

/// An operator's view of its task. Clones share the task.
#[derive(Clone, Debug)]
pub struct OperatorContext {
    name: Arc<str>,
    task: TaskContext,
    unsettled: Rc<Cell<usize>>,
}

/// A chain settles when it wrote this many bytes, about one network buffer.
const BATCH_BYTES: usize = 32 << 10;

impl OperatorContext {
    pub(super) fn new(name: Arc<str>, task: TaskContext) -> Self {
        Self { name, task, unsettled: Rc::default() }
    }

    /// The same task, seen by another operator of its chain.
    pub(super) fn named(&self, name: Arc<str>) -> Self {
        Self { name, ..self.clone() }
    }

    pub fn operator(&self) -> &str {
        &self.name
    }

    pub fn task(&self) -> &TaskContext {
        &self.task
    }

    /// The failure of this operator.
    pub fn error(&self, message: impl Display) -> BodyError {
        BodyError { operator: self.name.to_string(), message: message.to_string() }
    }

    /// Bytes went to an output or wait in a sink.
    pub(super) fn wrote(&self, bytes: usize) {
        self.unsettled.set(self.unsettled.get() + bytes);
    }

    /// Whether enough was written that the chain should settle before it takes more; then counts
    /// from the start.
    pub(super) fn settling_is_due(&self) -> bool {
        let due = self.unsettled.get() >= BATCH_BYTES;
        if due {
            self.unsettled.set(0);
        }
        due
    }
}
