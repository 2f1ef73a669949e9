//! The records that are measured, and how both sides encode them.

use revenant::api::Record;

/// Records per subtask follow from a number, so that both sides work on the same.
pub trait Measured: Record + Send + Sync + Clone + PartialEq + std::fmt::Debug {
    const NAME: &'static str;

    fn new(number: u64) -> Self;

    fn key(&self) -> i64;

    /// Two records as one: what is folded.
    fn merged(self, next: Self) -> Self;

    /// Depends on all of the record.
    fn digest(&self) -> u64;
}

/// A number whose bits depend on all bits of `n`.
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    let n = (n ^ (n >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d);
    n ^ (n >> 33)
}

impl Measured for (i64, i64) {
    const NAME: &'static str = "(i64, i64)";

    fn new(number: u64) -> Self {
        ((mix(number) >> 24).cast_signed(), number.cast_signed())
    }

    fn key(&self) -> i64 {
        self.0
    }

    fn merged(self, next: Self) -> Self {
        (self.0.max(next.0), self.1.wrapping_add(next.1))
    }

    fn digest(&self) -> u64 {
        self.0.wrapping_mul(3).wrapping_add(self.1).cast_unsigned()
    }
}

impl Measured for (i64, String) {
    const NAME: &'static str = "(i64, String)";

    fn new(number: u64) -> Self {
        ((mix(number) >> 24).cast_signed(), format!("record {number}"))
    }

    fn key(&self) -> i64 {
        self.0
    }

    fn merged(self, next: Self) -> Self {
        (self.0.wrapping_add(next.0), if next.1 > self.1 { next.1 } else { self.1 })
    }

    fn digest(&self) -> u64 {
        let last = self.1.as_bytes().last().copied().unwrap_or_default();
        self.0.cast_unsigned().wrapping_add(u64::from(last)).wrapping_add(self.1.len() as u64)
    }
}

/// Over a stream of records, in their order.
#[derive(Clone, Copy, Default)]
pub struct Digest(u64);

impl Digest {
    pub fn add(&mut self, record: &impl Measured) {
        self.0 = self.0.wrapping_mul(31).wrapping_add(record.digest());
    }

    /// Small enough that a few of them can be added up.
    pub fn value(self) -> i64 {
        i64::from((self.0 ^ (self.0 >> 32)) as u32)
    }
}

/// Appends the record's encoding.
pub fn encode(record: &impl Measured, bytes: &mut Vec<u8>) {
    let whole = std::mem::take(bytes);
    *bytes = postcard::to_extend(record, whole).expect("a record of a benchmark can be encoded");
}

/// Takes the first record off.
pub fn decode<T: Measured>(bytes: &[u8]) -> (T, &[u8]) {
    postcard::take_from_bytes(bytes).expect("what was encoded can be decoded")
}
