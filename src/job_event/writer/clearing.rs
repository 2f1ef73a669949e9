//! The end of the log: when the job has ended, all files of it are deleted, durably.

use crate::actor::{Outbox, Time};
use crate::disk::{DiskError, DiskOp, DiskOutput};
use crate::message::JobEventsCleared;
use crate::note::Note;

use super::{FLUSH, JobEventWriter, RETRY, State, Step, Writing};

/// How often the deletion of the log is tried again.
const CLEAR_TRIES: u32 = 3;

impl JobEventWriter {
    pub(super) fn clear(&mut self, out: &mut Outbox) {
        match self.state {
            State::Writing(Writing { timer_set: true, .. }) => out.cancel_timer(FLUSH),
            State::Failing { .. } => out.cancel_timer(RETRY),
            _ => {}
        }
        self.state = State::Clearing { left: 0, tries: CLEAR_TRIES };
        self.list_to_clear(out);
    }

    /// Lists what is to be deleted, once no operation is under way that could add to it.
    pub(super) fn list_to_clear(&mut self, out: &mut Outbox) {
        if self.pending.is_empty() {
            self.list(Step::ListToClear, out);
        }
    }

    /// Until then a crash of the machine would bring the files back, also those that an earlier leader deleted, and
    /// nobody clears again.
    fn sync_cleared(&mut self, out: &mut Outbox) {
        let path = Self::directory(&self.config);
        self.disk(Step::SyncCleared, DiskOp::SyncDirectory { path }, out);
    }

    /// Nothing will read what stays, for the job's end is durable; but it should not stay.
    pub(super) fn clearing_failed(&mut self, now: Time, error: &DiskError, out: &mut Outbox) {
        let State::Clearing { left, tries } = &mut self.state else { return };
        *left = 0;
        self.pending.forget_all();
        if let Some(fewer) = tries.checked_sub(1) {
            *tries = fewer;
            out.set_timer(RETRY, now + self.config.registration_retry);
        } else {
            out.note(Note::Warning { text: format!("the job event log stays behind: {error}") });
            self.cleared(out);
        }
    }

    pub(super) fn cleared(&mut self, out: &mut Outbox) {
        if matches!(self.state, State::Clearing { left: 0, .. }) {
            self.state = State::Ended;
            out.send(self.master, JobEventsCleared {});
        }
    }

    pub(super) fn listed_to_clear(&mut self, output: DiskOutput, out: &mut Outbox) {
        let DiskOutput::Entries(entries) = output else { return };
        let State::Clearing { left, .. } = &mut self.state else { return };
        *left = entries.len();
        if entries.is_empty() {
            self.sync_cleared(out);
        }
        for entry in entries {
            self.disk(Step::Delete, DiskOp::Delete { path: entry.path }, out);
        }
    }

    pub(super) fn deleted(&mut self, out: &mut Outbox) {
        let State::Clearing { left, .. } = &mut self.state else { return };
        *left -= 1;
        if *left == 0 {
            self.sync_cleared(out);
        }
    }
}
