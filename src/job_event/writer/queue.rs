//! The write buffer: records that wait for the file, in their order, and where files end between
//! them. It knows nothing of the disk, and decides nothing but what one write takes.

use std::collections::VecDeque;

use crate::ids::FencingToken;
use crate::job_event::{JobEvent, record};

/// Records that go to the disk in one write.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Empty if only the file ends.
    pub(super) bytes: Vec<u8>,
    /// Sequence of the last event.
    pub(super) last: u64,
    /// The file ends behind it.
    pub(super) cut: bool,
    /// To be written as soon as the file is free.
    due: bool,
}

/// All batches but the last end a file.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Batch>);

impl Queue {
    /// Adds a record; returns its length in bytes.
    pub(super) fn push(&mut self, epoch: FencingToken, sequence: u64, event: &JobEvent) -> usize {
        if self.0.back().is_none_or(|batch| batch.cut) {
            self.0.push_back(Batch::default());
        }
        let Some(batch) = self.0.back_mut() else { return 0 };
        let before = batch.bytes.len();
        record::write_record(&mut batch.bytes, sequence, epoch, event);
        batch.last = sequence;
        batch.bytes.len() - before
    }

    /// The file ends behind what is collected, which is written at once.
    pub(super) fn cut(&mut self) {
        if self.0.back().is_none_or(|batch| batch.cut) {
            self.0.push_back(Batch::default());
        }
        if let Some(batch) = self.0.back_mut() {
            batch.cut = true;
        }
        self.flush();
    }

    /// All that is collected is to be written.
    pub(super) fn flush(&mut self) {
        for batch in &mut self.0 {
            batch.due = true;
        }
    }

    /// Bytes that the next write of the last batch would take.
    pub(super) fn collected(&self) -> usize {
        self.0.back().map_or(0, |batch| batch.bytes.len())
    }

    /// Whether all batches but the last end a file, and events are in their order.
    pub(super) fn is_sound(&self) -> bool {
        let ended = self.0.iter().rev().skip(1).all(|batch| batch.cut);
        let filled: Vec<u64> =
            self.0.iter().filter(|batch| !batch.bytes.is_empty()).map(|batch| batch.last).collect();
        ended && filled.is_sorted_by(|a, b| a < b)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take_due(&mut self) -> Option<Batch> {
        self.0.pop_front_if(|batch| batch.due)
    }
}
