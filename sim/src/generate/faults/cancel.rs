//! Somebody has the job cancelled.

use super::{Draft, Kind, Stream, at, kind};
use crate::scenario::{Action, Fault};

pub const KINDS: &[Kind] = &[kind("cancel job", 1, cancel)];

fn cancel(draws: &mut Stream, draft: &Draft) -> Option<Vec<Fault>> {
    Some(vec![at(draft.time(draws)?, Action::CancelJob)])
}
