//! Notices that another process, for whose answer a task's body waits, says nothing: the question
//! is then repeated, and a holder of partitions that stays silent counts as lost. One timer that is
//! set again only when it fires, so that watching costs nothing while answers come.

use std::time::Duration;

use crate::actor::{Outbox, Time, TimerId};

const TIMER: TimerId = TimerId(1);

/// What the body waits for. Another value means that there was progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A buffer of an input stream beyond those received.
    Buffer { stream: usize, received: u64 },
    /// A split beyond those received.
    Split { received: u32 },
    /// That a shuffle service has what was pushed of an output from this offset.
    Push { output: usize, offset: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Ask again.
    Repeat(Awaited),
    /// The other side counts as lost.
    Lost(Awaited),
}

#[derive(Debug)]
pub(super) struct Silence {
    repeat: Duration,
    timeout: Duration,
    armed: bool,
    waiting: Option<(Awaited, Time)>,
}

impl Silence {
    pub fn new(repeat: Duration, timeout: Duration) -> Self {
        Self { repeat, timeout, armed: false, waiting: None }
    }

    /// Takes note of what the body waits for now.
    pub fn watch(&mut self, now: Time, awaited: Option<Awaited>, out: &mut Outbox) {
        match (awaited, self.waiting) {
            (None, _) => self.waiting = None,
            (Some(new), Some((old, _))) if new == old => {}
            (Some(new), _) => self.waiting = Some((new, now)),
        }
        if self.waiting.is_some() && !self.armed {
            self.arm(now + self.repeat, out);
        }
    }

    pub fn fired(&mut self, now: Time, timer: TimerId, out: &mut Outbox) -> Option<Verdict> {
        if timer != TIMER || !self.armed {
            return None;
        }
        self.armed = false;
        let (awaited, since) = self.waiting?;
        let silent = now.since(since);
        if silent < self.repeat {
            self.arm(since + self.repeat, out);
            return None;
        }
        // Also for what counts as lost: whoever goes on waiting for it must ask again, since that
        // question can be lost as well.
        self.arm(now + self.repeat, out);
        Some(if silent < self.limit(awaited) { Verdict::Repeat(awaited) } else { Verdict::Lost(awaited) })
    }

    /// How long the other side may be silent. A shuffle service gets longer than the JobMaster gives
    /// it, which restarts all that push there at once.
    fn limit(&self, awaited: Awaited) -> Duration {
        match awaited {
            Awaited::Push { .. } => self.timeout + 2 * self.repeat,
            Awaited::Buffer { .. } | Awaited::Split { .. } => self.timeout,
        }
    }

    pub fn stop(&mut self, out: &mut Outbox) {
        self.waiting = None;
        if std::mem::take(&mut self.armed) {
            out.cancel_timer(TIMER);
        }
    }

    fn arm(&mut self, at: Time, out: &mut Outbox) {
        self.armed = true;
        out.set_timer(TIMER, at);
    }
}
