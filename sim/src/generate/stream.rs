//! The draws of one purpose: a stream of its own of the generator that the seed is the key of.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream is for. The number is part of every seed's meaning: it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Job = 1,
    Data = 2,
    Cluster = 3,
    Options = 4,
    FaultMix = 5,
    Crash = 6,
    Disk = 7,
    Cancel = 8,
    Process = 9,
    Clock = 10,
    HighAvailability = 11,
    Network = 12,
}

#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    pub fn of(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        // Not the key of a run's draws.
        key[31] = 1;
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(purpose as u64);
        Self(rng)
    }

    /// A number in `0..bound`; `bound` is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound.max(1))) >> 64) as u64
    }

    /// A number from `min` to `max`, both included.
    pub fn between(&mut self, min: u32, max: u32) -> u32 {
        min + self.below(u64::from(max - min) + 1) as u32
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    /// One of them, or nothing if there is none.
    pub fn any<'a, T>(&mut self, values: &'a [T]) -> Option<&'a T> {
        values.get(self.below(values.len() as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_within_their_bounds_and_reach_both_ends() {
        let mut stream = Stream::of(1, Purpose::Job);
        let seen: Vec<u32> = (0..100).map(|_| stream.between(3, 5)).collect();
        assert!((3..=5).all(|n| seen.contains(&n)) && seen.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(stream.any::<u8>(&[]), None);
        let first = |seed, purpose| Stream::of(seed, purpose).below(u64::MAX);
        assert_ne!(first(1, Purpose::Job), first(1, Purpose::Data));
        assert_ne!(first(1, Purpose::Job), first(2, Purpose::Job));
    }
}
