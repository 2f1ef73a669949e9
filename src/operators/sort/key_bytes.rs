//! [`KeyBytes`]: the encoding of a key, ordered byte by byte. Most keys are short, and a short one
//! costs no allocation and is compared as one number.

use std::cmp::Ordering;

/// Bytes of the prefix.
const PREFIX: usize = 8;

/// Some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct KeyBytes {
    /// The first bytes, as a number whose highest byte comes first; zeros behind a short key.
    prefix: u64,
    length: u32,
    rest: Box<[u8]>,
}

impl From<&[u8]> for KeyBytes {
    fn from(bytes: &[u8]) -> Self {
        let (first, rest) = bytes.split_at(bytes.len().min(PREFIX));
        let mut prefix = [0; PREFIX];
        prefix[..first.len()].copy_from_slice(first);
        Self { prefix: u64::from_be_bytes(prefix), length: bytes.len() as u32, rest: rest.into() }
    }
}

impl Ord for KeyBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        // With equal prefixes and a rest on one side only, that side is longer; with none on either,
        // the zeros behind the shorter stand against zeros.
        let rest = || self.rest.cmp(&other.rest).then_with(|| self.length.cmp(&other.length));
        self.prefix.cmp(&other.prefix).then_with(rest)
    }
}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_ordered_as_their_bytes(
            one in prop::collection::vec(0_u8..3, 0..12),
            other in prop::collection::vec(0_u8..3, 0..12),
        ) {
            let (a, b) = (KeyBytes::from(one.as_slice()), KeyBytes::from(other.as_slice()));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
            prop_assert_eq!(a == b, one == other);
        }
    }
}
