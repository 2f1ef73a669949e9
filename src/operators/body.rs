//! The body of a job vertex: its head and the tree of operators chained behind it, put together
//! anew for every attempt.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::task::{BodyError, TaskBody, TaskBodyFactory, TaskContext, guarded};

use super::chain::{AnyPush, Fan, Tail};
use super::{Head, Leaf, Link, OperatorContext};

/// All that runs in one task.
pub struct VertexBody {
    /// Of the operator that a failure of the head names.
    pub name: Arc<str>,
    pub head: Head,
    pub downstream: Downstream,
}

/// Where an operator's results go.
pub struct Downstream {
    pub outputs: Vec<Output>,
    pub fan: Fan,
}

pub enum Output {
    Chained(ChainedOperator),
    Sink {
        name: Arc<str>,
        leaf: Leaf,
    },
    /// To output `index` of the task.
    Exchange {
        index: usize,
        tail: Tail,
    },
}

pub struct ChainedOperator {
    pub name: Arc<str>,
    pub link: Link,
    pub downstream: Downstream,
}

impl Downstream {
    /// `context` is that of the operator whose results these are.
    fn start(&self, context: &OperatorContext) -> AnyPush {
        let pushes = self.outputs.iter().map(|output| match output {
            Output::Chained(operator) => {
                let context = context.named(Arc::clone(&operator.name));
                (operator.link)(&context, operator.downstream.start(&context))
            }
            Output::Sink { name, leaf } => leaf(&context.named(Arc::clone(name))),
            Output::Exchange { index, tail } => tail(context, *index),
        });
        (self.fan)(pushes.collect())
    }
}

/// A panic of the chain becomes the failure of the operator whose code it was.
async fn named_panics(context: OperatorContext, mut body: TaskBody) -> Result<(), BodyError> {
    poll_fn(|task| match guarded(|| body.as_mut().poll(task)) {
        Ok(polled) => polled,
        Err(panic) => Poll::Ready(Err(context.error_of_running(format_args!("panicked: {panic}")))),
    })
    .await
}

impl TaskBodyFactory for VertexBody {
    fn start(&self, task: TaskContext) -> TaskBody {
        let context = OperatorContext::new(Arc::clone(&self.name), task);
        let push = self.downstream.start(&context);
        let body = (self.head)(context.clone(), push);
        Box::pin(named_panics(context, body))
    }
}
