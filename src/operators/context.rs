//! What an operator knows while it runs: its name, its task, how much its chain wrote since it last
//! settled, and whose code of the chain is running.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use crate::task::{BodyError, TaskContext};

/// An operator's view of its task. Clones share the task.
#[derive(Clone, Debug)]
pub struct OperatorContext {
    name: Arc<str>,
    /// Its place in the chain's names.
    place: usize,
    task: TaskContext,
    chain: Rc<Chain>,
}

/// What the operators of a chain share.
#[derive(Debug, Default)]
struct Chain {
    names: RefCell<Vec<Arc<str>>>,
    running: Cell<usize>,
    unsettled: Cell<usize>,
}

/// A chain settles when it wrote this many bytes, about one network buffer.
const BATCH_BYTES: usize = 32 << 10;

impl OperatorContext {
    /// Of the first operator of a chain.
    pub(super) fn new(name: Arc<str>, task: TaskContext) -> Self {
        let chain = Rc::new(Chain::default());
        chain.names.borrow_mut().push(Arc::clone(&name));
        Self { name, place: 0, task, chain }
    }

    /// The same task, seen by another operator of its chain.
    pub(super) fn named(&self, name: Arc<str>) -> Self {
        let mut names = self.chain.names.borrow_mut();
        names.push(Arc::clone(&name));
        let place = names.len() - 1;
        Self { name, place, task: self.task.clone(), chain: Rc::clone(&self.chain) }
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

    /// The author's code of this operator runs from here on: a panic is its.
    pub(super) fn enter(&self) {
        self.chain.running.set(self.place);
    }

    /// The failure of the operator whose code ran last.
    pub(super) fn error_of_running(&self, message: impl Display) -> BodyError {
        let names = self.chain.names.borrow();
        let operator = names.get(self.chain.running.get()).unwrap_or(&self.name).to_string();
        BodyError { operator, message: message.to_string() }
    }

    /// Bytes went to an output or wait in a sink.
    pub(super) fn wrote(&self, bytes: usize) {
        self.chain.unsettled.set(self.chain.unsettled.get() + bytes);
    }

    /// Whether enough was written that the chain should settle before it takes more; then counts
    /// from the start.
    pub(super) fn settling_is_due(&self) -> bool {
        let due = self.chain.unsettled.get() >= BATCH_BYTES;
        if due {
            self.chain.unsettled.set(0);
        }
        due
    }
}
