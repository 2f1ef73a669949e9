//! Job events: what they say, how they are written, and how a log of them is replayed.
//!
//! The log records increments of the JobMaster's state (FLIP-383, "Record states during normal
//! execution"). Nothing here decides what recovery does with them: that is the scheduler's.

mod event;
pub mod record;
pub mod replay;
mod writer;

pub use event::{AcceptedFile, Finish, JobEvent, Replay, StoreFailure};
pub use writer::JobEventWriter;
