//! The job event log as bytes on a disk: which records were written, from when on they were
//! durable, and when a crash took them. Says what the records of a moment add up to, by a fold of
//! its own. Never judges.

use std::collections::{BTreeMap, BTreeSet};

use revenant::coordinator::SplitAssignment;
use revenant::graph::JobGraph;
use revenant::ids::{ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId};
use revenant::job_event::JobEvent;
use revenant::message::IndexRange;

use crate::trace::{TraceEvent, TraceKind};

/// Ranges of each subtask and input edge.
pub type Inputs = Vec<Vec<(IndexRange, IndexRange)>>;

/// Which bytes of a file count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// Those that were synced.
    Durable,
    /// Those that a reader finds, synced or not.
    Visible,
}

#[derive(Clone, Debug)]
struct LogRecord {
    event: JobEvent,
    /// Offset behind the record.
    end: u64,
    /// Trace index from which it was in the file.
    written: usize,
    /// Trace index from which it was durable.
    durable: Option<usize>,
    /// Trace index at which a crash took it.
    lost: Option<usize>,
}

impl LogRecord {
    fn counts(&self, at: usize, which: Bytes) -> bool {
        let since = match which {
            Bytes::Durable => self.durable,
            Bytes::Visible => Some(self.written),
        };
        since.is_some_and(|since| since <= at) && self.lost.is_none_or(|lost| lost > at)
    }
}

/// All files of the log over a run.
#[derive(Debug, Default)]
pub struct Log {
    files: BTreeMap<FencingToken, Vec<LogRecord>>,
}

/// What the log says at a moment.
#[derive(Debug, Default)]
pub struct LogState<'a> {
    pub finished: BTreeMap<ExecutionVertexId, ExecutionAttemptId>,
    pub initialized: BTreeMap<JobVertexId, (u32, &'a Inputs)>,
    /// Finishes since the latest snapshot of their vertex's coordinator.
    pub uncovered: BTreeSet<ExecutionVertexId>,
}

impl Log {
    pub fn read(trace: &[TraceEvent]) -> Self {
        let mut open: BTreeMap<FencingToken, OpenFile> = BTreeMap::new();
        let mut files: BTreeMap<FencingToken, Vec<LogRecord>> = BTreeMap::new();
        for (at, event) in trace.iter().enumerate() {
            match &event.what {
                TraceKind::LogAppended { path, bytes, .. } => {
                    if let Some(epoch) = epoch_of(path) {
                        let file = open.entry(epoch).or_default();
                        file.bytes.extend_from_slice(bytes);
                        file.writes.push((at, file.bytes.len() as u64));
                    }
                }
                TraceKind::LogSynced { path, length, .. } => {
                    if let Some(epoch) = epoch_of(path) {
                        open.entry(epoch).or_default().syncs.push((at, *length));
                    }
                }
                TraceKind::LogAfterCrash { path, length, .. } => {
                    if let Some(epoch) = epoch_of(path) {
                        let file = open.entry(epoch).or_default();
                        let mut lost = file.records(epoch, *length);
                        for record in &mut lost {
                            record.lost = Some(at);
                        }
                        files.entry(epoch).or_default().append(&mut lost);
                        file.truncate(*length);
                    }
                }
                _ => {}
            }
        }
        for (epoch, file) in open {
            files.entry(epoch).or_default().append(&mut file.records(epoch, 0));
        }
        Self { files }
    }

    /// The sum of the records at trace index `at`. The newest file that begins with an
    /// `EpochStarted` says how much of each older file is history.
    pub fn state(&self, at: usize, which: Bytes) -> LogState<'_> {
        let mut state = LogState::default();
        let newest = self.files.iter().rev().find_map(|(&epoch, records)| {
            records.iter().filter(|record| record.counts(at, which)).find_map(|record| match &record.event {
                JobEvent::EpochStarted { accepted, .. } => Some((epoch, accepted)),
                _ => None,
            })
        });
        let Some((newest, accepted)) = newest else { return state };
        for (&epoch, records) in self.files.range(..=newest) {
            let length = if epoch == newest {
                u64::MAX
            } else {
                accepted.iter().find(|(file, _)| *file == epoch).map_or(0, |&(_, length)| length)
            };
            for record in records.iter().filter(|record| record.counts(at, which) && record.end <= length) {
                state.apply(&record.event);
            }
        }
        state
    }

    /// Trace index from which a finish of this attempt was durable.
    pub fn durable_finish(&self, attempt: ExecutionAttemptId) -> Option<usize> {
        self.files
            .values()
            .flatten()
            .filter(|record| {
                matches!(&record.event,
                    JobEvent::ExecutionVertexFinished { finish, .. } if finish.attempt == attempt)
            })
            .find_map(|record| record.durable)
    }
}

impl<'a> LogState<'a> {
    /// Takes out the finishes that cannot count because nobody knows any more which splits they
    /// consumed: those that came after the latest snapshot of their source's coordinator, and those
    /// of a source without snapshots that had not finished as a whole.
    pub fn reconcile(&mut self, graph: &JobGraph) {
        for vertex in &graph.vertices {
            let Some(source) = &vertex.source else { continue };
            if source.assignment() == SplitAssignment::Static {
                continue;
            }
            let parallelism = self.initialized.get(&vertex.id).map_or(0, |(parallelism, _)| *parallelism);
            let count = self.finished.keys().filter(|id| id.vertex == vertex.id).count();
            let lost = !source.supports_batch_snapshot() && count < parallelism as usize;
            let uncovered = &self.uncovered;
            self.finished.retain(|id, _| {
                id.vertex != vertex.id
                    || if source.supports_batch_snapshot() { !uncovered.contains(id) } else { !lost }
            });
        }
    }

    fn apply(&mut self, event: &'a JobEvent) {
        match event {
            JobEvent::EpochStarted { .. } | JobEvent::BaseRecorded { .. } => {}
            JobEvent::ExecutionJobVertexInitialized { vertex, parallelism, inputs } => {
                self.initialized.insert(*vertex, (*parallelism, inputs));
            }
            JobEvent::ExecutionVertexFinished { finish, coordinators } => {
                self.finished.insert(finish.attempt.subtask, finish.attempt);
                self.uncovered.insert(finish.attempt.subtask);
                self.uncovered.retain(|id| coordinators.iter().all(|(vertex, _)| *vertex != id.vertex));
            }
            JobEvent::HistoryDiscarded { .. } => {
                self.initialized.clear();
                self.finished.clear();
                self.uncovered.clear();
            }
            JobEvent::ExecutionVertexReset { subtasks } => {
                for subtask in subtasks {
                    self.finished.remove(subtask);
                    self.uncovered.remove(subtask);
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct OpenFile {
    bytes: Vec<u8>,
    /// (trace index, length of the file after it), rising.
    writes: Vec<(usize, u64)>,
    /// (trace index, durable length).
    syncs: Vec<(usize, u64)>,
}

impl OpenFile {
    /// The records that end behind `from`.
    fn records(&self, epoch: FencingToken, from: u64) -> Vec<LogRecord> {
        let mut records = decode(&self.bytes, epoch);
        records.retain(|(end, _)| *end > from);
        let first = |moments: &[(usize, u64)], end: u64| {
            moments.iter().find(|(_, length)| *length >= end).map(|&(at, _)| at)
        };
        records
            .into_iter()
            .filter_map(|(end, event)| {
                let written = first(&self.writes, end)?;
                Some(LogRecord { event, end, written, durable: first(&self.syncs, end), lost: None })
            })
            .collect()
    }

    fn truncate(&mut self, length: u64) {
        self.bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        // A record that is left was written and synced when it was, whatever came behind it.
        for moment in self.writes.iter_mut().chain(&mut self.syncs) {
            moment.1 = moment.1.min(length);
        }
    }
}

/// The whole records of a file with the offsets behind them: the only place that knows the format.
fn decode(bytes: &[u8], epoch: FencingToken) -> Vec<(u64, JobEvent)> {
    let contents = revenant::job_event::record::read_file(bytes, epoch);
    let starts = contents.records.iter().skip(1).map(|(offset, _)| *offset);
    let ends: Vec<u64> = starts.chain(std::iter::once(contents.end)).collect();
    contents.records.into_iter().zip(ends).map(|((_, record), end)| (end, record.event)).collect()
}

/// The epoch in the name of a file of the job event store: `…/job-events/events.<epoch>`.
fn epoch_of(path: &str) -> Option<FencingToken> {
    path.rsplit_once("events.").and_then(|(_, epoch)| epoch.parse().ok()).map(FencingToken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, finished};

    fn state(story: &Story, which: Bytes) -> Vec<ExecutionAttemptId> {
        let at = story.trace().len();
        Log::read(story.trace()).state(at, which).finished.into_values().collect()
    }

    #[test]
    fn a_record_is_visible_when_written_and_durable_when_synced() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1))).unsynced(1, finished(attempt(0, 1, 1, 1)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1)]);
        assert_eq!(state(&story, Bytes::Visible), [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        story.sync(1);
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
    }

    #[test]
    fn a_crash_of_the_machine_takes_what_it_says_it_took() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        let length = story.log_length(1);
        story.unsynced(1, finished(attempt(0, 1, 1, 1))).after_crash(1, length);
        assert_eq!(state(&story, Bytes::Visible), [attempt(0, 0, 1, 1)]);
    }

    #[test]
    fn a_reset_ends_a_finish_and_bytes_that_a_newer_epoch_did_not_accept_do_not_exist() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
        story.lead(2);
        story.log(1, finished(attempt(1, 0, 1, 1)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        story.log(2, JobEvent::ExecutionVertexReset { subtasks: vec![attempt(0, 1, 1, 1).subtask] });
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1)]);
    }
}
