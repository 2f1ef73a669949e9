//! The job event log as bytes on a disk: which records were written, from when on they were
//! durable, and when a crash or a flipped bit took them. Says what the records of a moment add up to,
//! by a fold of its own. Never judges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use revenant::coordinator::SplitAssignment;
use revenant::graph::JobGraph;
use revenant::ids::{ExecutionAttemptId, ExecutionVertexId, FencingToken, JobVertexId};
use revenant::job_event::{AcceptedFile, JobEvent};
use revenant::message::IndexRange;

use crate::trace::{TraceEvent, TraceKind};

mod file;

pub use file::file_of;
use file::{Broken, FileId, LogRecord, OpenFile};

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

/// All files of the log over a run.
#[derive(Debug, Default)]
pub struct Log {
    files: BTreeMap<FileId, Vec<LogRecord>>,
    /// One behind the other.
    broken: BTreeMap<FileId, Vec<Broken>>,
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
        let mut open: BTreeMap<FileId, OpenFile> = BTreeMap::new();
        let mut log = Self::default();
        for (at, event) in trace.iter().enumerate() {
            let (TraceKind::LogAppended { path, .. }
            | TraceKind::LogSynced { path, .. }
            | TraceKind::LogCorrupted { path, .. }
            | TraceKind::LogZeroed { path, .. }
            | TraceKind::LogAfterCrash { path, .. }) = &event.what
            else {
                continue;
            };
            let Some(id) = file_of(path) else { continue };
            let file = open.entry(id).or_default();
            match &event.what {
                TraceKind::LogAppended { bytes, .. } => {
                    file.append(at, bytes);
                    let last = log.broken.get_mut(&id).and_then(|spans| spans.last_mut());
                    if let Some(broken) = last.filter(|broken| broken.at(at)) {
                        broken.behind.get_or_insert(at);
                    }
                }
                TraceKind::LogSynced { length, .. } => file.sync(at, *length),
                TraceKind::LogCorrupted { .. } | TraceKind::LogZeroed { .. } => {
                    let (lost, broken) = file.corrupt(id, at, |bytes| match &event.what {
                        TraceKind::LogCorrupted { offset, .. } => {
                            if let Some(byte) = bytes.get_mut(*offset as usize) {
                                *byte ^= 1;
                            }
                        }
                        TraceKind::LogZeroed { from, to, .. } => {
                            if let Some(range) = bytes.get_mut(*from as usize..*to as usize) {
                                range.fill(0);
                            }
                        }
                        _ => {}
                    });
                    // A crash leaves zeros: no reader may take them for damage.
                    let is_damage = matches!(event.what, TraceKind::LogCorrupted { .. });
                    let broken =
                        broken.map(|broken| Broken { behind: broken.behind.filter(|_| is_damage), ..broken });
                    log.corrupted(id, at, lost, broken, file);
                }
                TraceKind::LogAfterCrash { length, .. } => {
                    log.files.entry(id).or_default().extend(file.truncate(id, at, *length));
                }
                _ => {}
            }
        }
        for (id, file) in open {
            log.files.entry(id).or_default().append(&mut file.records(id, 0));
        }
        // What a crash or a flipped bit took was found first, and lies behind what is left.
        for records in log.files.values_mut() {
            records.sort_by_key(|record| record.end);
        }
        log
    }

    /// Bytes of a file were changed at trace index `at`: records cannot be read any more, or can be again.
    fn corrupted(
        &mut self,
        id: FileId,
        at: usize,
        lost: Vec<LogRecord>,
        broken: Option<Broken>,
        file: &OpenFile,
    ) {
        let spans = self.broken.entry(id).or_default();
        let readable = file.records(id, 0).last().map_or(0, |record| record.end);
        let records = self.files.entry(id).or_default();
        records.retain(|record| {
            record.end > readable || spans.iter().all(|span| record.lost != Some(span.since))
        });
        records.extend(lost);
        let before = spans.last_mut().filter(|span| span.at(at));
        let behind = before.as_ref().and_then(|span| span.behind);
        if let Some(span) = before {
            span.until = Some(at);
        }
        spans.extend(broken.map(|broken| Broken { behind: broken.behind.or(behind), ..broken }));
    }

    /// What is wrong in a file at trace index `at`.
    fn broken(&self, id: FileId, at: usize) -> Option<&Broken> {
        self.broken.get(&id)?.iter().find(|span| span.at(at))
    }

    /// The records of a file that count at trace index `at`.
    fn records(&self, id: FileId, at: usize, which: Bytes) -> impl Iterator<Item = &LogRecord> {
        let good = self.broken(id, at).map_or(u64::MAX, |broken| broken.from);
        let records = self.files.get(&id).map_or(&[][..], Vec::as_slice).iter();
        records.filter(move |record| record.counts(at, which) && record.end <= good)
    }

    /// The sum of the records at trace index `at`. The newest `EpochStarted` says how much of which
    /// older files is history; a base stands for all before it. A log that is damaged where it counts
    /// says nothing.
    pub fn state(&self, at: usize, which: Bytes) -> LogState<'_> {
        self.state_before(FencingToken(u64::MAX), at, which)
    }

    /// The same, without what the leader of this epoch and later ones wrote: what a leader makes of the log is no
    /// excuse for it.
    pub fn state_before(&self, epoch: FencingToken, at: usize, which: Bytes) -> LogState<'_> {
        let mut state = LogState::default();
        let started = self.files.range(..(epoch, 0)).rev().find_map(|(&id, _)| {
            self.records(id, at, which).find_map(|record| match &record.event {
                JobEvent::EpochStarted { accepted, .. } => Some((id, accepted)),
                _ => None,
            })
        });
        let Some((first, accepted)) = started else { return state };
        let old = accepted.iter().map(|&AcceptedFile { epoch, index, length }| ((epoch, index), length));
        let own = self.files.range(first..=(first.0, u32::MAX)).map(|(&id, _)| (id, u64::MAX));
        let (mut damaged, mut torn) = (false, false);
        for (id, length) in old.chain(own) {
            for record in self.records(id, at, which).filter(|record| record.end <= length) {
                damaged |= torn;
                if matches!(record.event, JobEvent::BaseRecorded { .. }) {
                    (damaged, torn) = (false, false);
                }
                state.apply(&record.event);
            }
            // Of an older file, what lies behind the accepted bytes was never history.
            if let Some(broken) = self.broken(id, at).filter(|broken| broken.from < length) {
                // What a newer epoch accepted has to be there.
                damaged |= length != u64::MAX || broken.behind.is_some_and(|behind| behind <= at);
                torn = true;
            }
        }
        // Of an epoch whose beginning cannot be read, while what lies behind it can, nobody knows what it took over.
        let newer = (Bound::Excluded((first.0, u32::MAX)), Bound::Excluded((epoch, 0)));
        damaged |= self
            .broken
            .range(newer)
            .flat_map(|(_, spans)| spans)
            .any(|broken| broken.at(at) && broken.behind.is_some_and(|behind| behind <= at));
        if damaged { LogState::default() } else { state }
    }

    /// Whether the log said durably at trace index `at` that the epoch had begun: only then had its
    /// leader read what there was.
    pub fn had_begun(&self, epoch: FencingToken, at: usize) -> bool {
        self.files.range((epoch, 0)..=(epoch, u32::MAX)).flat_map(|(_, records)| records).any(|record| {
            matches!(record.event, JobEvent::EpochStarted { .. })
                && record.durable.is_some_and(|durable| durable <= at)
        })
    }

    /// Whether a bit of the log was flipped from trace index `from` on and before `until`.
    pub fn was_corrupted(&self, from: usize, until: usize) -> bool {
        self.broken.values().flatten().any(|broken| (from..until).contains(&broken.since))
    }

    /// What a leader may have found that read the log between the trace indices `from` and `until`: what there was at
    /// either, and before each byte that was spoilt in between.
    pub fn states_between(&self, from: usize, until: usize) -> impl Iterator<Item = LogState<'_>> {
        let spoilt = self.broken.values().flatten().map(|broken| broken.since);
        let before = spoilt.filter(move |since| (from + 1..=until).contains(since)).map(|since| since - 1);
        [from, until].into_iter().chain(before).map(|at| self.state(at, Bytes::Visible))
    }

    /// Trace index from which a finish of this attempt was durable, in a record of its own or in a
    /// base.
    pub fn durable_finish(&self, attempt: ExecutionAttemptId) -> Option<usize> {
        let records = self.files.values().flatten().filter(|record| says(&record.event, attempt));
        records.filter_map(|record| record.durable).min()
    }
}

/// Whether the event says that this attempt finished.
fn says(event: &JobEvent, attempt: ExecutionAttemptId) -> bool {
    match event {
        JobEvent::ExecutionVertexFinished { finish, .. } => finish.attempt == attempt,
        JobEvent::BaseRecorded { finished, .. } => finished.iter().any(|finish| finish.attempt == attempt),
        _ => false,
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
            JobEvent::EpochStarted { .. } => {}
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
            JobEvent::BaseRecorded { initialized, finished, coordinators } => {
                self.uncovered = finished.iter().map(|finish| finish.attempt.subtask).collect();
                self.uncovered.retain(|id| coordinators.iter().all(|(vertex, _)| *vertex != id.vertex));
                let vertices = initialized.iter();
                self.initialized =
                    vertices.map(|(vertex, inputs)| (*vertex, (inputs.len() as u32, inputs))).collect();
                let finished = finished.iter();
                self.finished = finished.map(|finish| (finish.attempt.subtask, finish.attempt)).collect();
            }
        }
    }
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
    fn who_reads_while_a_byte_is_spoilt_may_have_found_it_before() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        let from = story.trace().len() - 1;
        story.log(1, finished(attempt(0, 1, 1, 1))).corrupt(1, 3);
        let until = story.trace().len() - 1;
        let log = Log::read(story.trace());
        let found: Vec<usize> = log.states_between(from, until).map(|state| state.finished.len()).collect();
        assert_eq!(found, [1, 0, 2]);
        assert_eq!(log.states_between(until, until).map(|state| state.finished.len()).max(), Some(0));
    }

    #[test]
    fn a_crash_of_the_machine_takes_what_it_says_it_took() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        let length = story.log_length(1);
        story.unsynced(1, finished(attempt(0, 1, 1, 1))).after_crash(1, length);
        assert_eq!(state(&story, Bytes::Visible), [attempt(0, 0, 1, 1)]);
    }

    /// A record that stands for all that this attempt and no other finished.
    fn base(attempt: ExecutionAttemptId) -> JobEvent {
        let JobEvent::ExecutionVertexFinished { finish, .. } = finished(attempt) else { unreachable!() };
        JobEvent::BaseRecorded { initialized: vec![], finished: vec![finish], coordinators: vec![] }
    }

    #[test]
    fn the_files_of_an_epoch_add_up_and_a_base_stands_for_all_before_it() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        story.next_file(1).log(1, finished(attempt(0, 1, 1, 1)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        story.next_file(1).unsynced(1, base(attempt(0, 0, 1, 2)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1), attempt(0, 1, 1, 1)]);
        assert_eq!(state(&story, Bytes::Visible), [attempt(0, 0, 1, 2)]);
        story.sync(1);
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 2)]);
        let log = Log::read(story.trace());
        assert!(log.durable_finish(attempt(0, 0, 1, 2)).is_some(), "a base makes a finish durable");
        story.lead(2);
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 2)]);
        story.next_file(1).log(1, base(attempt(0, 1, 1, 9)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 2)], "an old leader adds nothing");
    }

    #[test]
    fn a_flipped_bit_at_the_end_takes_the_last_record_and_in_the_middle_the_whole_log() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        let last = story.log_length(1);
        story.log(1, finished(attempt(0, 1, 1, 1)));
        story.corrupt(1, last + 3);
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1)]);
        story.next_file(1).log(1, finished(attempt(1, 0, 1, 1)));
        assert_eq!(state(&story, Bytes::Durable), [], "what is torn is not the last");
        story.next_file(1).log(1, base(attempt(0, 0, 1, 2)));
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 2)], "before a base it does not matter");

        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1)));
        let last = story.log_length(1);
        story.log(1, finished(attempt(0, 1, 1, 1)));
        story.corrupt(1, last - 3);
        assert_eq!(state(&story, Bytes::Durable), []);
    }

    #[test]
    fn what_is_broken_behind_the_accepted_bytes_of_an_older_file_does_not_matter() {
        let (first, second) = (attempt(0, 0, 1, 1), attempt(0, 1, 2, 1));
        let token = FencingToken(2);
        let mut story = Story::new();
        story.lead(1).log(1, finished(first));
        let length = story.log_length(1);
        story.log(1, finished(attempt(0, 1, 1, 1))).corrupt(1, length + 3).lead_blindly(2).next_file(2);
        let accepted = vec![AcceptedFile { epoch: FencingToken(1), index: 0, length }];
        story.log(2, JobEvent::EpochStarted { token, fingerprint: 1, accepted }).log(2, finished(second));
        assert_eq!(state(&story, Bytes::Durable), [first, second]);
        let last = story.log_length(1);
        story.log(1, finished(attempt(1, 0, 1, 1))).corrupt(1, last + 3);
        assert_eq!(state(&story, Bytes::Durable), [first, second], "nor what an old leader adds there");
        story.corrupt(1, length - 3);
        assert_eq!(state(&story, Bytes::Durable), [], "what was accepted has to be there");
    }

    #[test]
    fn an_epoch_whose_beginning_is_broken_takes_the_whole_log_if_more_of_it_is_there() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1))).lead(2);
        let beginning = story.log_length(2) - 3;
        let mut more = story.clone();
        story.corrupt(2, beginning);
        assert_eq!(state(&story, Bytes::Durable), [attempt(0, 0, 1, 1)]);
        more.log(2, finished(attempt(0, 1, 1, 2))).corrupt(2, beginning);
        assert_eq!(state(&more, Bytes::Durable), []);
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

    #[test]
    fn what_is_broken_twice_is_so_from_the_lower_place() {
        let mut story = Story::new();
        story.lead(1).log(1, finished(attempt(0, 0, 1, 1))).log(1, finished(attempt(0, 1, 1, 1)));
        let last = story.log_length(1);
        let first = story.trace().len();
        story.corrupt(1, 3).log(1, finished(attempt(1, 0, 1, 1))).corrupt(1, last + 3);
        let log = Log::read(story.trace());
        assert!(log.was_corrupted(first, first + 1), "{log:?}");
        assert_eq!(state(&story, Bytes::Durable), []);
    }

    #[test]
    fn a_bit_that_flips_twice_is_as_it_was_and_was_wrong_in_between() {
        let (first, second) = (attempt(0, 0, 1, 1), attempt(0, 1, 1, 1));
        let mut story = Story::new();
        story.lead(1).log(1, finished(first));
        let last = story.log_length(1);
        story.log(1, finished(second)).corrupt(1, last + 3);
        let wrong = story.trace().len();
        assert_eq!(state(&story, Bytes::Durable), [first]);
        // Elsewhere, too, and back: still wrong at the end.
        story.corrupt(1, last - 3).corrupt(1, last - 3);
        assert_eq!(state(&story, Bytes::Durable), [first]);
        story.corrupt(1, last + 3);
        assert_eq!(state(&story, Bytes::Durable), [first, second]);
        let log = Log::read(story.trace());
        let before = |at| log.state(at, Bytes::Durable).finished.into_values().collect::<Vec<_>>();
        assert_eq!([before(wrong - 2), before(wrong - 1)], [vec![first, second], vec![first]]);
        story.next_file(1).log(1, finished(attempt(1, 0, 1, 1)));
        assert_eq!(state(&story, Bytes::Durable), [first, second, attempt(1, 0, 1, 1)]);
    }
}
