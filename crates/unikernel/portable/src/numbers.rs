//! Pseudorandom numbers that are the same on every machine, and a checksum.

/// xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift generators, scrambled, 2016).
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Starts a sequence. The seed must not be 0.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Iterator for Xorshift {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        Some((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32)
    }
}

/// A checksum of a sequence, which depends on the order: FNV-1a by words.
pub fn fingerprint(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash, n| (hash ^ n).wrapping_mul(0x100_0000_01b3))
}
