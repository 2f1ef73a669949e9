//! The finished partitions that this process keeps, and under which leader. A leader's loss
//! starts the retention timer; what no leader has claimed when it fires is given up. A partition
//! belongs to the leader under which it was finished or that claimed it last, so an old timer can
//! never take what a new leader counts on, and what nobody claims does not stay for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actor::{Outbox, Time, TimerId};
use crate::ids::{FencingToken, ResultPartitionId};
use crate::message::PartitionWithMetrics;
use crate::task::partition_path;

pub const RETENTION: TimerId = TimerId(3);

#[derive(Debug, Default)]
pub struct TrackedPartitions {
    tracked: BTreeMap<ResultPartitionId, Tracked>,
    /// When partitions of earlier leaders are given up.
    deadline: Option<Time>,
}

#[derive(Debug)]
struct Tracked {
    owner: FencingToken,
    subpartition_bytes: Vec<u64>,
}

impl TrackedPartitions {
    pub fn is_empty(&self) -> bool {
        self.tracked.is_empty()
    }

    pub fn track(&mut self, owner: FencingToken, partition: PartitionWithMetrics) {
        let PartitionWithMetrics { partition, subpartition_bytes } = partition;
        self.tracked.insert(partition, Tracked { owner, subpartition_bytes });
    }

    pub fn contains(&self, partition: ResultPartitionId) -> bool {
        self.tracked.contains_key(&partition)
    }

    pub fn have_file(&self, path: &str) -> bool {
        self.tracked.keys().any(|&partition| partition_path(partition) == path)
    }

    /// The leader is gone: what is here is kept for so long.
    pub fn retain(&mut self, now: Time, retention: Duration, out: &mut Outbox) {
        if !self.tracked.is_empty() {
            self.deadline = Some(now + retention);
            out.set_timer(RETENTION, now + retention);
        }
    }

    /// The leader wants all that is here, and is told what that is.
    pub fn claim(&mut self, leader: FencingToken, out: &mut Outbox) -> Vec<PartitionWithMetrics> {
        for partition in self.tracked.values_mut() {
            partition.owner = leader;
        }
        self.settle(leader, out);
        let report = |(&partition, tracked): (&ResultPartitionId, &Tracked)| PartitionWithMetrics {
            partition,
            subpartition_bytes: tracked.subpartition_bytes.clone(),
        };
        self.tracked.iter().map(report).collect()
    }

    /// Stops the timer if all that is here belongs to the leader: it knows what it has.
    pub fn settle(&mut self, leader: FencingToken, out: &mut Outbox) {
        let settled = self.tracked.values().all(|partition| partition.owner == leader);
        if settled && self.deadline.take().is_some() {
            out.cancel_timer(RETENTION);
        }
    }

    /// Those of the partitions that were here.
    pub fn release(&mut self, partitions: Vec<ResultPartitionId>) -> Vec<ResultPartitionId> {
        partitions.into_iter().filter(|id| self.tracked.remove(id).is_some()).collect()
    }

    /// Gives everything up.
    pub fn release_all(&mut self, out: &mut Outbox) -> Vec<ResultPartitionId> {
        if self.deadline.take().is_some() {
            out.cancel_timer(RETENTION);
        }
        std::mem::take(&mut self.tracked).into_keys().collect()
    }

    /// Gives up what does not belong to the leader that this process is registered with; or `all`
    /// ([`crate::planted::PlantedBug::WipeNewPartitions`]).
    pub fn expire(&mut self, now: Time, leader: Option<FencingToken>, all: bool) -> Vec<ResultPartitionId> {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return Vec::new(); // an older timer
        }
        self.deadline = None;
        self.tracked
            .extract_if(.., |_, partition| all || Some(partition.owner) != leader)
            .map(|(id, _)| id)
            .collect()
    }
}
