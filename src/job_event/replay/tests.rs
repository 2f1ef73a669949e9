//! Logs made by hand: several epochs, several files of one, bases, and what crashes and failures of
//! the disk leave of them.

use super::*;
use crate::ids::{ExecutionVertexId, JobVertexId};

const JOB: u64 = 42;

fn event(subtask: u32) -> JobEvent {
    JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(JobVertexId(0), subtask)] }
}

/// A base that is told from others by the vertex of its only snapshot.
fn base(n: u32) -> JobEvent {
    let coordinators = vec![(JobVertexId(n), Vec::new().into())];
    JobEvent::BaseRecorded { initialized: vec![], finished: vec![], coordinators }
}

fn started(epoch: u64, accepted: &[(u64, u32, usize)]) -> JobEvent {
    let accepted = accepted.iter().map(|&(epoch, index, length)| AcceptedFile {
        epoch: FencingToken(epoch),
        index,
        length: length as u64,
    });
    JobEvent::EpochStarted { token: FencingToken(epoch), fingerprint: JOB, accepted: accepted.collect() }
}

/// A file with these events, the first of them with sequence `first`.
fn file(epoch: u64, first: u64, events: &[JobEvent]) -> Vec<u8> {
    let mut bytes = record::header().to_vec();
    for (sequence, event) in (first..).zip(events) {
        record::write_record(&mut bytes, sequence, FencingToken(epoch), event);
    }
    bytes
}

/// The first file of an epoch, with resets of these subtasks.
fn first_file(epoch: u64, accepted: &[(u64, u32, usize)], subtasks: &[u32]) -> Vec<u8> {
    let events: Vec<JobEvent> =
        [started(epoch, accepted)].into_iter().chain(subtasks.iter().map(|&n| event(n))).collect();
    file(epoch, 0, &events)
}

/// Replays files (epoch, index, bytes); each is called `<epoch>.<index>`.
fn run(files: &[(u64, u32, &[u8])]) -> Outcome {
    let names: Vec<String> = files.iter().map(|(epoch, index, _)| format!("{epoch}.{index}")).collect();
    let files: Vec<LogFile<'_>> = files
        .iter()
        .zip(&names)
        .map(|(&(epoch, index, bytes), path)| LogFile { path, epoch: FencingToken(epoch), index, bytes })
        .collect();
    replay(&files, JOB)
}

fn accepted(outcome: &Outcome) -> Vec<(u64, u32, usize)> {
    outcome.accepted.iter().map(|file| (file.epoch.0, file.index, file.length as usize)).collect()
}

#[track_caller]
fn damaged(files: &[(u64, u32, &[u8])], what: &str) {
    let outcome = run(files);
    assert!(outcome.replay.events.is_empty() && outcome.accepted.is_empty(), "{outcome:?}");
    let damage = outcome.replay.damage.expect("the log is damaged");
    assert!(damage.contains(what), "{damage}");
}

#[test]
fn epochs_add_up_in_order() {
    let first = first_file(1, &[], &[10, 11]);
    let second = first_file(2, &[(1, 0, first.len())], &[20]);
    let outcome = run(&[(1, 0, &first), (2, 0, &second)]);
    assert_eq!(outcome.replay.events, [event(10), event(11), event(20)]);
    assert_eq!(accepted(&outcome), [(1, 0, first.len()), (2, 0, second.len())]);
}

#[test]
fn the_files_of_an_epoch_add_up_in_order() {
    let first = first_file(1, &[], &[10, 11]);
    let second = file(1, 3, &[event(12)]);
    let third = file(1, 4, &[event(13)]);
    let outcome = run(&[(1, 0, &first), (1, 1, &second), (1, 2, &third)]);
    assert_eq!(outcome.replay.events, [event(10), event(11), event(12), event(13)]);
    let all = [(1, 0, first.len()), (1, 1, second.len()), (1, 2, third.len())];
    assert_eq!(accepted(&outcome), all);
    let next = first_file(2, &all, &[20]);
    let outcome = run(&[(1, 0, &first), (1, 1, &second), (1, 2, &third), (2, 0, &next)]);
    assert_eq!(outcome.replay.events.len(), 5);
}

#[test]
fn b7_what_an_old_leader_adds_to_its_file_or_in_new_ones_after_they_were_accepted_does_not_exist() {
    let length = first_file(1, &[], &[10]).len();
    let first = first_file(1, &[], &[10, 11]);
    let further = file(1, 3, &[event(12)]);
    let with_base = file(1, 4, &[base(1)]);
    let second = first_file(2, &[(1, 0, length)], &[20]);
    let outcome = run(&[(1, 0, &first), (1, 1, &further), (1, 2, &with_base), (2, 0, &second)]);
    assert_eq!(outcome.replay.events, [event(10), event(20)]);
    assert_eq!(accepted(&outcome), [(1, 0, length), (2, 0, second.len())]);
}

#[test]
fn a_file_that_no_newer_epoch_accepted_does_not_exist() {
    let first = first_file(1, &[], &[10]);
    let second = first_file(2, &[(1, 0, first.len())], &[20]);
    let third = first_file(3, &[(1, 0, first.len())], &[30]);
    let outcome = run(&[(1, 0, &first), (2, 0, &second), (3, 0, &third)]);
    assert_eq!(outcome.replay.events, [event(10), event(30)]);
}

#[test]
fn b6_an_empty_or_begun_newest_file_is_no_history() {
    let first = first_file(1, &[], &[10]);
    let next_epoch = first_file(2, &[(1, 0, first.len())], &[]);
    for (epoch, index, next) in [(2, 0, next_epoch), (1, 1, file(1, 2, &[event(11)]))] {
        for cut in 0..next.len() {
            let outcome = run(&[(1, 0, &first), (epoch, index, &next[..cut])]);
            assert_eq!(outcome.replay.events, [event(10)], "cut at {cut}");
            assert_eq!(outcome.replay.damage, None);
        }
    }
    assert_eq!(run(&[(1, 0, b"")]).replay, Replay::default());
}

#[test]
fn b12_a_torn_tail_ends_the_log() {
    let first = first_file(1, &[], &[10, 11]);
    let outcome = run(&[(1, 0, &first[..first.len() - 1])]);
    assert_eq!(outcome.replay.events, [event(10)]);
    assert_eq!(accepted(&outcome), [(1, 0, first_file(1, &[], &[10]).len())]);
}

#[test]
fn b12_a_bogus_length_in_the_last_record_is_torn_and_before_good_ones_damage() {
    let at = first_file(1, &[], &[10, 11, 12, 13]).len();
    let mut last = first_file(1, &[], &[10, 11, 12, 13, 14]);
    last[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(run(&[(1, 0, &last)]).replay.events.len(), 4);
    record::write_record(&mut last, 6, FencingToken(1), &event(15));
    damaged(&[(1, 0, &last)], &format!("1.0 at offset {at}: "));
}

#[test]
fn damage_in_the_middle_gives_the_reason_and_accepts_nothing() {
    let at = first_file(1, &[], &[]).len();
    let mut first = first_file(1, &[], &[10, 11]);
    first[at + 9] ^= 1;
    damaged(&[(1, 0, &first)], &format!("1.0 at offset {at}: "));
}

#[test]
fn a_torn_file_that_is_not_the_last_is_damage_with_its_offset() {
    let first = first_file(1, &[], &[10, 11]);
    let torn = &first[..first.len() - 1];
    let offset = first_file(1, &[], &[10]).len();
    damaged(&[(1, 0, torn), (1, 1, &file(1, 3, &[event(12)]))], &format!("1.0 at offset {offset}: torn"));
}

#[test]
fn a_missing_file_and_a_missing_record_are_damage() {
    let first = first_file(1, &[], &[10]);
    let third = file(1, 3, &[event(12)]);
    damaged(&[(1, 0, &first), (1, 2, &third)], "1.0 is followed by 1.2: file 1 is missing");
    damaged(&[(1, 0, &first), (1, 1, &third)], "1.1 at offset 12: record 3 behind record 1");
    for empty in [&[][..], &file(1, 2, &[])] {
        damaged(
            &[(1, 0, &first), (1, 1, empty), (1, 2, &third)],
            "1.2 at offset 12: record 3 behind record 1",
        );
    }
}

#[test]
fn an_accepted_file_that_lost_bytes_or_is_gone_is_damage() {
    let first = first_file(1, &[], &[10]);
    let more = file(1, 2, &[event(11)]);
    let second = first_file(2, &[(1, 0, first.len()), (1, 1, more.len())], &[20]);
    let shorter = &first[..first.len() - 1];
    damaged(&[(1, 0, shorter), (1, 1, &more), (2, 0, &second)], "1.0 at offset");
    damaged(&[(1, 0, &first), (2, 0, &second)], "file 1 of epoch 1, which is missing");
    damaged(&[(2, 0, &second)], "file 0 of epoch 1, which is missing");
}

#[test]
fn a_log_of_another_job_is_refused() {
    let first = first_file(1, &[], &[10]);
    let files = [LogFile { path: "log", epoch: FencingToken(1), index: 0, bytes: &first }];
    assert!(replay(&files, JOB + 1).replay.damage.unwrap().contains("another job"));
}

#[test]
fn history_begins_at_the_newest_base_whatever_lies_before_it() {
    let old = first_file(1, &[], &[1]);
    let mut first = first_file(2, &[(1, 0, old.len())], &[10, 11, 12]);
    let middle = first.len() - 60;
    first[middle] ^= 1;
    let torn = &file(2, 4, &[base(1)])[..20];
    let with_base = file(2, 9, &[base(2), event(20)]);
    let more = file(2, 11, &[event(21)]);
    // The file of epoch 1 is gone, 2.0 is damaged, 2.1 is torn, 2.2 was never made.
    let files: [(u64, u32, &[u8]); 4] = [(2, 0, &first), (2, 1, torn), (2, 3, &with_base), (2, 4, &more)];
    let outcome = run(&files);
    assert_eq!(outcome.replay.damage, None);
    assert_eq!(outcome.replay.events, [base(2), event(20), event(21)]);
    assert_eq!(accepted(&outcome), [(2, 3, with_base.len()), (2, 4, more.len())]);
    let next = first_file(3, &accepted(&outcome), &[30]);
    let outcome = run(&[&files[..], &[(3, 0, &next)]].concat());
    assert_eq!(outcome.replay.events, [base(2), event(20), event(21), event(30)]);
}

#[test]
fn what_a_failing_time_left_before_a_crash_that_met_no_base_is_the_history_before_it() {
    let first = first_file(1, &[], &[10, 11]);
    let torn = &first[..first.len() - 1];
    let begun = record::header();
    let half_a_base = &file(1, 7, &[base(1)])[..30];
    let outcome = run(&[(1, 0, torn), (1, 1, b""), (1, 3, &begun), (1, 4, half_a_base)]);
    assert_eq!(outcome.replay.events, [event(10)]);
    assert_eq!(accepted(&outcome), [(1, 0, first_file(1, &[], &[10]).len())]);
}

#[test]
fn an_epoch_that_had_to_begin_twice_began_with_the_newer_file() {
    let first = first_file(1, &[], &[10]);
    let (tried, begun) = (first_file(2, &[], &[]), first_file(2, &[(1, 0, first.len())], &[20]));
    let outcome = run(&[(1, 0, &first), (2, 0, &tried), (2, 2, &begun)]);
    assert_eq!(outcome.replay.events, [event(10), event(20)]);
}

#[test]
fn records_of_an_epoch_that_never_began_are_damage() {
    let first = first_file(1, &[], &[10]);
    damaged(&[(1, 0, &first), (2, 1, &file(2, 4, &[event(20)]))], "2.1 has records");
    damaged(&[(1, 0, &file(1, 4, &[event(20)]))], "1.0 has records");
}

#[test]
fn a_clean_start_after_damage_is_durable_and_a_second_crash_does_not_bring_the_history_back() {
    let mut first = first_file(1, &[], &[10, 11]);
    let at = first.len() - 40;
    first[at] ^= 1;
    let outcome = run(&[(1, 0, &first)]);
    assert!(outcome.replay.damage.is_some());
    let second = first_file(2, &accepted(&outcome), &[]);
    let outcome = run(&[(1, 0, &first), (2, 0, &second)]);
    assert_eq!(outcome.replay, Replay::default());
    assert_eq!(accepted(&outcome), [(2, 0, second.len())]);
    let third = first_file(3, &accepted(&outcome), &[30]);
    assert_eq!(run(&[(1, 0, &first), (2, 0, &second), (3, 0, &third)]).replay.events, [event(30)]);
}
