//! Finds what Linux wrote to a device that the tick depends on, and decides whether it may pass.
//!
//! Linux reads such a page as it is and cannot write it. The instruction that tries runs once on a decoy page (see
//! [`super::step`]) whose bytes are marked, and what differs afterwards is what it wrote: no decoder is needed.
//!
//! Limits, none of which concern Linux's accessors of devices (`writel`, `writeq`):
//!
//! - An instruction that reads what it changes (`or`, `xchg`) reads the mark and writes nonsense. The filter passes
//!   that if it would pass any value.
//! - A write of more than 8 bytes, or below the address that faulted, is not recognized.
//! - A byte that equals its mark looks untouched. Between other bytes, or at the end of a size, it is found: sizes are
//!   1, 2, 4 and 8. If the upper half of a write equals its marks, the size is taken for a smaller one; if all of it
//!   does, the write is not seen. Marks avoid likely values: 0, 0xff, and values near the device's byte. Another salt
//!   gives other marks.

pub mod hpet;
pub mod ioapic;

/// Bytes that are marked and compared: from the address that faulted, aligned down to 8. For an address in the last 8
/// bytes of a page, only half of them are in the page: pass the other half as marked.
pub const WINDOW: usize = 16;

/// Minimum distance of a mark from the device's byte, modulo 256.
const APART: u8 = 64;

/// What to do with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write this, which is what Linux wrote.
    Pass(u64),
    /// Write this instead, in the same size.
    Changed(u64),
    /// Write nothing, and report it.
    Refuse,
}

/// What an instruction wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Of the first byte, in the window.
    pub offset: usize,
    /// 1, 2, 4 or 8.
    pub bytes: usize,
    /// The bytes, little-endian; those above are 0.
    pub value: u64,
}

/// The decoy's bytes for a device that reads `actual`. No byte is equal. Without `salt` the marks cannot be predicted.
pub fn mark(actual: &[u8; WINDOW], salt: u64) -> [u8; WINDOW] {
    let random = [salt, salt ^ 0x6a09_e667_f3bc_c908].map(|s| mix(s).to_le_bytes());
    let mut random = random.into_iter().flatten();
    actual.map(|byte| {
        let start = random.next().expect("two times 8") % 128;
        let far = |i: u8| byte.wrapping_add(APART + (start + i) % 128);
        (0..3).map(far).find(|m| !matches!(m, 0 | 0xff)).expect("one of three is neither")
    })
}

/// The finalizer of splitmix64: each bit of the result depends on each of `x`.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The write at `offset_in_16`, the byte that faulted, into a decoy that contained `marked` and contains `after`.
/// `None` if nothing was written, or not by a single write of 1, 2, 4 or 8 bytes.
pub fn written(marked: &[u8; WINDOW], after: &[u8; WINDOW], offset_in_16: usize) -> Option<Write> {
    let changed = |i: &usize| marked[*i] != after[*i];
    let first = (0..WINDOW).find(changed)?;
    let last = (0..WINDOW).rfind(changed)?;
    if first < offset_in_16 || last - offset_in_16 >= 8 {
        return None;
    }
    let bytes = (last - offset_in_16 + 1).next_power_of_two();
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(after.get(offset_in_16..offset_in_16 + bytes)?);
    Some(Write { offset: offset_in_16, bytes, value: u64::from_le_bytes(value) })
}

#[cfg(test)]
mod tests;
