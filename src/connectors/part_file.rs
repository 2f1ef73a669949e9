//! The file of one subtask of a sink: written as a pending file of its attempt's own name, and to be
//! renamed to its place by the job's commit. It knows nothing of what is in it.

use bytes::Bytes;

use crate::actor::Purpose;
use crate::disk::Volume;
use crate::message::Committable;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::PENDING_DIRECTORY;

/// Bytes that are written in one piece, about a network buffer.
const CHUNK_BYTES: usize = 32 << 10;

pub(super) struct PartFile {
    context: OperatorContext,
    committable: Committable,
    /// What is not yet in the file.
    waiting: Vec<u8>,
    created: bool,
}

impl PartFile {
    /// The file that becomes `<directory>/part-<subtask>`. The pending name has all that the attempt's
    /// id has, so no attempt of any epoch ever writes to another's file.
    pub fn new(context: &OperatorContext, directory: &str) -> Self {
        let task = context.task();
        // No part of a directory has a `+`, so different directories have different names.
        let pending = format!("{PENDING_DIRECTORY}/{}-{}", directory.replace('/', "+"), task.attempt());
        let target = format!("{directory}/part-{:05}", task.subtask());
        Self {
            context: context.clone(),
            committable: Committable { pending, target },
            waiting: Vec::new(),
            created: false,
        }
    }

    pub fn context(&self) -> &OperatorContext {
        &self.context
    }

    /// Adds what `write` appends; gives the number of its bytes. If it fails, nothing is added.
    pub fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>,
    ) -> Result<usize, BodyError> {
        let before = self.waiting.len();
        if let Err(error) = write(&mut self.waiting) {
            self.waiting.truncate(before);
            return Err(error);
        }
        Ok(self.waiting.len() - before)
    }

    /// Writes out what waits if it is worth it.
    pub async fn flush(&mut self) -> Result<(), BodyError> {
        if self.waiting.len() >= CHUNK_BYTES { self.append().await } else { Ok(()) }
    }

    async fn append(&mut self) -> Result<(), BodyError> {
        let (task, path) = (self.context.task(), &self.committable.pending);
        if !self.created {
            let created = task.create(Volume::Output, Purpose::Sink, path).await;
            created.map_err(|error| self.context.error(error))?;
            self.created = true;
        }
        let bytes = Bytes::from(std::mem::take(&mut self.waiting));
        if bytes.is_empty() {
            return Ok(());
        }
        let appended = task.append(Volume::Output, Purpose::Sink, path, bytes).await;
        appended.map_err(|error| self.context.error(error))
    }

    /// Makes the file durable, also one without content, and hands it over to the commit.
    pub async fn finish(&mut self) -> Result<(), BodyError> {
        self.append().await?;
        let (task, path) = (self.context.task(), &self.committable.pending);
        let synced = task.sync(Volume::Output, Purpose::Sink, path).await;
        synced.map_err(|error| self.context.error(error))?;
        let closed = task.close(Volume::Output, Purpose::Sink, path).await;
        closed.map_err(|error| self.context.error(error))?;
        let synced = task.sync_directory(Volume::Output, Purpose::Sink, PENDING_DIRECTORY).await;
        synced.map_err(|error| self.context.error(error))?;
        task.add_committable(self.committable.clone());
        Ok(())
    }
}

/// What is wrong with the name of a result that has a directory of its own, if anything is.
pub(super) fn check_name(name: &str, what: &str) -> Result<(), String> {
    let right = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if right {
        return Ok(());
    }
    Err(format!(
        "'{name}' is not a name for {what}; right is one of letters, digits, '-' and '_' that begins with a \
         letter or a digit, such as 'by-date'"
    ))
}
