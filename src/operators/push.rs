//! The push operators: map, filter, flat_map. Each turns one record into records for the next
//! operator at once and keeps nothing.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::task::BodyError;

use super::Link;
use super::chain::{AnyPush, LocalFuture, Push};

struct Map<U, F> {
    function: Arc<F>,
    next: Box<dyn Push<U>>,
}

/// One result for each record (Flink's `StreamMap`).
pub fn map<T: 'static, U: 'static>(function: impl Fn(T) -> U + Send + Sync + 'static) -> Link {
    let function = Arc::new(function);
    Arc::new(move |_, next| {
        AnyPush::new::<T>(Map { function: Arc::clone(&function), next: next.typed::<U>() })
    })
}

impl<T, U, F: Fn(T) -> U> Push<T> for Map<U, F> {
    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.next.push((self.function)(record))
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        self.next.finish()
    }
}

struct Filter<T, F> {
    keep: Arc<F>,
    next: Box<dyn Push<T>>,
}

/// The records that `keep` accepts (Flink's `StreamFilter`).
pub fn filter<T: 'static>(keep: impl Fn(&T) -> bool + Send + Sync + 'static) -> Link {
    let keep = Arc::new(keep);
    Arc::new(move |_, next| AnyPush::new::<T>(Filter { keep: Arc::clone(&keep), next: next.typed::<T>() }))
}

impl<T, F: Fn(&T) -> bool> Push<T> for Filter<T, F> {
    fn push(&mut self, record: T) -> Result<(), BodyError> {
        if (self.keep)(&record) { self.next.push(record) } else { Ok(()) }
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        self.next.finish()
    }
}

struct FlatMap<U, F, I> {
    function: Arc<F>,
    next: Box<dyn Push<U>>,
    iterable: PhantomData<fn() -> I>,
}

/// Any number of results for each record (Flink's `StreamFlatMap`).
pub fn flat_map<T, U, I>(function: impl Fn(T) -> I + Send + Sync + 'static) -> Link
where
    T: 'static,
    U: 'static,
    I: IntoIterator<Item = U> + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |_, next| {
        AnyPush::new::<T>(FlatMap {
            function: Arc::clone(&function),
            next: next.typed::<U>(),
            iterable: PhantomData,
        })
    })
}

impl<T, U, I: IntoIterator<Item = U>, F: Fn(T) -> I> Push<T> for FlatMap<U, F, I> {
    fn push(&mut self, record: T) -> Result<(), BodyError> {
        (self.function)(record).into_iter().try_for_each(|result| self.next.push(result))
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        self.next.finish()
    }
}
