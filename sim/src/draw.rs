//! Every random choice of a run, each with a key of its own.
//!
//! A draw is a function of (seed, key, occurrence), where the key names purpose, sender, receiver
//! and kind, and the occurrence counts the draws of that key. So a message or a fault that is
//! taken out of a scenario does not reshuffle what is drawn for the rest. It never looks at time.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::digest::Digest;
use crate::scenario::DurationRange;

/// What a draw is for; the first part of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    BootOffset,
    RemoteLatency,
    LocalDelay,
    DiskLatency,
    TimerOrder,
    IncompleteOperation,
    UnsyncedBytes,
    UnsyncedEntry,
    FailedAppend,
    UnsyncedFate,
    DropRate,
    DuplicateRate,
    DelayRate,
    OvertakeRate,
}

/// Two independent numbers: the value that was asked for, and the order among equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    pub value: u64,
    pub order: u64,
}

impl Draw {
    /// A number in `0..=max`.
    pub fn up_to(self, max: u64) -> u64 {
        ((u128::from(self.value) * (u128::from(max) + 1)) >> 64) as u64
    }

    pub fn within(self, range: DurationRange) -> Duration {
        let spread = range.max.saturating_sub(range.min);
        range.min + Duration::from_nanos(self.up_to(spread.as_nanos() as u64))
    }

    pub fn coin(self) -> bool {
        self.value >> 63 == 1
    }
}

/// The draws of one run. Key from the seed, stream from the digest of the draw's key, word
/// position from the occurrence: four words each.
#[derive(Clone, Debug)]
pub struct Draws {
    key: [u8; 32],
    index: BTreeMap<u64, u32>,
    streams: Vec<ChaCha8Rng>,
}

impl Draws {
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { key, index: BTreeMap::new(), streams: Vec::new() }
    }

    pub fn draw(&mut self, purpose: Purpose, key: impl Hash) -> Draw {
        let stream = Digest::of(0, &(purpose, key));
        let index = *self.index.entry(stream).or_insert_with(|| {
            let mut rng = ChaCha8Rng::from_seed(self.key);
            rng.set_stream(stream);
            self.streams.push(rng);
            self.streams.len() as u32 - 1
        });
        let rng = &mut self.streams[index as usize];
        Draw { value: rng.next_u64(), order: rng.next_u64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_draw_of_a_key_does_not_depend_on_other_keys() {
        let (mut alone, mut mixed) = (Draws::new(7), Draws::new(7));
        for n in 0..40u64 {
            mixed.draw(Purpose::BootOffset, n);
            let draw = mixed.draw(Purpose::RemoteLatency, "a");
            assert_eq!(draw, alone.draw(Purpose::RemoteLatency, "a"));
            let mut direct = ChaCha8Rng::from_seed(alone.key);
            direct.set_stream(Digest::of(0, &(Purpose::RemoteLatency, "a")));
            direct.set_word_pos(u128::from(n) * 4);
            assert_eq!(draw.value, direct.next_u64());
        }
        assert_ne!(Draws::new(7).draw(Purpose::BootOffset, 1), Draws::new(8).draw(Purpose::BootOffset, 1));
    }

    #[test]
    fn a_draw_stays_within_its_range_and_reaches_both_ends() {
        let mut draws = Draws::new(1);
        let seen: Vec<u64> = (0..200).map(|_| draws.draw(Purpose::DiskLatency, 0).up_to(3)).collect();
        for n in 0..=3 {
            assert!(seen.contains(&n));
        }
        assert!(seen.iter().all(|&n| n <= 3));
        assert_eq!(Draw { value: u64::MAX, order: 0 }.up_to(u64::MAX), u64::MAX);
    }
}
