//! Replay: a pure fold from the bytes of the log files to the events that count.
//!
//! The newest `EpochStarted` names the epoch that counts and how much of which older files is
//! history. A file that no newer epoch accepted was never part of it: its leader crashed before it
//! had acted, or was fenced. The files of an epoch are contiguous and so are the sequences of their
//! records, from the newest file that begins with a `BaseRecorded`, or else from the one that begins
//! with the `EpochStarted`; whatever lies before a base does not matter. A last file without a record
//! is nothing. Replay never guesses: a log that is damaged, or that is another job's, gives no events
//! but the reason.

use crate::ids::FencingToken;

use super::record::{self, FileContents, Record, Tail};
use super::{AcceptedFile, JobEvent, Replay};

#[cfg(test)]
mod tests;

/// One file of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogFile<'a> {
    /// Names the file in messages.
    pub path: &'a str,
    /// Epoch in the file's name.
    pub epoch: FencingToken,
    /// Position among the epoch's files, in the file's name.
    pub index: u32,
    pub bytes: &'a [u8],
}

/// What a log is worth, and what of it a new epoch accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub replay: Replay,
    /// For the new epoch's `EpochStarted`: empty after damage, so that the clean start is durable.
    pub accepted: Vec<AcceptedFile>,
}

/// Replays the files of a log, which are in rising order of (epoch, index).
pub fn replay(files: &[LogFile<'_>], fingerprint: u64) -> Outcome {
    let files: Vec<ReadFile<'_>> = files.iter().map(ReadFile::of).collect();
    match history(&files, fingerprint) {
        Ok((events, accepted)) => Outcome { replay: Replay { events, damage: None }, accepted },
        Err(damage) => {
            Outcome { replay: Replay { events: Vec::new(), damage: Some(damage) }, accepted: Vec::new() }
        }
    }
}

type History = (Vec<JobEvent>, Vec<AcceptedFile>);

fn history(files: &[ReadFile<'_>], fingerprint: u64) -> Result<History, String> {
    let started = files.iter().rposition(|file| file.epoch_started().is_some());
    let epoch = started.map(|at| files[at].epoch);
    // An epoch that did not begin has recorded nothing; what is foreign or damaged may not pass for that.
    for file in files.iter().filter(|file| Some(file.epoch) > epoch) {
        file.check()?;
        if !file.is_empty() {
            return Err(format!("{} has records, but no file of its epoch begins it", file.path));
        }
    }
    let Some(started) = started else { return Ok((Vec::new(), Vec::new())) };
    let (of, accepted_then) = files[started].epoch_started().expect("it was found by this");
    if of != fingerprint {
        return Err(format!(
            "{} is the log of another job (graph {of:016x}, this job's is {fingerprint:016x})",
            files[started].path
        ));
    }

    let mut chain: Vec<&ReadFile<'_>> =
        files[started..].iter().filter(|file| Some(file.epoch) == epoch).collect();
    while let Some(last) = chain.last().filter(|last| last.is_empty()) {
        last.check()?;
        chain.pop();
    }
    let base = chain.iter().rposition(|file| file.begins_with_base());
    let chain = &chain[base.unwrap_or(0)..];
    check_chain(chain)?;

    let mut events = Vec::new();
    let mut accepted = Vec::new();
    if base.is_none() {
        for &old in accepted_then {
            events.extend(find_accepted(files, old, files[started].path)?.events_until(old.length));
            accepted.push(old);
        }
    }
    for file in chain {
        events.extend(file.events_until(file.contents.end));
        accepted.push(AcceptedFile { epoch: file.epoch, index: file.index, length: file.contents.end });
    }
    Ok((events, accepted))
}

/// Checks that nothing is missing from the files of an epoch: all but the last must be whole.
fn check_chain(chain: &[&ReadFile<'_>]) -> Result<(), String> {
    for pair in chain.windows(2) {
        let (file, next) = (pair[0], pair[1]);
        let missing = file.index.wrapping_add(1);
        if missing != next.index {
            return Err(format!("{} is followed by {}: file {missing} is missing", file.path, next.path));
        }
        if let Tail::Torn { offset } = file.contents.tail {
            return Err(format!("{} at offset {offset}: torn, though {} follows it", file.path, next.path));
        }
        file.check()?;
    }
    // A file that lost all of its records is not there for this.
    let mut before: Option<u64> = None;
    for file in chain {
        let records = &file.contents.records;
        let (Some((offset, first)), Some((_, last))) = (records.first(), records.last()) else { continue };
        if let Some(before) = before
            && before.checked_add(1) != Some(first.sequence)
        {
            let (path, found) = (file.path, first.sequence);
            return Err(format!("{path} at offset {offset}: record {found} behind record {before}"));
        }
        before = Some(last.sequence);
    }
    chain.last().map_or(Ok(()), |last| last.check())
}

fn find_accepted<'f, 'a>(
    files: &'f [ReadFile<'a>],
    accepted: AcceptedFile,
    by: &str,
) -> Result<&'f ReadFile<'a>, String> {
    let AcceptedFile { epoch, index, length } = accepted;
    let file = files.iter().find(|file| file.epoch == epoch && file.index == index).ok_or_else(|| {
        format!("{by} accepts {length} bytes of file {index} of epoch {epoch}, which is missing")
    })?;
    if file.contents.end < length {
        let (path, end) = (file.path, file.contents.end);
        return Err(format!("{path} at offset {end}: {length} bytes were accepted, only {end} are readable"));
    }
    Ok(file)
}

struct ReadFile<'a> {
    path: &'a str,
    epoch: FencingToken,
    index: u32,
    contents: FileContents,
}

impl<'a> ReadFile<'a> {
    fn of(file: &LogFile<'a>) -> Self {
        let contents = record::read_file(file.bytes, file.epoch);
        Self { path: file.path, epoch: file.epoch, index: file.index, contents }
    }

    /// Refuses a file whose good prefix is followed by something that no crash leaves.
    fn check(&self) -> Result<(), String> {
        match &self.contents.tail {
            Tail::Clean | Tail::Torn { .. } => Ok(()),
            Tail::Damaged { offset, what } => Err(format!("{} at offset {offset}: {what}", self.path)),
        }
    }

    const fn is_empty(&self) -> bool {
        self.contents.records.is_empty()
    }

    fn first(&self) -> Option<&JobEvent> {
        self.contents.records.first().map(|(_, Record { event, .. })| event)
    }

    fn begins_with_base(&self) -> bool {
        matches!(self.first(), Some(JobEvent::BaseRecorded { .. }))
    }

    fn epoch_started(&self) -> Option<(u64, &[AcceptedFile])> {
        match self.first()? {
            JobEvent::EpochStarted { fingerprint, accepted, .. } => Some((*fingerprint, accepted)),
            _ => None,
        }
    }

    fn events_until(&self, length: u64) -> impl Iterator<Item = JobEvent> {
        self.contents
            .records
            .iter()
            .filter(move |(offset, _)| *offset < length)
            .map(|(_, record)| record.event.clone())
            .filter(|event| !matches!(event, JobEvent::EpochStarted { .. }))
    }
}
