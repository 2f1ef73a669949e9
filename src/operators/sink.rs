//! The end of a chain that writes to the outside.

use std::sync::Arc;

use crate::connectors::{Sink, SinkWriter};
use crate::task::BodyError;

use super::OperatorContext;
use super::chain::{AnyPush, LocalFuture, Push};

/// Makes the push of a sink's subtask.
pub type Leaf = Arc<dyn Fn(&OperatorContext) -> AnyPush + Send + Sync>;

/// The writer of a sink's subtask (Flink's `SinkWriterOperator`).
pub fn sink<T: 'static, S: Sink<T>>(sink: S) -> Leaf {
    Arc::new(move |context| {
        AnyPush::new::<T>(Writing { context: context.clone(), writer: sink.writer(context) })
    })
}

struct Writing<W> {
    context: OperatorContext,
    writer: W,
}

impl<T: 'static, W: SinkWriter<T>> Push<T> for Writing<W> {
    fn open(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    fn push(&mut self, record: T) -> Result<(), BodyError> {
        self.context.enter();
        let bytes = self.writer.write(record)?;
        self.context.task().count_records_out(1);
        self.context.wrote(bytes);
        Ok(())
    }

    fn settle(&mut self) -> LocalFuture<'_> {
        self.context.enter();
        Box::pin(self.writer.flush())
    }

    fn finish(&mut self) -> LocalFuture<'_> {
        self.context.enter();
        Box::pin(self.writer.finish())
    }
}
