//! [`Records`]: what a function on full-window partitions pulls, wherever they come from.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::api::Record;
use crate::task::BodyError;

use super::group::Group;
use super::input::Input;
use super::output::Failure;

/// A partition's records, pulled one by one by a window function. They are read when they are asked
/// for, so a partition may be larger than memory. What is not pulled is not there for anybody else.
///
/// ```
/// # use revenant::api::{Out, Records};
/// # use revenant::runtime::run;
/// let result = run(|env| {
///     let window = env.from_collection("numbers", 0..1000).full_window_partition();
///     let first = window.map_partition(async |records: &mut Records<i32>, out: &Out<i32>| {
///         // The others are not even fetched.
///         for _ in 0..3 {
///             if let Some(record) = records.next().await {
///                 out.collect(record).await;
///             }
///         }
///         Ok(())
///     });
///     first.collect("first");
///     Ok(())
/// })?;
/// assert_eq!(result.collected::<i32>("first")?, [0, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Records<T> {
    failure: Failure,
    pull: Pull<T>,
}

enum Pull<T> {
    /// All that the subtask gets.
    Subtask(Input<T>),
    /// All of one key.
    Key(Group<T>),
}

impl<T: Record> Records<T> {
    pub(super) fn of_subtask(failure: &Failure, input: Input<T>) -> Self {
        Self { failure: failure.clone(), pull: Pull::Subtask(input) }
    }

    pub(super) fn of_key(failure: &Failure, group: Group<T>) -> Self {
        Self { failure: failure.clone(), pull: Pull::Key(group) }
    }

    /// The next record; `None` after the last one, however often it is asked. When the input is
    /// broken the task fails, and this never returns.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot wait")]
    pub fn next(&mut self) -> impl Future<Output = Option<T>> {
        Next::Asked(self)
    }

    /// Folds the records that are left, as [`Iterator::fold`]. Where nothing else is to be done
    /// between two records this is the fastest way to go through them.
    ///
    /// ```
    /// # use revenant::api::{Out, Records};
    /// # use revenant::runtime::run;
    /// let result = run(|env| {
    ///     let window = env.from_collection("numbers", 1..=4_i64).full_window_partition();
    ///     let product = window.map_partition(async |records: &mut Records<i64>, out: &Out<i64>| {
    ///         out.collect(records.fold(1, |product, number| product * number).await).await;
    ///         Ok(())
    ///     });
    ///     product.collect("product");
    ///     Ok(())
    /// })?;
    /// assert_eq!(result.collected::<i64>("product")?, [24]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn fold<A>(&mut self, initial: A, mut function: impl FnMut(A, T) -> A) -> A {
        let mut folded = initial;
        loop {
            if let Pull::Subtask(input) = &mut self.pull {
                folded = input.fold_buffered(folded, &mut function);
            }
            let Some(record) = self.next().await else { return folded };
            folded = function(folded, record);
        }
    }

    #[inline]
    fn at_hand(&mut self) -> Option<T> {
        match &mut self.pull {
            Pull::Subtask(input) => input.buffered(),
            Pull::Key(group) => group.buffered(),
        }
    }

    #[cold]
    fn wait_for_next(&mut self) -> Pin<Box<dyn Future<Output = Option<T>> + '_>> {
        Box::pin(async {
            let next = match &mut self.pull {
                Pull::Subtask(input) => input.next().await,
                Pull::Key(group) => group.next().await,
            };
            match next {
                Ok(record) => record,
                Err(error) => self.failure.fail(error).await,
            }
        })
    }

    /// The function wants no more records: goes to the next key, or to the end.
    pub(super) async fn into_next(self) -> Result<Option<Group<T>>, BodyError> {
        match self.pull {
            Pull::Subtask(mut input) => {
                input.close();
                Ok(None)
            }
            Pull::Key(group) => group.into_next().await,
        }
    }
}

/// Becomes the next record. Written by hand, and with a box for what has to wait, so that taking a
/// record that is at hand is inlined into the function's loop.
enum Next<'a, T> {
    Asked(&'a mut Records<T>),
    Waiting(Pin<Box<dyn Future<Output = Option<T>> + 'a>>),
    Given,
}

impl<T: Record> Future for Next<'_, T> {
    type Output = Option<T>;

    #[allow(
        clippy::inline_always,
        reason = "measured: a call for every record costs as much as its decoding"
    )]
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<T>> {
        let mut waiting = match mem::replace(&mut *self, Self::Given) {
            Self::Asked(records) => {
                if let Some(record) = records.at_hand() {
                    return Poll::Ready(Some(record));
                }
                records.wait_for_next()
            }
            Self::Waiting(next) => next,
            Self::Given => return Poll::Pending,
        };
        let polled = waiting.as_mut().poll(task);
        if polled.is_pending() {
            *self = Self::Waiting(waiting);
        }
        polled
    }
}
