//! The options of a source: its kind, and what that kind takes.

use crate::connectors::DEFAULT_SPLIT_BYTES;
use crate::coordinator::SplitAssignment;

use super::super::source::{Files, Places, SourceKind, SourceOptions};
use super::MAX_ROWS;
use super::words::Options;

const MAX_SPLITS: u32 = 10_000;
const MAX_KEYS: u32 = 1_000_000;

#[derive(Clone, Copy)]
enum Kind {
    Rows,
    Collection,
    Sequence,
    Csv,
    JsonLines,
    Text,
}

const KINDS: [(&str, Kind); 6] = [
    ("rows", Kind::Rows),
    ("collection", Kind::Collection),
    ("sequence", Kind::Sequence),
    ("csv", Kind::Csv),
    ("json-lines", Kind::JsonLines),
    ("text", Kind::Text),
];

pub(super) fn read(options: &mut Options) -> Result<SourceOptions, String> {
    let kind = match options.one_of("kind", &KINDS)?.unwrap_or(Kind::Rows) {
        Kind::Rows => SourceKind::Rows(places(options)?),
        Kind::Collection => SourceKind::Collection(places(options)?),
        Kind::Sequence => SourceKind::Sequence(places(options)?),
        Kind::Csv => SourceKind::Csv(files(options)?),
        Kind::JsonLines => SourceKind::JsonLines(files(options)?),
        Kind::Text => SourceKind::Text { files: files(options)?, keys: keys(options)? },
    };
    let assignments = [("static", SplitAssignment::Static), ("dynamic", SplitAssignment::Dynamic)];
    let assignment = options.one_of("assignment", &assignments)?.unwrap_or(SplitAssignment::Dynamic);
    let snapshots = match kind {
        SourceKind::Rows(_) | SourceKind::Sequence(_) => {
            options.one_of("snapshots", &[("true", true), ("false", false)])?.unwrap_or(true)
        }
        _ => true,
    };
    Ok(SourceOptions { kind, assignment, snapshots })
}

fn places(options: &mut Options) -> Result<Places, String> {
    let rows = options.number("rows", 0, MAX_ROWS)?;
    Ok(Places {
        rows: rows.ok_or("a source says how many rows it has, for example 'rows=100'")?,
        splits: options.number("splits", 1, MAX_SPLITS)?.unwrap_or(4),
        keys: keys(options)?,
    })
}

fn keys(options: &mut Options) -> Result<u32, String> {
    Ok(options.number("keys", 1, MAX_KEYS)?.unwrap_or(16))
}

fn files(options: &mut Options) -> Result<Files, String> {
    let path = options.text("path").ok_or(
        "a source of files says which file or directory of the input volume it reads, for example 'path=visits'",
    )?;
    let split_bytes = options.number("split-bytes", 1, u32::MAX)?.map_or(DEFAULT_SPLIT_BYTES, u64::from);
    Ok(Files { path, split_bytes })
}
