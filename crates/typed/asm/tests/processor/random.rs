//! Numbers that are the same in each run of the test.

/// A generator of pseudo-random numbers: xorshift64*.
pub struct Random(u64);

impl Random {
    /// One of many sequences.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.any() >> 16) % limit
    }

    /// One of these.
    pub fn pick(&mut self, from: &[u8]) -> u8 {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number that is likely to show something: small, large, or with few bits.
    pub fn operand(&mut self) -> u64 {
        match self.below(8) {
            0 => self.below(4),
            1 => self.below(256),
            2 => !self.below(4),
            3 => 1 << self.below(64),
            4 => (1u64 << self.below(64)).wrapping_sub(1),
            5 => self.any() >> 32,
            6 => self.any() & !0xffff_ffff | self.below(3),
            _ => self.any(),
        }
    }
}
