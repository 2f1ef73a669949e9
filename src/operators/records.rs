//! [`Records`]: what a function on full-window partitions pulls, wherever they come from.

use crate::api::Record;
use crate::task::BodyError;

use super::group::Group;
use super::input::Input;
use super::output::Failure;

/// A partition's records, pulled one by one by a window function. They are read when they are asked
/// for, so a partition may be larger than memory. What is not pulled is not there for anybody else.
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
    pub async fn next(&mut self) -> Option<T> {
        let next = match &mut self.pull {
            Pull::Subtask(input) => input.next().await,
            Pull::Key(group) => group.next().await,
        };
        match next {
            Ok(record) => record,
            Err(error) => self.failure.fail(error).await,
        }
    }

    /// The function wants no more records: goes to the next key, or to the end.
    pub(super) async fn into_next(self) -> Result<Option<Group<T>>, BodyError> {
        match self.pull {
            Pull::Subtask(input) => {
                input.close();
                Ok(None)
            }
            Pull::Key(group) => group.into_next().await,
        }
    }
}
