//! The instructions that Linux writes at sites. Opcodes: Intel SDM volume 2. The no-operations are those that its entry
//! for NOP recommends for their length.

use super::sites::SITE_BYTES;

pub(super) const INT3: u8 = 0xcc;
pub(super) const RET: u8 = 0xc3;
pub(super) const CALL: u8 = 0xe8;
pub(super) const JMP: u8 = 0xe9;
pub(super) const JMP_SHORT: u8 = 0xeb;
/// Bytes of a call or jump with a 4-byte distance.
pub(super) const NEAR_BYTES: usize = 5;

/// The code at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    bytes: [u8; SITE_BYTES],
    length: u8,
}

impl Code {
    pub fn new(bytes: &[u8]) -> Self {
        let mut code = Self { bytes: [0; SITE_BYTES], length: bytes.len().min(SITE_BYTES) as u8 };
        for (to, from) in code.bytes.iter_mut().zip(bytes) {
            *to = *from;
        }
        code
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or(&[])
    }

    /// `opcode` (CALL, JMP) at `at` with a 4-byte distance to `to`.
    pub fn near(opcode: u8, at: u64, to: u64) -> Self {
        let distance = (to.wrapping_sub(at).wrapping_sub(5) as u32).to_le_bytes();
        let [a, b, c, d] = distance;
        Self::new(&[opcode, a, b, c, d])
    }

    pub fn short_jump(at: u64, to: u64) -> Self {
        Self::new(&[JMP_SHORT, to.wrapping_sub(at).wrapping_sub(2) as u8])
    }

    pub fn nop2() -> Self {
        Self::new(&[0x66, 0x90])
    }

    pub fn nop5() -> Self {
        Self::new(&[0x0f, 0x1f, 0x44, 0, 0])
    }

    /// `xor %eax, %eax` with prefixes.
    pub fn zero() -> Self {
        Self::new(&[0x2e, 0x2e, 0x2e, 0x31, 0xc0])
    }

    pub fn ret() -> Self {
        Self::new(&[RET, INT3, INT3, INT3, INT3])
    }
}

/// The target of the call or jump at `at`.
pub(super) fn target(at: u64, bytes: &[u8]) -> Option<u64> {
    match *bytes {
        [CALL | JMP, a, b, c, d, ..] => Some(near_target(at.wrapping_add(5), [a, b, c, d])),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] => Some(near_target(at.wrapping_add(6), [a, b, c, d])),
        [JMP_SHORT, distance, ..] => {
            Some(at.wrapping_add(2).wrapping_add(i64::from(distance as i8) as u64))
        }
        // mov $target, %rax; then a jump or call through it.
        [0x48, 0xb8, a, b, c, d, e, f, g, h, 0xff, 0xe0 | 0xd0, ..] => {
            Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        _ => None,
    }
}

/// Where a near call or jump leads: its distance counts from the instruction behind it, at `next`.
pub(crate) fn near_target(next: u64, distance: [u8; 4]) -> u64 {
    next.wrapping_add(i64::from(i32::from_le_bytes(distance)) as u64)
}
