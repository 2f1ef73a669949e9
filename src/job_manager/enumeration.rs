//! Enumeration: a source of files does not know its splits before its files are listed (FLIP-27: the
//! enumerator runs in the JobManager). The first leader lists them, and what follows from the lists is
//! stored with the job before anything runs. Every later leader takes the splits from there, so that
//! they stay the same whatever happens to the directory, with and without recovery.
//!
//! What is wrong here ends the job: neither a missing file nor a disk that cannot be read gets better
//! by starting tasks again, so the restart strategy is not asked.

use std::collections::BTreeMap;

use crate::actor::{Outbox, Purpose};
use crate::connectors::is_hidden;
use crate::coordinator::SourceCoordinator;
use crate::disk::{DirectoryEntry, DiskOp, DiskOutput, DiskResult, Volume};
use crate::ids::JobVertexId;
use crate::message::SourceSplit;

use super::commit::Step;
use super::{JobMaster, Phase};

/// What a job record may hold of splits, so that it fits into one record of the HA service.
const SPLIT_BYTES_MAX: usize = 16 << 20;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Enumeration {
    /// By source vertex and position among its paths; `None` while the list is awaited.
    lists: BTreeMap<(JobVertexId, usize), Option<Vec<DirectoryEntry>>>,
}

impl JobMaster {
    /// Lists what the job's sources want to read, and then stores the job.
    pub(super) fn enumerate_splits(&mut self, out: &mut Outbox) {
        let mut enumeration = Enumeration::default();
        for vertex in &self.execution.graph.vertices {
            let paths = vertex.source.as_ref().map_or_else(Vec::new, |source| source.paths());
            for (index, path) in paths.into_iter().enumerate() {
                enumeration.lists.insert((vertex.id, index), None);
                let op = self.disk.begin(Step::ListInput { vertex: vertex.id, index });
                out.disk(op, Volume::Input, Purpose::Source, DiskOp::List { path });
            }
        }
        if enumeration.lists.is_empty() {
            return self.record_job(out);
        }
        self.enter(Phase::EnumeratingSplits(enumeration), out);
    }

    pub(super) fn input_listed(
        &mut self,
        vertex: JobVertexId,
        index: usize,
        result: DiskResult,
        out: &mut Outbox,
    ) {
        let Phase::EnumeratingSplits(enumeration) = &mut self.phase else { return };
        let name = &self.execution.graph.vertex(vertex).name;
        let entries = match result {
            Ok(DiskOutput::Entries(entries)) => entries,
            Ok(other) => {
                let reason = format!("'{name}' cannot list its files: the input volume answered {other:?}");
                return self.fail_job(&reason, out);
            }
            Err(error) => {
                let reason = format!("'{name}' cannot list its files: {error}");
                return self.fail_job(&reason, out);
            }
        };
        let source = self.execution.graph.vertex(vertex).source.as_ref();
        let path = source.and_then(|source| source.paths().into_iter().nth(index)).unwrap_or_default();
        let visible: Vec<_> = entries.into_iter().filter(|entry| !is_hidden(&entry.path, &path)).collect();
        if visible.is_empty() {
            let reason = format!(
                "'{name}' has nothing to read: there is no file '{path}' and no directory '{path}' with a file \
                 in it in the input directory (--input DIR, or MiniCluster::input); patterns are not expanded, and \
                 files whose name begins with '.' or '_' do not count"
            );
            return self.fail_job(&reason, out);
        }
        enumeration.lists.insert((vertex, index), Some(visible));
        if enumeration.lists.values().all(Option::is_some) {
            let lists = std::mem::take(&mut enumeration.lists);
            self.splits_enumerated(lists, out);
        }
    }

    fn splits_enumerated(
        &mut self,
        lists: BTreeMap<(JobVertexId, usize), Option<Vec<DirectoryEntry>>>,
        out: &mut Outbox,
    ) {
        let mut files: BTreeMap<JobVertexId, Vec<DirectoryEntry>> = BTreeMap::new();
        for ((vertex, _), list) in lists {
            files.entry(vertex).or_default().extend(list.unwrap_or_default());
        }
        for (vertex, files) in files {
            let Some(source) = &self.execution.graph.vertex(vertex).source else { continue };
            self.splits.insert(vertex, source.splits_of(&files));
        }
        let payloads = self.splits.values().flatten().map(|split| split.payload.len());
        let (count, bytes) = payloads.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        if bytes > SPLIT_BYTES_MAX {
            let reason = format!(
                "the input has {count} splits, whose description has {bytes} bytes, and at most \
                 {SPLIT_BYTES_MAX} fit into the job's record: make splits larger, or files fewer"
            );
            return self.fail_job(&reason, out);
        }
        self.record_job(out);
    }

    /// The job and its splits are to be durable before anything else happens.
    fn record_job(&mut self, out: &mut Outbox) {
        self.enter(Phase::RecordingJob, out);
        self.ask_high_availability(out);
    }

    /// The enumerator of a source vertex, with no split assigned.
    pub(super) fn new_coordinator(&self, vertex: JobVertexId) -> Option<SourceCoordinator> {
        let source = self.execution.graph.vertex(vertex).source.as_ref()?;
        let splits: Vec<SourceSplit> = self.splits.get(&vertex).cloned().unwrap_or_else(|| source.splits());
        Some(SourceCoordinator::with_splits(source.as_ref(), splits))
    }
}
