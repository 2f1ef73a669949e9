//! The bytes of one file, which only grow, and how many of them are durable.

use bytes::{Bytes, BytesMut};
use revenant::actor::Purpose;

#[derive(Clone, Debug, Default)]
pub struct File {
    /// Pieces with their offsets, so that what was appended in one piece is read without a copy.
    pieces: Vec<(u64, Bytes)>,
    pub length: u64,
    /// Bytes from the start that a machine crash cannot take.
    pub durable: u64,
    /// What it was made for.
    pub purpose: Option<Purpose>,
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
}
