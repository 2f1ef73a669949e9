//! Replay: a pure fold from the bytes of the log files to the events that count.
//!
//! The newest file that begins with an intact `EpochStarted` says how much of each older file
//! exists. A file that no newer epoch accepted, or that does not begin with `EpochStarted`, was
//! never part of history: its leader crashed before it had acted, or was fenced. Replay never
//! guesses: a log that is damaged, or that is another job's, gives no events but the reason.

use crate::ids::FencingToken;

use super::record::{self, FileContents, Tail};
use super::{JobEvent, Replay};

/// One file of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogFile<'a> {
    /// Names the file in messages.
    pub path: &'a str,
    /// Epoch in the file's name.
    pub epoch: FencingToken,
    pub bytes: &'a [u8],
}

/// What a log is worth, and what of it a new epoch accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub replay: Replay,
    /// For the new epoch's `EpochStarted`: empty after damage, so that the clean start is durable.
    pub accepted: Vec<(FencingToken, u64)>,
}

/// Replays the files of a log, which are in rising order of their epochs.
pub fn replay(files: &[LogFile<'_>], fingerprint: u64) -> Outcome {
    match history(files, fingerprint) {
        Ok((events, accepted)) => Outcome { replay: Replay { events, damage: None }, accepted },
        Err(damage) => {
            Outcome { replay: Replay { events: Vec::new(), damage: Some(damage) }, accepted: Vec::new() }
        }
    }
}

type History = (Vec<JobEvent>, Vec<(FencingToken, u64)>);

fn history(files: &[LogFile<'_>], fingerprint: u64) -> Result<History, String> {
    let read: Vec<FileContents> =
        files.iter().map(|file| record::read_file(file.bytes, file.epoch)).collect();
    let Some(newest) = read.iter().rposition(|contents| epoch_started(contents).is_some()) else {
        // Nothing was ever recorded. A foreign file must not be mistaken for that.
        return files
            .iter()
            .zip(&read)
            .try_for_each(|(file, contents)| check(file, contents))
            .map(|()| (vec![], vec![]));
    };
    for (file, contents) in files.iter().zip(&read).skip(newest + 1) {
        check(file, contents)?;
    }
    let (of, named) = epoch_started(&read[newest]).expect("chosen by it");
    if of != fingerprint {
        return Err(format!(
            "{} is the log of another job (graph {of:016x}, this job's is {fingerprint:016x})",
            files[newest].path
        ));
    }
    check(&files[newest], &read[newest])?;

    let mut events = Vec::new();
    let mut accepted = Vec::new();
    for &(epoch, length) in named {
        let at = files.iter().position(|file| file.epoch == epoch).ok_or_else(|| {
            format!("{} accepts {length} bytes of epoch {epoch}, whose file is missing", files[newest].path)
        })?;
        let contents = &read[at];
        if contents.end < length {
            let (path, end) = (files[at].path, contents.end);
            return Err(format!("{path}: {length} bytes were accepted, only {end} are readable"));
        }
        events.extend(events_until(contents, length));
        accepted.push((epoch, length));
    }
    events.extend(events_until(&read[newest], read[newest].end));
    accepted.push((files[newest].epoch, read[newest].end));
    Ok((events, accepted))
}

/// Refuses a file whose good prefix is followed by something that no crash leaves.
fn check(file: &LogFile<'_>, contents: &FileContents) -> Result<(), String> {
    match &contents.tail {
        Tail::Clean | Tail::Torn { .. } => Ok(()),
        Tail::Damaged { offset, what } => Err(format!("{} at offset {offset}: {what}", file.path)),
    }
}

fn epoch_started(contents: &FileContents) -> Option<(u64, &[(FencingToken, u64)])> {
    match &contents.records.first()?.1.event {
        JobEvent::EpochStarted { fingerprint, accepted, .. } => Some((*fingerprint, accepted)),
        _ => None,
    }
}

fn events_until(contents: &FileContents, length: u64) -> impl Iterator<Item = JobEvent> {
    contents
        .records
        .iter()
        .filter(move |(offset, _)| *offset < length)
        .map(|(_, record)| record.event.clone())
        .filter(|event| !matches!(event, JobEvent::EpochStarted { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ExecutionVertexId, JobVertexId};

    const JOB: u64 = 42;

    fn event(subtask: u32) -> JobEvent {
        JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(JobVertexId(0), subtask)] }
    }

    fn file(epoch: u64, accepted: &[(u64, usize)], subtasks: &[u32]) -> Vec<u8> {
        let token = FencingToken(epoch);
        let accepted = accepted.iter().map(|&(epoch, length)| (FencingToken(epoch), length as u64)).collect();
        let mut bytes = record::header().to_vec();
        let start = JobEvent::EpochStarted { token, fingerprint: JOB, accepted };
        record::write_record(&mut bytes, 0, token, &start);
        for (i, &subtask) in subtasks.iter().enumerate() {
            record::write_record(&mut bytes, i as u64 + 1, token, &event(subtask));
        }
        bytes
    }

    fn run(files: &[(u64, &[u8])]) -> Outcome {
        let files: Vec<LogFile<'_>> = files
            .iter()
            .map(|&(epoch, bytes)| LogFile { path: "log", epoch: FencingToken(epoch), bytes })
            .collect();
        replay(&files, JOB)
    }

    #[test]
    fn epochs_add_up_in_order() {
        let first = file(1, &[], &[10, 11]);
        let second = file(2, &[(1, first.len())], &[20]);
        let outcome = run(&[(1, &first), (2, &second)]);
        assert_eq!(outcome.replay.events, [event(10), event(11), event(20)]);
        assert_eq!(
            outcome.accepted,
            [(FencingToken(1), first.len() as u64), (FencingToken(2), second.len() as u64)]
        );
    }

    #[test]
    fn b7_what_an_old_leader_adds_after_its_file_was_accepted_does_not_exist() {
        let accepted = file(1, &[], &[10]).len();
        let first = file(1, &[], &[10, 11]);
        let second = file(2, &[(1, accepted)], &[20]);
        assert_eq!(run(&[(1, &first), (2, &second)]).replay.events, [event(10), event(20)]);
    }

    #[test]
    fn a_file_that_no_newer_epoch_accepted_does_not_exist() {
        let first = file(1, &[], &[10]);
        let second = file(2, &[(1, first.len())], &[20]);
        let third = file(3, &[(1, first.len())], &[30]);
        let outcome = run(&[(1, &first), (2, &second), (3, &third)]);
        assert_eq!(outcome.replay.events, [event(10), event(30)]);
    }

    #[test]
    fn b6_an_empty_or_begun_newest_file_is_no_history() {
        let first = file(1, &[], &[10]);
        let whole = file(2, &[(1, first.len())], &[]);
        for cut in 0..whole.len() {
            let outcome = run(&[(1, &first), (2, &whole[..cut])]);
            assert_eq!(outcome.replay.events, [event(10)], "cut at {cut}");
            assert_eq!(outcome.replay.damage, None);
        }
        assert_eq!(run(&[(1, b"")]).replay, Replay::default());
    }

    #[test]
    fn b12_a_torn_tail_ends_the_log() {
        let first = file(1, &[], &[10, 11]);
        let outcome = run(&[(1, &first[..first.len() - 1])]);
        assert_eq!(outcome.replay.events, [event(10)]);
        assert_eq!(outcome.accepted, [(FencingToken(1), file(1, &[], &[10]).len() as u64)]);
    }

    #[test]
    fn damage_in_the_middle_gives_the_reason_and_accepts_nothing() {
        let mut first = file(1, &[], &[10, 11]);
        let at = file(1, &[], &[]).len();
        first[at + 9] ^= 1;
        let outcome = run(&[(1, &first)]);
        assert!(outcome.replay.events.is_empty() && outcome.accepted.is_empty());
        assert!(outcome.replay.damage.unwrap().starts_with(&format!("log at offset {at}: ")));
    }

    #[test]
    fn an_accepted_file_that_lost_bytes_or_is_gone_is_damage() {
        let first = file(1, &[], &[10]);
        let second = file(2, &[(1, first.len())], &[20]);
        assert!(run(&[(1, &first[..first.len() - 1]), (2, &second)]).replay.damage.is_some());
        assert!(run(&[(2, &second)]).replay.damage.unwrap().contains("missing"));
    }

    #[test]
    fn a_log_of_another_job_is_refused() {
        let first = file(1, &[], &[10]);
        let files = [LogFile { path: "log", epoch: FencingToken(1), bytes: &first }];
        assert!(replay(&files, JOB + 1).replay.damage.unwrap().contains("another job"));
    }
}
