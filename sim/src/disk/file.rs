//! The bytes of one file, which only grow, and how many of them are durable.

use bytes::{Bytes, BytesMut};
use revenant::actor::Purpose;
use xxhash_rust::xxh3::Xxh3;

#[derive(Clone, Debug, Default)]
pub struct File {
    /// Pieces with their offsets, so that what was appended in one piece is read without a copy.
    pieces: Vec<(u64, Bytes)>,
    pub length: u64,
    /// Bytes from the start that a machine crash cannot take.
    pub durable: u64,
    /// What it was made for.
    pub purpose: Option<Purpose>,
    /// Ranges whose sync failed: they count as written, and never reach the disk.
    holes: Vec<(u64, u64)>,
}

impl File {
    pub fn new(purpose: Purpose) -> Self {
        Self { purpose: Some(purpose), ..Self::default() }
    }

    /// Whether the file belongs to the job event store.
    pub fn is_log(&self) -> bool {
        self.purpose == Some(Purpose::JobEvent)
    }

    pub fn append(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let offset = self.length;
            self.length += bytes.len() as u64;
            self.pieces.push((offset, bytes));
        }
    }

    /// Up to `length` bytes from `offset`.
    pub fn read(&self, offset: u64, length: u64) -> Bytes {
        let end = offset.saturating_add(length).min(self.length);
        if offset >= end {
            return Bytes::new();
        }
        let first = self.pieces.partition_point(|(start, bytes)| start + bytes.len() as u64 <= offset);
        let slice = |(start, bytes): &(u64, Bytes)| {
            let from = offset.saturating_sub(*start) as usize;
            let to = (end - start).min(bytes.len() as u64) as usize;
            bytes.slice(from..to)
        };
        let last = self.pieces.partition_point(|(start, _)| *start < end);
        match &self.pieces[first..last] {
            [piece] => slice(piece),
            pieces => {
                let mut all = BytesMut::with_capacity((end - offset) as usize);
                for piece in pieces {
                    all.extend_from_slice(&slice(piece));
                }
                all.freeze()
            }
        }
    }

    /// Whether a crash of the machine could take bytes.
    pub fn has_unsynced(&self) -> bool {
        self.durable < self.length || !self.holes.is_empty()
    }

    /// Adds all bytes, however they lie in pieces, and how many are durable.
    pub fn digest(&self, digest: &mut Xxh3) {
        digest.update(&self.length.to_le_bytes());
        digest.update(&self.durable.to_le_bytes());
        for (_, piece) in &self.pieces {
            digest.update(piece);
        }
    }

    /// What a sync does that fails: the system forgets that these bytes are still to be written, and a
    /// later sync succeeds without them.
    pub fn fail_sync(&mut self) {
        if self.durable < self.length {
            self.holes.push((self.durable, self.length));
        }
    }

    /// Where an append ended beyond what was synced, and where what was synced ends.
    pub fn record_ends(&self) -> impl Iterator<Item = u64> {
        let ends = self.pieces.iter().map(|(start, bytes)| start + bytes.len() as u64);
        let durable = self.durable;
        [durable].into_iter().chain(ends.filter(move |end| *end > durable))
    }

    /// What a crash of the machine makes of it: `length` bytes are left, of which those from `zeros` on
    /// are zeros, and so is what never reached the disk. All of it is durable. The ranges that are
    /// zeros now.
    pub fn crash(&mut self, length: u64, zeros: u64) -> Vec<(u64, u64)> {
        self.truncate(length);
        let ranges = std::mem::take(&mut self.holes).into_iter().chain([(zeros, u64::MAX)]);
        let lost: Vec<(u64, u64)> =
            ranges.map(|(from, to)| (from, to.min(self.length))).filter(|(from, to)| from < to).collect();
        if !lost.is_empty() {
            let mut all = self.read(0, u64::MAX).to_vec();
            for &(from, to) in &lost {
                all[from as usize..to as usize].fill(0);
            }
            self.pieces = vec![(0, all.into())];
        }
        self.durable = self.length;
        lost
    }

    /// Flips the lowest bit of the byte at `offset`, if there is one.
    pub fn flip(&mut self, offset: u64) {
        let mut all = self.read(0, u64::MAX).to_vec();
        if let Some(byte) = all.get_mut(offset as usize) {
            *byte ^= 1;
            self.pieces = vec![(0, all.into())];
        }
    }

    pub fn truncate(&mut self, length: u64) {
        if length < self.length {
            let rest = self.read(0, length);
            self.pieces.clear();
            self.length = 0;
            self.append(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_reads_as_if_the_file_were_one_piece() {
        let whole = b"abcdefghij";
        let mut file = File::default();
        for piece in [&whole[..3], &[], &whole[3..4], &whole[4..]] {
            file.append(Bytes::copy_from_slice(piece));
        }
        for from in 0..12u64 {
            for length in 0..13u64 {
                let end = (from + length).min(10) as usize;
                let expected = whole.get(from as usize..end).unwrap_or_default();
                assert_eq!(file.read(from, length), expected, "{from}+{length}");
            }
        }
        assert_eq!(file.read(2, u64::MAX), whole[2..]);
        file.truncate(5);
        assert_eq!((file.read(0, 99), file.length), (Bytes::from_static(b"abcde"), 5));
        file.append(Bytes::from_static(b"X"));
        assert_eq!(file.read(3, 9), Bytes::from_static(b"deX"));
        file.flip(5);
        file.flip(6);
        assert_eq!(file.read(3, 9), Bytes::from_static(b"deY"));
    }

    fn file(synced: &'static str, not: &'static str) -> File {
        let mut file = File::default();
        file.append(Bytes::from_static(synced.as_bytes()));
        file.durable = file.length;
        file.append(Bytes::from_static(not.as_bytes()));
        file
    }

    #[test]
    fn a_crash_cuts_a_file_and_fills_it_with_zeros() {
        let mut cut = file("abc", "def");
        assert_eq!((cut.crash(4, 4), cut.read(0, 9), cut.durable), (vec![], Bytes::from_static(b"abcd"), 4));
        let mut zeros = file("abc", "def");
        assert_eq!((zeros.crash(6, 4), zeros.read(0, 9)), (vec![(4, 6)], Bytes::from_static(b"abcd\0\0")));
    }

    #[test]
    fn what_a_failed_sync_covered_is_gone_after_a_crash_even_if_a_later_sync_succeeds() {
        let mut file = file("abc", "def");
        file.fail_sync();
        file.append(Bytes::from_static(b"gh"));
        file.durable = file.length;
        assert_eq!(file.read(0, 9), Bytes::from_static(b"abcdefgh"), "until then it is read from memory");
        assert_eq!((file.crash(8, 8), file.read(0, 9)), (vec![(3, 6)], Bytes::from_static(b"abc\0\0\0gh")));
    }

    #[test]
    fn records_end_where_appends_did() {
        let mut file = file("abc", "def");
        file.append(Bytes::from_static(b"gh"));
        assert_eq!(file.record_ends().collect::<Vec<_>>(), [3, 6, 8]);
    }
}
