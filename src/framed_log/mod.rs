//! The format of append-only log files: a header, then records that each carry their length, a
//! checksum, their sequence number and their epoch. What is written is decided elsewhere; here it
//! is only told apart what a crash can leave from what is damage. A log belongs to one epoch (one
//! writer) and is
//!
//! ```text
//! header:  magic (8 bytes) | version u32
//! record:  length u32 | crc32 u32 | sequence u64 | epoch u64 | payload (length bytes, postcard)
//! ```
//!
//! with integers in little endian and the checksum over all of the record but itself. Sequences
//! rise by one. Reading is total: it accepts the longest good prefix and says what follows
//! it. What a crash can leave (a record cut short, bytes of zero, rubbish at the end) is a torn
//! tail and ends the log; a bad record that has a good one behind it is damage.

use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(test)]
mod tests;

/// Bytes of the file header.
pub const HEADER_LENGTH: usize = 12;
/// Bytes of a record without its payload.
pub const RECORD_OVERHEAD: usize = 24;
/// A longer payload cannot be a record.
pub const MAX_PAYLOAD: usize = 64 << 20;

/// What tells the logs of one kind from other files.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub magic: [u8; 8],
    pub version: u32,
    /// What such a file is called, with its article.
    pub file: &'static str,
    /// What its records are called, with their article.
    pub payload: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    pub sequence: u64,
    pub payload: T,
}

/// What follows the good prefix of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// What an interrupted write left, from this offset on.
    Torn { offset: u64 },
    /// Something that no interrupted write leaves, at this offset.
    Damaged { offset: u64, what: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents<T> {
    pub records: Vec<Record<T>>,
    /// Length of the good prefix in bytes.
    pub end: u64,
    pub tail: Tail,
}

/// Appends a record to `buffer`.
pub fn write_record(buffer: &mut Vec<u8>, sequence: u64, epoch: u64, payload: &impl Serialize) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 8]);
    buffer.extend_from_slice(&sequence.to_le_bytes());
    buffer.extend_from_slice(&epoch.to_le_bytes());
    let mut out = postcard::to_extend(payload, std::mem::take(buffer)).expect("records are plain data");
    let length = (out.len() - start - RECORD_OVERHEAD) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    let crc = checksum(&out[start..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    *buffer = out;
}

impl Format {
    pub fn header(&self) -> [u8; HEADER_LENGTH] {
        let mut header = [0; HEADER_LENGTH];
        header[..8].copy_from_slice(&self.magic);
        header[8..].copy_from_slice(&self.version.to_le_bytes());
        header
    }

    /// Reads a whole file of the given epoch. `first` is the sequence of its first record, if that is
    /// known.
    pub fn read<T: DeserializeOwned>(&self, bytes: &[u8], epoch: u64, first: Option<u64>) -> Contents<T> {
        if let Err(tail) = self.check_header(bytes) {
            return Contents { records: Vec::new(), end: 0, tail };
        }
        let mut records = Vec::new();
        let mut due = first;
        let mut offset = HEADER_LENGTH;
        let tail = loop {
            if offset == bytes.len() {
                break Tail::Clean;
            }
            let Some(whole) = whole_record(bytes, offset) else {
                break match next_good_record(bytes, offset + 1, epoch) {
                    Some(next) => damaged(
                        offset,
                        &format!("an unreadable record, though the record at offset {next} is whole"),
                    ),
                    None => Tail::Torn { offset: offset as u64 },
                };
            };
            let (sequence, of_epoch) = (u64_at(whole, 8), u64_at(whole, 16));
            if of_epoch != epoch {
                let what = format!("a record of epoch {of_epoch} in the file of epoch {epoch}");
                break damaged(offset, &what);
            }
            if let Some(due) = due.filter(|due| *due != sequence) {
                break damaged(offset, &format!("record {sequence} where {due} is due"));
            }
            due = sequence.checked_add(1);
            match postcard::from_bytes(&whole[RECORD_OVERHEAD..]) {
                Ok(payload) => records.push(Record { offset: offset as u64, sequence, payload }),
                Err(error) => break damaged(offset, &format!("not {}: {error}", self.payload)),
            }
            offset += whole.len();
        };
        Contents { records, end: offset as u64, tail }
    }

    fn check_header(&self, bytes: &[u8]) -> Result<(), Tail> {
        let header = self.header();
        let good = bytes.iter().zip(header).take_while(|&(byte, right)| *byte == right).count();
        // A crash may leave zeros from any byte on.
        let begun = bytes[good..].iter().all(|&byte| byte == 0);
        match bytes.get(..HEADER_LENGTH) {
            _ if bytes.is_empty() => Err(Tail::Clean),
            Some(_) if good == HEADER_LENGTH => Ok(()),
            _ if begun => Err(Tail::Torn { offset: 0 }),
            Some(head) if head[..8] == self.magic => {
                let (version, known) = (u32_at(head, 8), self.version);
                Err(damaged(8, &format!("format version {version}, this program reads version {known}")))
            }
            _ => {
                let magic = self.magic.escape_ascii();
                let what = format!("this is not {}: its first bytes are not {magic}", self.file);
                Err(damaged(0, &what))
            }
        }
    }
}

/// The bytes of a record whose length fits and whose checksum is right.
fn whole_record(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = &bytes[offset..];
    if rest.len() < RECORD_OVERHEAD {
        return None;
    }
    let length = u32_at(rest, 0) as usize;
    let whole = rest.get(..RECORD_OVERHEAD.checked_add(length).filter(|_| length <= MAX_PAYLOAD)?)?;
    (checksum(whole) == u32_at(whole, 4)).then_some(whole)
}

/// Looks for a whole record of the epoch behind a bad one. Only a damaged file pays for this.
fn next_good_record(bytes: &[u8], from: usize, epoch: u64) -> Option<usize> {
    let last = bytes.len().checked_sub(RECORD_OVERHEAD)?;
    (from..=last).find(|&offset| u64_at(bytes, offset + 16) == epoch && whole_record(bytes, offset).is_some())
}

fn checksum(record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&record[..4]);
    hasher.update(&record[8..]);
    hasher.finalize()
}

fn damaged(offset: usize, what: &str) -> Tail {
    Tail::Damaged { offset: offset as u64, what: what.to_owned() }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}
