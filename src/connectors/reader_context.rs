//! What a source may use while it reads a split.

use bytes::Bytes;

use crate::actor::Purpose;
use crate::disk::{DiskError, Volume};
use crate::operators::OperatorContext;

/// A source's view of its task (Flink's class of this name).
#[derive(Clone, Debug)]
pub struct SourceReaderContext {
    context: OperatorContext,
}

impl SourceReaderContext {
    pub(crate) fn new(context: &OperatorContext) -> Self {
        Self { context: context.clone() }
    }

    /// What the job calls the source.
    pub fn source_name(&self) -> &str {
        let operator = self.context.operator();
        operator.strip_prefix("Source: ").unwrap_or(operator)
    }

    /// Reads a range of a file on the input volume; fewer bytes at the end of the file.
    pub async fn read_file(&self, path: &str, offset: u64, length: u64) -> Result<Bytes, DiskError> {
        self.context.task().read(Volume::Input, Purpose::Source, path, offset, length).await
    }

    /// See [`crate::api::Out::add_to_accumulator`].
    pub fn add_to_accumulator(&self, name: &str, value: i64) {
        self.context.task().add_to_accumulator(name, value);
    }
}
