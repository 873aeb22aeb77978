//! What the processor of a guest looks up: segments, gates, task state, and the code behind gates and door.
//!
//! Selectors (Intel SDM volume 3, 3.4.2): 0x1b is 64-bit code and 0x23 data, both for CPL 3; 0x28 is the task state.
//! There are no segments for CPL 0.

use crate::error::Result;
use crate::layout::{system, PAGE};
use crate::memory::{system_address, Memory};
use kyozon_abi::unikernel::*;

/// Code for CPL 3.
pub const CODE: u16 = 0x1b;
/// Data for CPL 3.
pub const DATA: u16 = 0x23;
/// Task state.
pub const TASK: u16 = 0x28;
/// Last byte of the segment descriptors.
pub const GDT_LIMIT: u16 = 0x37;
/// Last byte of the gates.
pub const IDT_LIMIT: u16 = 0xfff;
/// Where the bitmap of ports begins in the task state.
const BITMAP: u16 = 0x68;
/// Last byte of the task state: a bitmap for all ports below [`PORT_END`], and a byte of ones (Intel SDM volume 1,
/// 19.5.2).
pub const TSS_LIMIT: u32 = BITMAP as u32 + PORT_END as u32 / 8;
/// Bytes between the stubs of two vectors.
const STUB: u64 = 16;
/// Where in the door's pages the door is, behind the stubs.
pub const DOOR: u64 = system::DOOR + PAGE;
/// Where in the door's pages the doorbell is.
pub const DOORBELL: u64 = DOOR + 32;

/// The stub of a vector: `out %al, $vector`, and again where the tender lets it run on.
fn stub(vector: u8) -> [u8; 4] {
    [0xe6, vector, 0xeb, 0xfc]
}

/// `mov $port, %edx; out %eax, %dx; ret`.
fn door() -> [u8; 7] {
    let [low, high] = PORT_CALL.to_le_bytes();
    [0xba, low, high, 0, 0, 0xef, 0xc3]
}

/// `mov %edi, %eax; mov $port, %edx; out %eax, %dx; ret`.
fn doorbell() -> [u8; 9] {
    let [low, high] = PORT_DOORBELL.to_le_bytes();
    [0x89, 0xf8, 0xba, low, high, 0, 0, 0xef, 0xc3]
}

/// A gate to CPL 3 code on stack 1 (Intel SDM volume 3, 7.14.1). Only a breakpoint may be asked for by an instruction.
fn gate(vector: u64) -> [u64; 2] {
    let to = system_address(system::DOOR) + vector * STUB;
    let privilege = if vector == u64::from(VECTOR_BREAKPOINT) { 0xee } else { 0x8e };
    let low =
        to & 0xffff | u64::from(CODE) << 16 | 1 << 32 | privilege << 40 | (to >> 16 & 0xffff) << 48;
    [low, to >> 32]
}

fn segments() -> [u64; 7] {
    let tss = system_address(system::TSS);
    let task = u64::from(TSS_LIMIT) & 0xffff
        | (tss & 0xff_ffff) << 16
        | 0x8b << 40
        | (tss >> 24 & 0xff) << 56;
    [0, 0, 0, 0x00af_fb00_0000_ffff, 0x00cf_f300_0000_ffff, task, tss >> 32]
}

/// Ports of vectors, of the door and of the doorbell are allowed: their bits are 0.
fn ports() -> Vec<u8> {
    let mut bitmap = vec![0xff; usize::from(PORT_END / 8) + 1];
    bitmap[..32].fill(0);
    for port in PORT_CALL..PORT_END {
        bitmap[usize::from(port / 8)] &= !(1 << (port % 8));
    }
    bitmap
}

/// Top of the stack on which exceptions are reported.
pub fn fault_stack_top() -> u64 {
    system_address(system::FAULT_STACK) + PAGE
}

/// Writes all of it.
pub fn fill(memory: &Memory) -> Result<()> {
    let bytes = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    memory.put_system(system::GDT, &bytes(&segments()))?;
    let gates: Vec<u64> = (0..256).flat_map(gate).collect();
    memory.put_system(system::IDT, &bytes(&gates))?;
    let mut stubs = vec![0xcc; PAGE as usize];
    for vector in 0..=255 {
        let at = usize::from(vector) * STUB as usize;
        stubs[at..at + 4].copy_from_slice(&stub(vector));
    }
    memory.put_system(system::DOOR, &stubs)?;
    memory.put_system(DOOR, &door())?;
    memory.put_system(DOORBELL, &doorbell())?;
    // Intel SDM volume 3, figure 9-11: stack 1 is at 0x24, the bitmap's offset at 0x66.
    let mut task = vec![0; usize::from(BITMAP)];
    task[0x24..0x2c].copy_from_slice(&fault_stack_top().to_le_bytes());
    task[0x66..0x68].copy_from_slice(&BITMAP.to_le_bytes());
    task.extend(ports());
    memory.put_system(system::TSS, &task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_lead_to_stubs_at_cpl_3() {
        for vector in 0..256 {
            let [low, high] = gate(vector);
            let to = low & 0xffff | low >> 48 << 16 | high << 32;
            assert_eq!(to, GUEST_SYSTEM_BASE + system::DOOR + vector * STUB);
            assert_eq!((low >> 16 & 3, low >> 32 & 7, low >> 47 & 1), (3, 1, 1));
            assert_eq!(low >> 45 & 3, if vector == 3 { 3 } else { 0 });
        }
    }

    #[test]
    fn only_our_ports_are_open() {
        let bitmap = ports();
        assert_eq!(bitmap.len() as u32 - 1, TSS_LIMIT - u32::from(BITMAP));
        let open = |port: u16| bitmap[usize::from(port / 8)] >> (port % 8) & 1 == 0;
        let want = |port: u16| port < 256 || (PORT_CALL..PORT_END).contains(&port);
        assert!((0..bitmap.len() as u16 * 8).all(|port| open(port) == want(port)));
    }

    #[test]
    fn segments_are_for_cpl_3_only() {
        let segments = segments();
        for (i, descriptor) in segments.iter().enumerate().take(5).skip(1) {
            assert!(*descriptor == 0 || descriptor >> 45 & 3 == 3, "{i}");
        }
        assert_eq!(usize::from(CODE) / 8, 3);
        assert_eq!(segments.len() * 8 - 1, usize::from(GDT_LIMIT));
    }
}
