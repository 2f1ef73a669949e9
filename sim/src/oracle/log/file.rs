//! One file of the log, as its bytes came and went.

use revenant::ids::FencingToken;
use revenant::job_event::JobEvent;
use revenant::job_event::record::{Tail, read_file};

use super::Bytes;

/// Epoch, and position among its files.
pub type FileId = (FencingToken, u32);

#[derive(Clone, Debug)]
pub struct LogRecord {
    pub event: JobEvent,
    /// Offset behind the record.
    pub end: u64,
    /// Trace index from which it was in the file.
    pub written: usize,
    /// Trace index from which it was durable.
    pub durable: Option<usize>,
    /// Trace index at which a crash or a flipped bit took it.
    pub lost: Option<usize>,
}

impl LogRecord {
    pub fn counts(&self, at: usize, which: Bytes) -> bool {
        let since = match which {
            Bytes::Durable => self.durable,
            Bytes::Visible => Some(self.written),
        };
        since.is_some_and(|since| since <= at) && self.lost.is_none_or(|lost| lost > at)
    }
}

/// A span of time in which bytes of a file were wrong.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// Trace index from which they are wrong.
    pub since: usize,
    /// Trace index from which they are right again, or wrong elsewhere: a bit that flips twice is as it was.
    pub until: Option<usize>,
    /// Where the good prefix ends.
    pub from: u64,
    /// Trace index from which something good is behind it.
    pub behind: Option<usize>,
}

impl Broken {
    pub fn at(&self, at: usize) -> bool {
        self.since <= at && self.until.is_none_or(|until| until > at)
    }
}

#[derive(Debug, Default)]
pub struct OpenFile {
    bytes: Vec<u8>,
    /// (trace index, length of the file after it), rising.
    writes: Vec<(usize, u64)>,
    /// (trace index, durable length).
    syncs: Vec<(usize, u64)>,
}

impl OpenFile {
    pub fn append(&mut self, at: usize, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.writes.push((at, self.bytes.len() as u64));
    }

    pub fn sync(&mut self, at: usize, length: u64) {
        self.syncs.push((at, length));
    }

    /// The records that end behind `from`.
    pub fn records(&self, (epoch, _): FileId, from: u64) -> Vec<LogRecord> {
        let (mut records, _) = decode(&self.bytes, epoch);
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

    /// A crash left so many bytes: the records that it took.
    pub fn truncate(&mut self, id: FileId, at: usize, length: u64) -> Vec<LogRecord> {
        let lost = self.lost(id, at, length);
        self.bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        // A record that is left was written and synced when it was, whatever came behind it.
        for moment in self.writes.iter_mut().chain(&mut self.syncs) {
            moment.1 = moment.1.min(length);
        }
        lost
    }

    /// Bytes were changed: the records that cannot be read any more, and what is broken, if anything.
    pub fn corrupt(
        &mut self,
        id: FileId,
        at: usize,
        change: impl Fn(&mut [u8]),
    ) -> (Vec<LogRecord>, Option<Broken>) {
        let mut flipped = self.bytes.clone();
        change(&mut flipped);
        let (left, tail) = decode(&flipped, id.0);
        let from = left.last().map_or(0, |(end, _)| *end);
        let lost = self.lost(id, at, from);
        self.bytes = flipped;
        let behind = matches!(tail, Tail::Damaged { .. }).then_some(at);
        let broken = !matches!(tail, Tail::Clean);
        (lost, broken.then_some(Broken { since: at, until: None, from, behind }))
    }

    fn lost(&self, id: FileId, at: usize, from: u64) -> Vec<LogRecord> {
        let mut lost = self.records(id, from);
        for record in &mut lost {
            record.lost = Some(at);
        }
        lost
    }
}

/// The whole records of a file with the offsets behind them, and what follows them: the only place
/// that knows the format.
fn decode(bytes: &[u8], epoch: FencingToken) -> (Vec<(u64, JobEvent)>, Tail) {
    let contents = read_file(bytes, epoch);
    let starts = contents.records.iter().skip(1).map(|(offset, _)| *offset);
    let ends: Vec<u64> = starts.chain(std::iter::once(contents.end)).collect();
    let records = contents.records.into_iter().zip(ends).map(|((_, record), end)| (end, record.event));
    (records.collect(), contents.tail)
}

/// What the name of a file of the job event store says: `…/job-events/events.<epoch>.<index>`.
pub fn file_of(path: &str) -> Option<FileId> {
    let (_, name) = path.rsplit_once("/events.")?;
    let (epoch, index) = name.split_once('.')?;
    Some((FencingToken(epoch.parse().ok()?), index.parse().ok()?))
}
