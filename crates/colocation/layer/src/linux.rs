//! The layer's access to the Linux beside it.

use kyozon_abi::layer::Range;

/// The Linux beside the cokernel.
pub trait Linux {
    /// System RAM, ascending, without the cokernel's memory.
    fn ram(&self) -> &[Range];
    /// The word at physical address `address`, a multiple of 8 in System RAM.
    fn read(&mut self, address: u64) -> u64;
    /// Writes the word at physical address `address`, a multiple of 8 in System RAM.
    fn write(&mut self, address: u64, value: u64);
    /// Parks every other CPU. False if one does not arrive in time, and then none is parked.
    fn park(&mut self) -> bool;
    /// Lets the other CPUs continue.
    fn release(&mut self);
}

/// Whether `bytes` bytes from `address` on lie in one of `ranges`, which do not overlap.
pub fn contains(ranges: &[Range], address: u64, bytes: u64) -> bool {
    ranges.iter().any(|r| {
        address >= r.base
            && address.checked_add(bytes).is_some_and(|end| end <= r.base.saturating_add(r.bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAM: [Range; 2] =
        [Range { base: 0x1000, bytes: 0x1000 }, Range { base: 0x4000, bytes: 0x2000 }];

    #[test]
    fn contains_checks_both_edges() {
        assert!(contains(&RAM, 0x1000, 0x1000));
        assert!(contains(&RAM, 0x5ff8, 8));
        assert!(!contains(&RAM, 0x5ff9, 8));
        assert!(!contains(&RAM, 0x0ff8, 8));
        assert!(!contains(&RAM, 0x1ff8, 16), "a hole is not RAM");
        assert!(!contains(&RAM, u64::MAX - 3, 8), "the sum wraps");
        assert!(!contains(&[], 0, 0));
    }
}
