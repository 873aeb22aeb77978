//! What Linux wrote to a device that the tick depends on, and whether it may pass.
//!
//! Linux reads such a page as it is and cannot write it. The instruction that tries runs once on a decoy page (see
//! [`super::step`]) whose bytes are marked, and what differs afterwards is what it wrote: no decoder is needed.
//!
//! Limits, all of them those of instructions that Linux's accessors of devices (`writel`, `writeq`) are not:
//!
//! - One that reads what it changes (`or`, `xchg`) gets the mark and writes nonsense. The filter lets that pass where
//!   it would let any value pass.
//! - One that writes more than 8 bytes, or below the address that faulted, is no write that is understood.
//! - A byte that equals its mark looks untouched. Between others, or at the end of a size, it is found: sizes are
//!   1, 2, 4 and 8. Where the upper half of a write or all of it equals its marks, the size is taken for a smaller one,
//!   or the write for none. Marks keep away from what is likely to be written: 0, 0xff, and what is near the byte
//!   that is there. Another salt marks differently.

pub mod hpet;
pub mod ioapic;

/// Bytes that are marked and compared: from the address that faulted, aligned down to 8. Of an address in the last 8
/// bytes of a page only half of them are in the page: give the other half as marked.
pub const WINDOW: usize = 16;

/// A mark is at least so far from the byte that is there, around the circle of 256.
const APART: u8 = 64;

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write this, which is what Linux wrote.
    Pass(u64),
    /// Write this in its place, as many bytes.
    Changed(u64),
    /// Write nothing, and say so.
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

/// What the decoy says where the device says `actual`. No byte is equal. Who does not know `salt` cannot foresee it.
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

/// What was written from `offset_in_16` on, the byte that faulted, into a decoy that said `marked`. None where
/// nothing was, or no single write of 1, 2, 4 or 8 bytes can have done it.
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
