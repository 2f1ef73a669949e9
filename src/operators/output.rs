//! [`Out`]: where sources and window functions push their results, and how a failure below them
//! ends their task without their help.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::task::BodyError;

use super::OperatorContext;
use super::chain::Push;

/// The first failure below a user function that only knows records. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Rc<RefCell<Option<BodyError>>>);

impl Failure {
    /// Fails the task. Never returns: whoever runs the function by [`Self::unless`] drops it.
    pub(super) async fn fail<T>(&self, error: BodyError) -> T {
        self.0.borrow_mut().get_or_insert(error);
        pending().await
    }

    /// Runs `function` to its end or to the first failure.
    pub(super) async fn unless<F: Future>(&self, function: F) -> Result<F::Output, BodyError> {
        let mut function = pin!(function);
        poll_fn(|task| {
            let polled = function.as_mut().poll(task);
            match (self.0.borrow_mut().take(), polled) {
                (Some(error), _) => Poll::Ready(Err(error)),
                (None, Poll::Ready(output)) => Poll::Ready(Ok(output)),
                (None, Poll::Pending) => Poll::Pending,
            }
        })
        .await
    }
}

/// Takes the results of a source or a window function (Flink's `Collector`).
///
/// ```
/// # use revenant::api::{Out, Records};
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let window = env.from_collection("numbers", 1..4).full_window_partition();
///     let halves = window.map_partition(async |records: &mut Records<i32>, out: &Out<i32>| {
///         while let Some(number) = records.next().await {
///             match number % 2 {
///                 0 => out.collect(number / 2).await,
///                 _ => out.add_to_accumulator("odd", 1),
///             }
///         }
///         Ok(())
///     });
///     halves.collect("halves");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("halves")?, [1]);
/// assert_eq!(result.accumulators().get("odd"), Some(&2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Out<T> {
    context: OperatorContext,
    failure: Failure,
    /// Empty while a [`Self::collect`] makes room.
    push: Cell<Option<Box<dyn Push<T>>>>,
    /// What other collects bring meanwhile.
    waiting: RefCell<VecDeque<T>>,
}

impl<T> Out<T> {
    /// Opens the chain behind the operator, which is then the one that runs.
    pub(super) fn open(
        context: &OperatorContext,
        failure: &Failure,
        mut push: Box<dyn Push<T>>,
    ) -> Result<Self, BodyError> {
        push.open()?;
        context.enter();
        let (context, failure) = (context.clone(), failure.clone());
        Ok(Self { context, failure, push: Cell::new(Some(push)), waiting: RefCell::default() })
    }

    /// Gives one result to the operators behind this one, and waits until the task's outputs have
    /// room. When one of them fails the task fails, and this never returns. The future must be
    /// awaited to its end: one that is dropped midway fails the task.
    pub fn collect(&self, record: T) -> impl Future<Output = ()> {
        Collect::Asked(self, record)
    }

    /// Pushes the record. What is then left to wait for, if anything.
    #[inline]
    fn push(&self, record: T) -> Option<Waiting<'_>> {
        let Some(mut push) = self.push.take() else {
            self.waiting.borrow_mut().push_back(record);
            return None;
        };
        let pushed = push.push(record);
        let settle = self.context.settling_is_due();
        if pushed.is_err() || settle || !self.context.task().has_room() {
            return Some(self.make_room(push, pushed, settle));
        }
        self.push.set(Some(push));
        self.context.enter();
        None
    }

    /// In a box, so that what is done for every record stays small enough to be inlined.
    #[cold]
    fn make_room(
        &self,
        mut push: Box<dyn Push<T>>,
        pushed: Result<(), BodyError>,
        settle: bool,
    ) -> Waiting<'_> {
        Box::pin(async move {
            if let Err(error) = self.deliver(&mut push, pushed, settle).await {
                self.failure.fail::<()>(error).await;
            }
            self.push.set(Some(push));
            self.context.enter();
        })
    }

    /// Adds to a sum of the whole job (Flink's LongCounter). It counts when this attempt is accepted as
    /// its subtask's finish, and then once, whatever is lost and recovered afterwards.
    pub fn add_to_accumulator(&self, name: &str, value: i64) {
        self.context.task().add_to_accumulator(name, value);
    }

    /// Waits after a push until there is room, and pushes what other collects bring meanwhile.
    async fn deliver(
        &self,
        push: &mut Box<dyn Push<T>>,
        mut pushed: Result<(), BodyError>,
        mut settle: bool,
    ) -> Result<(), BodyError> {
        loop {
            pushed?;
            if settle {
                push.settle().await?;
            }
            self.context.task().room().await;
            let Some(next) = self.waiting.borrow_mut().pop_front() else { return Ok(()) };
            pushed = push.push(next);
            settle = self.context.settling_is_due();
        }
    }

    pub(super) async fn finish(self) -> Result<(), BodyError> {
        let Some(mut push) = self.push.take() else {
            return Err(self.context.error("a call of `collect` was dropped before it was done"));
        };
        push.finish().await
    }
}

type Waiting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Delivers a record. Written by hand, and with a box for what has to wait, so that delivering one for
/// which there is room is inlined into the function's loop.
enum Collect<'a, T> {
    Asked(&'a Out<T>, T),
    Waiting(Waiting<'a>),
    Done,
}

/// The record is only ever moved.
impl<T> Unpin for Collect<'_, T> {}

impl<T> Future for Collect<'_, T> {
    type Output = ();

    #[allow(clippy::inline_always, reason = "measured: as for the records that a function takes")]
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut waiting = match mem::replace(&mut *self, Self::Done) {
            Self::Asked(out, record) => match out.push(record) {
                None => return Poll::Ready(()),
                Some(waiting) => waiting,
            },
            Self::Waiting(waiting) => waiting,
            Self::Done => return Poll::Pending,
        };
        let polled = waiting.as_mut().poll(task);
        if polled.is_pending() {
            *self = Self::Waiting(waiting);
        }
        polled
    }
}
