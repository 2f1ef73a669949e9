//! The job event log of a run as text: every file that was written, and its records.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use revenant::ids::FencingToken;
use revenant::job_event::record::{Tail, read_file};

use crate::oracle::file_of;
use crate::trace::{RunOutcome, TraceKind};

/// What was appended to each file, whether or not it was there at the end: a job that ends deletes its log.
pub fn dump(outcome: &RunOutcome) -> String {
    let mut files: BTreeMap<(FencingToken, u32), (&str, Vec<u8>, u64)> = BTreeMap::new();
    for event in &outcome.trace {
        match &event.what {
            TraceKind::LogAppended { path, bytes, .. } => {
                let Some(id) = file_of(path) else { continue };
                let (_, content, _) = files.entry(id).or_insert((path, Vec::new(), 0));
                content.extend_from_slice(bytes);
            }
            TraceKind::LogSynced { path, length, .. } => {
                let file = file_of(path).and_then(|id| files.get_mut(&id));
                if let Some((_, _, durable)) = file {
                    *durable = (*durable).max(*length);
                }
            }
            // What a crash takes is written anew, if at all, at the place where it was.
            TraceKind::LogAfterCrash { path, length, .. } => {
                let file = file_of(path).and_then(|id| files.get_mut(&id));
                if let Some((_, content, _)) = file {
                    content.truncate(*length as usize);
                }
            }
            _ => {}
        }
    }
    let mut text = String::new();
    for ((epoch, _), (path, bytes, durable)) in files {
        let _ = writeln!(text, "{path}: {} bytes, {durable} of them durable", bytes.len());
        let contents = read_file(&bytes, epoch);
        for (offset, record) in contents.records {
            let is_durable = if offset < durable { ' ' } else { '?' };
            let _ = writeln!(text, "{offset:>6}{is_durable} {:>3}  {:?}", record.sequence, record.event);
        }
        if contents.tail != Tail::Clean {
            let _ = writeln!(text, "{:>6}  {:?}", contents.end, contents.tail);
        }
    }
    text
}
