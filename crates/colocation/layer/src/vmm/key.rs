//! The key of the calls that open the wall, or start or stop the ticks.

use core::hint::black_box;

/// 128 random bits.
#[derive(Clone, Copy)]
pub struct Key(pub [u64; 2]);

impl Key {
    /// Whether `given` is the key. The time does not depend on where the two differ.
    pub fn is(self, given: [u64; 2]) -> bool {
        let Self([first, second]) = self;
        black_box(first ^ given[0]) | black_box(second ^ given[1]) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_bits_are_the_key() {
        let right = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
        assert!(Key(right).is(right));
        for bit in 0..128 {
            let mut wrong = right;
            wrong[bit / 64] ^= 1 << (bit % 64);
            assert!(!Key(right).is(wrong));
        }
        assert!(!Key(right).is([right[1], right[0]]));
        assert!(!Key(right).is([0, 0]));
    }
}
