//! The files of a sink: each subtask writes one pending file and asks that the job's commit renames it
//! to `<directory>/part-<subtask><extension>` (the subtask with five digits). A subtask without records
//! has a file too.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use bytes::Bytes;

use crate::actor::Purpose;
use crate::disk::Volume;
use crate::ids::ExecutionAttemptId;
use crate::message::Committable;
use crate::operators::OperatorContext;
use crate::task::BodyError;

use super::PENDING_DIRECTORY;

/// Bytes that are written in one piece, about a network buffer.
const CHUNK_BYTES: usize = 32 << 10;

/// Says why a path is no directory for a sink, and what would be right.
pub(super) fn check_directory(directory: &str) -> Result<(), String> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    if directory.split('/').all(is_part) {
        return Ok(());
    }
    Err(format!(
        "'{directory}' is not a directory for a sink's files; right is a relative path such as \
         'result/by-date' of letters, digits, '-', '_' and '.', no part of it empty or with a '.' in front"
    ))
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

/// Whether this is the pending file of the attempt, which [`PartFile::new`] names.
pub fn is_pending_of(attempt: ExecutionAttemptId, path: &str) -> bool {
    let name = path.strip_prefix(PENDING_DIRECTORY).and_then(|rest| rest.strip_prefix('/'));
    let own = format!("-{attempt}");
    name.and_then(|name| name.rsplit_once(&own))
        .is_some_and(|(_, extension)| extension.is_empty() || extension.starts_with('.'))
}

/// Writes one pending file.
pub(super) struct PartFile {
    context: OperatorContext,
    committable: Committable,
    rendered: Rendered,
    created: bool,
}

impl PartFile {
    /// The pending file of an attempt. Its name has all that the attempt's id has (vertex, subtask,
    /// epoch and number), so no attempt of any epoch ever writes to another's file. An extension has its
    /// dot, or is empty.
    pub fn new(context: &OperatorContext, directory: &str, extension: &str) -> Self {
        let (attempt, subtask) = (context.task().attempt(), context.task().subtask());
        // No part of a directory has a `+`, so different directories have different names.
        let pending = format!("{PENDING_DIRECTORY}/{}-{attempt}{extension}", directory.replace('/', "+"));
        let target = format!("{directory}/part-{subtask:05}{extension}");
        Self {
            context: context.clone(),
            committable: Committable { pending, target },
            rendered: Rendered::default(),
            created: false,
        }
    }

    /// What is written there goes into the file.
    pub fn rendered(&self) -> Rendered {
        self.rendered.clone()
    }

    pub fn context(&self) -> &OperatorContext {
        &self.context
    }

    /// Adds what `write` appends; gives the number of its bytes. If it fails, nothing is added.
    pub fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), BodyError>,
    ) -> Result<usize, BodyError> {
        let mut rendered = self.rendered.0.borrow_mut();
        let before = rendered.len();
        if let Err(error) = write(&mut rendered) {
            rendered.truncate(before);
            return Err(error);
        }
        Ok(rendered.len() - before)
    }

    /// Appends what waits if it is much.
    pub async fn flush(&mut self) -> Result<(), BodyError> {
        if self.rendered.len() >= CHUNK_BYTES { self.append_rendered().await } else { Ok(()) }
    }

    /// Makes all of it durable and hands it over.
    pub async fn finish(&mut self) -> Result<(), BodyError> {
        self.append_rendered().await?;
        let task = self.context.task();
        let synced = task.sync(Volume::Output, Purpose::Sink, &self.committable.pending).await;
        synced.map_err(|error| self.context.error(error))?;
        let closed = task.close(Volume::Output, Purpose::Sink, &self.committable.pending).await;
        closed.map_err(|error| self.context.error(error))?;
        let synced = task.sync_directory(Volume::Output, Purpose::Sink, PENDING_DIRECTORY).await;
        synced.map_err(|error| self.context.error(error))?;
        task.add_committable(self.committable.clone());
        Ok(())
    }

    async fn append_rendered(&mut self) -> Result<(), BodyError> {
        let task = self.context.task();
        let path = &self.committable.pending;
        if !self.created {
            let created = task.create(Volume::Output, Purpose::Sink, path).await;
            created.map_err(|error| self.context.error(error))?;
            self.created = true;
        }
        let bytes = self.rendered.take();
        if !bytes.is_empty() {
            let appended = task.append(Volume::Output, Purpose::Sink, path, bytes).await;
            appended.map_err(|error| self.context.error(error))?;
        }
        Ok(())
    }
}

/// What is not yet in the file. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rendered(Rc<RefCell<Vec<u8>>>);

impl Rendered {
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    fn take(&self) -> Bytes {
        self.0.take().into()
    }
}

impl io::Write for Rendered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
