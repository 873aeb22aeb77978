//! The addresses that a cokernel may pass to a service.
//!
//! In mode none a cokernel can write to other addresses without the layer, so there the check only finds mistakes. It
//! is the same in every mode.

use kyozon_abi::layer::Range;

/// Maximum ranges of virtual addresses of a cokernel.
pub const MAX_SPACES: usize = 4;

/// The cokernel's memory, virtual.
#[derive(Clone, Copy, Debug, Default)]
pub struct Space {
    readable: [Range; MAX_SPACES],
    writable: [Range; MAX_SPACES],
}

impl Space {
    /// `constant` can be read, `variable` can be written too. Unused entries are empty.
    pub fn new(constant: Range, variable: [Range; MAX_SPACES - 1]) -> Self {
        let mut space = Self::default();
        space.readable[0] = constant;
        space.readable[1..].copy_from_slice(&variable);
        space.writable[1..].copy_from_slice(&variable);
        space
    }

    /// Whether `T` may be read at `address`.
    pub fn can_read<T>(&self, address: u64) -> bool {
        self.can_read_bytes(address, size_of::<T>() as u64) && is_aligned::<T>(address)
    }

    /// Whether `T` may be written at `address`.
    pub fn can_write<T>(&self, address: u64) -> bool {
        crate::linux::contains(&self.writable, address, size_of::<T>() as u64)
            && is_aligned::<T>(address)
    }

    /// Whether `bytes` bytes may be read from `address` on.
    pub fn can_read_bytes(&self, address: u64, bytes: u64) -> bool {
        crate::linux::contains(&self.readable, address, bytes)
    }
}

fn is_aligned<T>(address: u64) -> bool {
    address.is_multiple_of(align_of::<T>() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(base: u64, bytes: u64) -> Range {
        Range { base, bytes }
    }

    #[test]
    fn only_the_cokernels_memory_is_valid() {
        let space = Space::new(
            range(0x2000_0000, 0x2000),
            [range(0x2000_2000, 0x1000), range(0x4000_0000, 0x1_0000), range(0, 0)],
        );
        assert!(space.can_read::<u64>(0x2000_1ff8));
        assert!(!space.can_write::<u64>(0x2000_1ff8), "text is read-only");
        assert!(space.can_write::<u64>(0x2000_2000));
        assert!(space.can_write::<[u8; 0x1_0000]>(0x4000_0000));
        for bad in [0, 8, 0x1000_0000, 0x4000_fffc, 0x4000_0004, u64::MAX, u64::MAX - 7, 1 << 63] {
            assert!(!space.can_write::<u64>(bad), "{bad:#x}");
        }
        assert!(space.can_read_bytes(0x4000_0001, 3));
        assert!(!space.can_read_bytes(0x4000_0001, u64::MAX));
    }
}
