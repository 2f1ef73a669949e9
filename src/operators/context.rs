//! What an operator knows while it runs: its name and its task. All operators of a chain share one
//! gauge, which says how much went out since the chain last made room.

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
    gauge: Rc<Gauge>,
}

/// What a chain pushed since it last waited for room.
#[derive(Debug, Default)]
struct Gauge {
    bytes: Cell<usize>,
    records: Cell<usize>,
}

/// A chain makes room when it wrote this many bytes, about one network buffer, ...
const BATCH_BYTES: usize = 32 << 10;
/// ... or took this many records, so that a chain that drops all of them still lets a cancel in.
const BATCH_RECORDS: usize = 1024;

impl OperatorContext {
    pub(super) fn new(name: Arc<str>, task: TaskContext) -> Self {
        Self { name, task, gauge: Rc::default() }
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

    pub(super) fn wrote(&self, bytes: usize) {
        self.gauge.bytes.set(self.gauge.bytes.get() + bytes);
    }

    pub(super) fn took_record(&self) {
        self.gauge.records.set(self.gauge.records.get() + 1);
    }

    /// Whether enough went out that the chain should make room before it takes more.
    pub(super) fn room_is_due(&self) -> bool {
        self.gauge.bytes.get() >= BATCH_BYTES || self.gauge.records.get() >= BATCH_RECORDS
    }

    /// Waits until the task's outputs have room.
    pub(super) async fn room(&self) {
        self.gauge.bytes.set(0);
        self.gauge.records.set(0);
        self.task.room().await;
    }
}
