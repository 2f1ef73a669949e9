//! Rich functions: one of its own for each subtask, with a beginning and an end. It decides when
//! `open` and `close` are called: once each, before the first and after the last record, and `close`
//! also when the task fails or is stopped in between.

use crate::api::{
    Record, RichFilterFunction, RichFlatMapFunction, RichFunction, RichMapFunction, RuntimeContext,
};
use crate::task::{BodyError, guarded};

use super::chain::{AnyPush, LocalFuture, Push};
use super::{Link, OperatorContext};

/// The function of one subtask.
pub(super) struct Rich<F: RichFunction> {
    context: OperatorContext,
    function: F,
    is_open: bool,
}

impl<F: RichFunction> Rich<F> {
    pub fn new(context: &OperatorContext, function: &F) -> Self {
        Self { context: context.clone(), function: function.clone(), is_open: false }
    }

    pub fn open(&mut self) -> Result<(), BodyError> {
        self.context.enter();
        let context = RuntimeContext::new(&self.context);
        self.is_open = true;
        self.function
            .open(&context)
            .map_err(|error| self.context.error(format_args!("it cannot be opened: {error}")))
    }

    pub fn close(&mut self) -> Result<(), BodyError> {
        self.context.enter();
        self.is_open = false;
        self.function
            .close()
            .map_err(|error| self.context.error(format_args!("it cannot be closed: {error}")))
    }

    pub fn function(&mut self) -> &mut F {
        &mut self.function
    }

    /// A call of the function, whose error is its operator's.
    fn call<U>(
        &mut self,
        call: impl FnOnce(&mut F) -> Result<U, crate::api::FunctionError>,
    ) -> Result<U, BodyError> {
        self.context.enter();
        call(&mut self.function).map_err(|error| self.context.error(error))
    }
}

impl<F: RichFunction> Drop for Rich<F> {
    fn drop(&mut self) {
        if self.is_open {
            // The task fails or was stopped: there is nobody left to tell of an error or a panic.
            let _ = guarded(|| self.function.close());
        }
    }
}

struct Map<U, F: RichFunction> {
    rich: Rich<F>,
    next: Box<dyn Push<U>>,
}

/// See [`super::map`].
pub fn rich_map<T: 'static, F: RichMapFunction<T>>(function: F) -> Link {
    std::sync::Arc::new(move |context, next| {
        AnyPush::new::<T>(Map { rich: Rich::new(context, &function), next: next.typed::<F::Output>() })
    })
}

impl<T, F: RichMapFunction<T>> Push<T> for Map<F::Output, F> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()?;
        self.rich.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        let result = self.rich.call(|function| function.map(record))?;
        self.next.push(result)
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        Box::pin(async {
            self.rich.close()?;
            self.next.finish().await
        })
    }
}

struct Filter<T, F: RichFunction> {
    rich: Rich<F>,
    next: Box<dyn Push<T>>,
}

/// See [`super::filter`].
pub fn rich_filter<T: Record, F: RichFilterFunction<T>>(function: F) -> Link {
    std::sync::Arc::new(move |context, next| {
        AnyPush::new::<T>(Filter { rich: Rich::new(context, &function), next: next.typed::<T>() })
    })
}

impl<T, F: RichFilterFunction<T>> Push<T> for Filter<T, F> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()?;
        self.rich.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        if self.rich.call(|function| function.filter(&record))? { self.next.push(record) } else { Ok(()) }
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        Box::pin(async {
            self.rich.close()?;
            self.next.finish().await
        })
    }
}

struct FlatMap<U, F: RichFunction> {
    rich: Rich<F>,
    next: Box<dyn Push<U>>,
}

/// See [`super::flat_map`].
pub fn rich_flat_map<T: 'static, F: RichFlatMapFunction<T>>(function: F) -> Link {
    std::sync::Arc::new(move |context, next| {
        AnyPush::new::<T>(FlatMap { rich: Rich::new(context, &function), next: next.typed::<F::Output>() })
    })
}

impl<T, F: RichFlatMapFunction<T>> Push<T> for FlatMap<F::Output, F> {
    fn open(&mut self) -> Result<(), BodyError> {
        self.next.open()?;
        self.rich.open()
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        let mut pushed = Ok(());
        let (rich, next) = (&mut self.rich, &mut self.next);
        let context = rich.context.clone();
        rich.call(|function| {
            function.flat_map(record, &mut |result| {
                if pushed.is_ok() {
                    pushed = next.push(result);
                }
                context.enter();
            })
        })?;
        pushed
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.next.settle()
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        Box::pin(async {
            self.rich.close()?;
            self.next.finish().await
        })
    }
}
