//! The seam inside a chain: [`Push`], and its type-erased form by which the graph joins operators
//! that only the typed API knows.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::api::Record;
use crate::task::BodyError;

use super::OperatorContext;
use super::tail::{RoundRobinTail, ShuffleTail, SingleTail};

pub type LocalFuture<'a> = Pin<Box<dyn Future<Output = Result<(), BodyError>> + 'a>>;

/// Takes records of type `T`, one by one.
pub trait Push<T> {
    /// Before the first record: those behind it first.
    fn open(&mut self) -> Result<(), BodyError>;

    /// Never waits; what has to be written waits for [`Self::settle`].
    fn push(&mut self, record: T) -> Result<(), BodyError>;

    /// Writes what waits. Called between batches of records.
    fn settle(&mut self) -> LocalFuture<'_>;

    /// No record will follow.
    fn finish(&mut self) -> LocalFuture<'_>;
}

/// A `Box<dyn Push<T>>` that forgot its `T`. The typed API only ever connects an operator with a
/// consumer of the same record type, so the type that is asked for is the one that was put in.
pub struct AnyPush(Box<dyn Any>);

impl AnyPush {
    pub fn new<T: 'static>(push: impl Push<T> + 'static) -> Self {
        Self::from_boxed::<T>(Box::new(push))
    }

    fn from_boxed<T: 'static>(push: Box<dyn Push<T>>) -> Self {
        Self(Box::new(push))
    }

    pub fn typed<T: 'static>(self) -> Box<dyn Push<T>> {
        *self.0.downcast::<Box<dyn Push<T>>>().expect("the API connects operators of one record type")
    }
}

/// Makes the push that encodes records for output number `usize` of the task.
pub type Tail = Arc<dyn Fn(&OperatorContext, usize) -> AnyPush + Send + Sync>;

/// Makes one push of several that take the same records.
pub type Fan = fn(Vec<AnyPush>) -> AnyPush;

/// What the graph has to know of the type of an operator's results.
#[derive(Clone)]
pub struct RecordType {
    pub fan: Fan,
    /// Of forward and broadcast edges.
    pub single: Tail,
    /// Of rebalance and rescale edges.
    pub round_robin: Tail,
    /// Of shuffle edges.
    pub shuffle: Tail,
}

impl RecordType {
    pub fn of<T: Record>() -> Self {
        Self {
            fan: fan::<T>,
            single: Arc::new(|context, output| AnyPush::new(SingleTail::<T>::new(context, output))),
            round_robin: Arc::new(|context, output| AnyPush::new(RoundRobinTail::<T>::new(context, output))),
            shuffle: Arc::new(|context, output| AnyPush::new(ShuffleTail::<T>::new(context, output))),
        }
    }
}

fn fan<T: Record>(mut pushes: Vec<AnyPush>) -> AnyPush {
    match pushes.len() {
        1 => pushes.remove(0),
        _ => AnyPush::new(FanOut::<T> { pushes: pushes.into_iter().map(AnyPush::typed).collect() }),
    }
}

/// Gives each record to all consumers, in the order in which they were declared.
struct FanOut<T> {
    pushes: Vec<Box<dyn Push<T>>>,
}

impl<T: Clone> Push<T> for FanOut<T> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.pushes.iter_mut().try_for_each(|push| push.open())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        let Some((last, others)) = self.pushes.split_last_mut() else { return Ok(()) };
        for push in others {
            push.push(record.clone())?;
        }
        last.push(record)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        Box::pin(async {
            for push in &mut self.pushes {
                push.settle().await?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        Box::pin(async {
            for push in &mut self.pushes {
                push.finish().await?;
            }
            Ok(())
        })
    }
}
