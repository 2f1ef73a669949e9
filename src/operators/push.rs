//! The push operators: map, filter, flat_map. Each turns one record into records for the next
//! operator at once and keeps nothing.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::task::BodyError;

use super::chain::{AnyPush, LocalFuture, Push};
use super::{Link, OperatorContext};

struct Map<U, F> {
    context: OperatorContext,
    function: Arc<F>,
    next: Box<dyn Push<U>>,
}

/// One result for each record (Flink's `StreamMap`).
pub fn map<T: 'static, U: 'static>(function: impl Fn(T) -> U + Send + Sync + 'static) -> Link {
    let function = Arc::new(function);
    Arc::new(move |context, next| {
        let (context, function) = (context.clone(), Arc::clone(&function));
        AnyPush::new::<T>(Map { context, function, next: next.typed::<U>() })
    })
}

impl<T, U, F: Fn(T) -> U> Push<T> for Map<U, F> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.context.enter();
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
    context: OperatorContext,
    keep: Arc<F>,
    next: Box<dyn Push<T>>,
}

/// The records that a predicate accepts (Flink's `StreamFilter`).
pub fn filter<T: 'static>(keep: impl Fn(&T) -> bool + Send + Sync + 'static) -> Link {
    let keep = Arc::new(keep);
    Arc::new(move |context, next| {
        let (context, keep) = (context.clone(), Arc::clone(&keep));
        AnyPush::new::<T>(Filter { context, keep, next: next.typed::<T>() })
    })
}

impl<T, F: Fn(&T) -> bool> Push<T> for Filter<T, F> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.context.enter();
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
    context: OperatorContext,
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
    Arc::new(move |context, next| {
        AnyPush::new::<T>(FlatMap {
            context: context.clone(),
            function: Arc::clone(&function),
            next: next.typed::<U>(),
            iterable: PhantomData,
        })
    })
}

impl<T, U, I: IntoIterator<Item = U>, F: Fn(T) -> I> Push<T> for FlatMap<U, F, I> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.context.enter();
        // What makes the next result is the author's code, too.
        for result in (self.function)(record) {
            self.next.push(result)?;
            self.context.enter();
        }
        Ok(())
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        self.next.finish()
    }
}
