//! Fixed digests: the same value has the same digest in every build, process and thread.
//!
//! The standard library's hashers promise nothing across builds; this one writes every number as
//! a little-endian word of fixed width (`usize` as 64 bits). Slices of numbers come from the
//! standard library as raw memory, so digests agree between little-endian machines only.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

/// XXH3 over the files in the order of their paths: two outputs with the same files agree.
pub fn output_digest(files: &BTreeMap<String, Bytes>) -> u64 {
    let mut digest = Xxh3::new();
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    digest.digest()
}

/// Odd, with well-spread bits (from the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Digest {
    pub const fn new(start: u64) -> Self {
        Self(start ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The digest of one value, continuing from `start`.
    pub fn of(start: u64, value: &(impl Hash + ?Sized)) -> u64 {
        let mut digest = Self::new(start);
        value.hash(&mut digest);
        digest.finish()
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ word;
    }
}

impl Hasher for Digest {
    #[inline]
    fn finish(&self) -> u64 {
        let mut last = *self;
        last.word(FACTOR);
        last.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for &word in words {
            self.word(u64::from_le_bytes(word));
        }
        if !rest.is_empty() {
            // The length in the top byte tells `a` from `a\0`.
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last) | (rest.len() as u64) << 56);
        }
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    #[inline]
    fn write_u128(&mut self, n: u128) {
        self.word(n as u64);
        self.word((n >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    #[inline]
    fn write_i8(&mut self, n: i8) {
        self.word(i64::from(n).cast_unsigned());
    }

    #[inline]
    fn write_i16(&mut self, n: i16) {
        self.word(i64::from(n).cast_unsigned());
    }

    #[inline]
    fn write_i32(&mut self, n: i32) {
        self.word(i64::from(n).cast_unsigned());
    }

    #[inline]
    fn write_i64(&mut self, n: i64) {
        self.word(n.cast_unsigned());
    }

    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.word((n as i64).cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use revenant::actor::{Event, TimerId};

    use super::*;

    #[test]
    fn digests_are_the_same_in_every_build() {
        assert_eq!(Digest::of(0, &Event::Timer(TimerId(7))), 8_731_926_188_818_887_834);
        assert_eq!(Digest::of(0, "events.1"), 5_385_214_562_934_291_407);
    }

    #[test]
    fn length_and_order_count() {
        assert_ne!(Digest::of(0, "a"), Digest::of(0, "a\0"));
        assert_ne!(Digest::of(0, &(1u8, 2u8)), Digest::of(0, &(2u8, 1u8)));
        assert_ne!(Digest::of(0, &[1u8][..]), Digest::of(1, &[1u8][..]));
        assert_ne!(Digest::of(0, &0u64), Digest::of(0, &(0u64, 0u64)));
    }
}
