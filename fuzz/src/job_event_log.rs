//! Job event log bytes → replay: whatever the files hold, replay ends, and what it gives can be folded onto
//! a job graph or is refused with a reason. What a new epoch accepts of the files is what it goes on with:
//! a replay behind it gives the same, whatever an old leader still adds to its file.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use revenant::config::JobArguments;
use revenant::graph::JobGraph;
use revenant::ids::{ExecutionVertexId, FencingToken, JobVertexId};
use revenant::job_event::replay::{LogFile, Outcome, replay};
use revenant::job_event::{JobEvent, record};
use revenant::scheduler::fold;

static GRAPH: LazyLock<Arc<JobGraph>> = LazyLock::new(|| {
    let job = JobArguments::new("lineitem-by-ship-date");
    // As scenarios/lineitem.toml has it.
    let job = job.with("scale-factor", 0.0001).with("source-parallelism", 5).with("splits", 8);
    revenant::jobs::registry().build(&job).expect("these are its arguments")
});

/// By epoch and index.
pub type Files = BTreeMap<(u8, u8), Vec<u8>>;

/// Of the first byte of an input: the checksums of all records are made right before replay reads them, so
/// that what is behind the checksums is reached.
const REPAIRED: u8 = b'r';

/// An input that `check` takes.
pub fn written(files: &Files, repaired: bool) -> Vec<u8> {
    let mut bytes = vec![if repaired { REPAIRED } else { b'a' }];
    for ((epoch, index), content) in files {
        bytes.extend([*epoch, *index]);
        bytes.extend((content.len() as u16).to_le_bytes());
        bytes.extend(content);
    }
    bytes
}

fn read(bytes: &[u8]) -> Files {
    let Some((kind, mut rest)) = bytes.split_first() else { return Files::new() };
    let mut files = Files::new();
    while let Some((&[epoch, index, low, high], behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(behind.len());
        let (content, behind) = behind.split_at(length);
        rest = behind;
        let mut content = content.to_vec();
        if *kind == REPAIRED {
            repair(&mut content);
        }
        files.insert((epoch, index), content);
    }
    files
}

/// Makes the checksums right, as far as the lengths of records fit.
fn repair(file: &mut [u8]) {
    let Some(mut rest) = file.get_mut(record::HEADER_LENGTH..) else { return };
    while let Some(length) = rest.first_chunk::<4>() {
        let end = record::RECORD_OVERHEAD.saturating_add(u32::from_le_bytes(*length) as usize);
        let Some((record, behind)) = rest.split_at_mut_checked(end) else { return };
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&record[..4]);
        checksum.update(&record[8..]);
        record[4..8].copy_from_slice(&checksum.finalize().to_le_bytes());
        rest = behind;
    }
}

/// Whether the log has events that are not damaged.
pub fn check(bytes: &[u8]) -> bool {
    let mut files = read(bytes);
    let fingerprint = fingerprint(&files);
    let outcome = replayed(&files, fingerprint);
    let Outcome { replay, accepted } = &outcome;
    if let Some(damage) = &replay.damage {
        assert!(replay.events.is_empty() && accepted.is_empty() && !damage.is_empty(), "{outcome:?}");
    }
    for old in accepted {
        let length = files.iter().find_map(|((epoch, index), content)| {
            let is_it = u64::from(*epoch) == old.epoch.0 && u32::from(*index) == old.index;
            is_it.then_some(content.len() as u64)
        });
        assert!(length.is_some_and(|length| old.length <= length), "{old:?} of {length:?} bytes");
    }
    if let Err(refusal) = fold(&replay.events, &GRAPH) {
        assert!(!refusal.is_empty(), "a refusal without a reason");
    }

    let Some(next) = files.keys().last().map_or(Some(1), |(epoch, _)| epoch.checked_add(1)) else {
        return false;
    };
    for ((epoch, _), content) in &mut files {
        let late =
            JobEvent::ExecutionVertexReset { subtasks: vec![ExecutionVertexId::new(JobVertexId(0), 77)] };
        let sequence = record::read_file(content, FencingToken((*epoch).into())).records.len() as u64;
        record::write_record(content, sequence, FencingToken((*epoch).into()), &late);
    }
    let token = FencingToken(next.into());
    let started = JobEvent::EpochStarted { token, fingerprint, accepted: accepted.clone() };
    let mut begun = record::header().to_vec();
    record::write_record(&mut begun, 0, token, &started);
    files.insert((next, 0), begun);
    let again = replayed(&files, fingerprint);
    assert_eq!((&again.replay.events, &again.replay.damage), (&replay.events, &None), "{accepted:?}");
    replay.damage.is_none() && !replay.events.is_empty()
}

/// Of the job that the oldest epoch says that it is about.
fn fingerprint(files: &Files) -> u64 {
    let first = files.iter().find_map(|((epoch, _), content)| {
        let mut records = record::read_file(content, FencingToken((*epoch).into())).records.into_iter();
        match records.next()?.1.event {
            JobEvent::EpochStarted { fingerprint, .. } => Some(fingerprint),
            _ => None,
        }
    });
    first.unwrap_or_default()
}

fn replayed(files: &Files, fingerprint: u64) -> Outcome {
    let names: Vec<String> = files.keys().map(|(epoch, index)| format!("events.{epoch}.{index}")).collect();
    let files: Vec<LogFile<'_>> = files
        .iter()
        .zip(&names)
        .map(|((&(epoch, index), bytes), path)| LogFile {
            path,
            epoch: FencingToken(epoch.into()),
            index: index.into(),
            bytes,
        })
        .collect();
    replay(&files, fingerprint)
}
