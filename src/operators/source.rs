//! The head of a source's chain: asks for splits until there are none and reads each to its end, or
//! runs the function of a source that has none.

use std::sync::Arc;

use crate::api::SourceFunction;
use crate::connectors::{Source, SourceReaderContext};

use super::Head;
use super::output::{Failure, Out};

/// The reader of a source's subtask (Flink's `SourceOperator`).
pub fn read_source<S: Source>(source: Arc<S>) -> Head {
    Arc::new(move |context, push| {
        let source = Arc::clone(&source);
        Box::pin(async move {
            let failure = Failure::default();
            let out = Out::open(&context, &failure, push.typed::<S::Record>())?;
            let reader = SourceReaderContext::new(&context);
            while let Some(split) = context.task().next_split().await {
                let id = split.id;
                let split = postcard::from_bytes::<S::Split>(&split.payload)
                    .map_err(|error| context.error(format_args!("split {id} cannot be decoded: {error}")))?;
                failure
                    .unless(source.read(split, &reader, &out))
                    .await?
                    .map_err(|error| context.error(format_args!("split {id} cannot be read: {error}")))?;
            }
            out.finish().await
        })
    })
}

/// Runs a source that has no splits (Flink's `StreamSource`).
pub fn run_source<S: SourceFunction>(function: S) -> Head {
    let function = Arc::new(function);
    Arc::new(move |context, push| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let failure = Failure::default();
            let out = Out::open(&context, &failure, push.typed::<S::Record>())?;
            failure
                .unless(function.run(&out))
                .await?
                .map_err(|error| context.error(format_args!("the source gave up: {error}")))?;
            out.finish().await
        })
    })
}
