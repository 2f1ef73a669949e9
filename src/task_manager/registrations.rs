//! The finished attempts whose partitions readers could not find yet: their finish is not told
//! before the shuffle knows them. The shuffle of this process answers; a shuffle service elsewhere
//! is asked again after a silence, and one that stays silent is given up, later than the JobMaster
//! does it, which restarts all that wait for it at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actor::{Outbox, Time, TimerId};
use crate::ids::{ActorId, Address, ExecutionAttemptId};
use crate::message::{FinishedPartition, RegisterPartitions};

pub(super) const REGISTRATION: TimerId = TimerId(4);

#[derive(Debug)]
pub(super) struct Registrations {
    repeat: Duration,
    timeout: Duration,
    waiting: BTreeMap<ExecutionAttemptId, Waiting>,
    armed: bool,
}

#[derive(Debug)]
struct Waiting {
    shuffle: Address,
    since: Time,
    /// To be sent again; none to the shuffle of this process.
    partitions: Vec<FinishedPartition>,
}

impl Registrations {
    /// For heartbeats of this interval and timeout.
    pub fn new(interval: Duration, timeout: Duration) -> Self {
        Self { repeat: interval, timeout: timeout + 2 * interval, waiting: BTreeMap::new(), armed: false }
    }

    /// Registers the attempt's partitions at a shuffle: that of this process, or a service's worker.
    pub fn begin(
        &mut self,
        now: Time,
        attempt: ExecutionAttemptId,
        shuffle: Address,
        partitions: Vec<FinishedPartition>,
        out: &mut Outbox,
    ) {
        let is_remote = shuffle.actor == ActorId::ShuffleWorker;
        let kept = if is_remote { partitions.clone() } else { Vec::new() };
        self.waiting.insert(attempt, Waiting { shuffle, since: now, partitions: kept });
        out.send(shuffle, RegisterPartitions { attempt, partitions });
        if is_remote {
            self.arm(now, out);
        }
    }

    pub fn contains(&self, attempt: ExecutionAttemptId) -> bool {
        self.waiting.contains_key(&attempt)
    }

    /// The shuffle answered. Whether that was waited for.
    pub fn answered(&mut self, from: Address, attempt: ExecutionAttemptId) -> bool {
        let expected = self.waiting.get(&attempt).is_some_and(|waiting| waiting.shuffle == from);
        expected && self.waiting.remove(&attempt).is_some()
    }

    /// Asks again; the attempts whose shuffle service was silent for too long, with the service.
    pub fn fired(&mut self, now: Time, out: &mut Outbox) -> Vec<(ExecutionAttemptId, Address)> {
        self.armed = false;
        let timeout = self.timeout;
        let is_silent = |waiting: &Waiting| waiting.shuffle.actor == ActorId::ShuffleWorker;
        let lost = self
            .waiting
            .extract_if(.., |_, waiting| is_silent(waiting) && now.since(waiting.since) >= timeout)
            .map(|(attempt, waiting)| (attempt, waiting.shuffle))
            .collect();
        for (&attempt, waiting) in self.waiting.iter().filter(|(_, waiting)| is_silent(waiting)) {
            let partitions = waiting.partitions.clone();
            out.send(waiting.shuffle, RegisterPartitions { attempt, partitions });
        }
        if self.waiting.values().any(is_silent) {
            self.arm(now, out);
        }
        lost
    }

    /// Nobody wants to know any more.
    pub fn clear(&mut self, out: &mut Outbox) {
        self.waiting.clear();
        if std::mem::take(&mut self.armed) {
            out.cancel_timer(REGISTRATION);
        }
    }

    fn arm(&mut self, now: Time, out: &mut Outbox) {
        if !self.armed {
            self.armed = true;
            out.set_timer(REGISTRATION, now + self.repeat);
        }
    }
}
