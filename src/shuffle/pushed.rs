//! The partitions that tasks push to a shuffle service and that are not complete. It decides which
//! bytes are written and in which order; a partition leaves it when it is registered, or dropped.
//! A push is named by its offset, so that one that comes twice is written once. Only attempts of one
//! leader may push: what those of others began has no use any more (hazard B37).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::disk::{DiskOp, DiskResult};
use crate::ids::{Address, FencingToken, ResultPartitionId};
use crate::message::{FinishedPartition, PushData};
use crate::task::partition_path;

#[derive(Debug, Default)]
pub(super) struct Pushed {
    /// The leader whose attempts may push.
    accepted: Option<FencingToken>,
    open: BTreeMap<ResultPartitionId, OpenPartition>,
    /// Partitions of this leader that were dropped before they were complete: a push that was
    /// overtaken by that must not begin them anew.
    dropped: BTreeSet<ResultPartitionId>,
}

#[derive(Debug)]
struct OpenPartition {
    /// Who pushes it.
    task: Address,
    /// Bytes written.
    length: u64,
    write: Write,
}

#[derive(Debug)]
enum Write {
    None,
    /// The file is being made for these bytes.
    Create(Bytes),
    /// So many bytes are being added.
    Append(u64),
}

/// What comes of a push, or of a write that was completed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    Write(DiskOp),
    /// So many bytes are written.
    Pushed(u64),
    /// What was pushed at this offset is not taken, for this reason.
    Refuse(u64, String),
}

/// A partition that is not open (any more).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

impl Pushed {
    /// Only this leader's attempts may push from now on: the files of what is dropped.
    pub fn accept(&mut self, token: Option<FencingToken>) -> Vec<String> {
        if self.accepted == token {
            return Vec::new();
        }
        self.accepted = token;
        self.dropped.clear();
        std::mem::take(&mut self.open)
            .into_iter()
            .filter(|(_, open)| matches!(open.write, Write::None))
            .map(|(partition, _)| partition_path(partition))
            .collect()
    }

    pub fn push(&mut self, from: Address, message: PushData) -> Answer {
        let PushData { partition, offset, bytes } = message;
        let epoch = partition.producer.epoch;
        if self.accepted.is_none_or(|known| known < epoch) {
            // It may be about to hear of that leader: the task pushes again after a silence.
            return Answer::Nothing;
        }
        if self.accepted != Some(epoch) {
            return Answer::Refuse(offset, "it takes no results of this epoch".to_owned());
        }
        if self.dropped.contains(&partition) {
            return Answer::Refuse(offset, "the partition was dropped".to_owned());
        }
        let path = partition_path(partition);
        let Some(open) = self.open.get_mut(&partition) else {
            if offset > 0 {
                return Answer::Refuse(offset, format!("it has none of the {offset} bytes before"));
            }
            let open = OpenPartition { task: from, length: 0, write: Write::Create(bytes) };
            self.open.insert(partition, open);
            return Answer::Write(DiskOp::CreateNew { path });
        };
        open.task = from;
        match open.write {
            // Its completion is the answer.
            Write::Create(_) | Write::Append(_) => Answer::Nothing,
            Write::None if offset < open.length => Answer::Pushed(open.length),
            Write::None if offset > open.length => {
                Answer::Refuse(offset, format!("it has only {} of the {offset} bytes before", open.length))
            }
            Write::None => {
                open.write = Write::Append(bytes.len() as u64);
                Answer::Write(DiskOp::Append { path, bytes })
            }
        }
    }

    /// The write under way is complete: what to tell whom. A partition whose write failed is
    /// forgotten.
    pub fn written(
        &mut self,
        partition: ResultPartitionId,
        result: &DiskResult,
    ) -> Result<(Address, Answer), Unknown> {
        let open = self.open.get_mut(&partition).ok_or(Unknown)?;
        let task = open.task;
        if let Err(error) = result {
            let answer = Answer::Refuse(open.length, error.to_string());
            self.open.remove(&partition);
            return Ok((task, answer));
        }
        let answer = match std::mem::replace(&mut open.write, Write::None) {
            Write::None => Answer::Nothing,
            Write::Create(bytes) => {
                open.write = Write::Append(bytes.len() as u64);
                Answer::Write(DiskOp::Append { path: partition_path(partition), bytes })
            }
            Write::Append(length) => {
                open.length += length;
                Answer::Pushed(open.length)
            }
        };
        Ok((task, answer))
    }

    /// The partitions are complete, if all their bytes are here: the files that are not written any
    /// more.
    pub fn complete(&mut self, partitions: &[FinishedPartition]) -> Result<Vec<String>, String> {
        for partition in partitions {
            let id = partition.partition;
            if self.accepted != Some(id.producer.epoch) {
                return Err("it takes no results of this epoch".to_owned());
            }
            let wanted: u64 = partition.buffers.iter().map(|buffer| u64::from(buffer.length)).sum();
            let written = match self.open.get(&id) {
                Some(OpenPartition { length, write: Write::None, .. }) => *length,
                _ => 0,
            };
            if self.dropped.contains(&id) {
                return Err(format!("partition {id} was dropped"));
            }
            if written != wanted {
                return Err(format!("it has {written} of the {wanted} bytes of {id}"));
            }
        }
        let complete = partitions.iter().filter_map(|p| self.open.remove(&p.partition).map(|_| p));
        Ok(complete.map(|partition| partition_path(partition.partition)).collect())
    }

    /// The partition will not be completed: its file, unless that is being written; it goes then when
    /// the write is complete.
    pub fn drop_partition(&mut self, partition: ResultPartitionId) -> Option<String> {
        if self.accepted == Some(partition.producer.epoch) {
            self.dropped.insert(partition);
        }
        let open = self.open.remove(&partition)?;
        matches!(open.write, Write::None).then(|| partition_path(partition))
    }
}

#[cfg(test)]
mod tests;
