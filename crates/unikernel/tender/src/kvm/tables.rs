//! Descriptor tables and task state of a guest's processor, and the code that gates and the door lead to.
//!
//! Selectors (Intel SDM volume 3, 3.4.2): 0x1b is 64-bit code and 0x23 data, both at CPL 3; 0x28 is the task state.
//! No segment is at CPL 0.

use crate::error::Result;
use crate::layout::{system, PAGE};
use crate::memory::{system_address, Memory};
use kyozon_abi::unikernel::*;

/// Selector of the code segment.
pub const CODE: u16 = 0x1b;
/// Selector of the data segment.
pub const DATA: u16 = 0x23;
/// Selector of the task state.
pub const TASK: u16 = 0x28;
/// Limit of the segment descriptors: offset of their last byte.
pub const GDT_LIMIT: u16 = 0x37;
/// Limit of the gates: offset of their last byte.
pub const IDT_LIMIT: u16 = 0xfff;
/// Offset of the port bitmap in the task state.
const BITMAP: u16 = 0x68;
/// Limit of the task state: it ends with a bitmap of all ports below [`PORT_END`] and a byte of ones (Intel SDM
/// volume 1, 19.5.2).
pub const TSS_LIMIT: u32 = BITMAP as u32 + PORT_END as u32 / 8;
/// Distance in bytes between the stubs of two vectors.
const STUB_BYTES: u64 = 16;
/// Offset of the door in the tender's pages: behind the stubs.
pub const DOOR: u64 = system::DOOR + PAGE;
/// Offset of the doorbell in the tender's pages.
pub const DOORBELL: u64 = DOOR + 32;

/// The stub of a vector: `out %al, $vector` in an endless loop, in case the tender lets the guest continue.
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

/// A gate to CPL 3 code on interrupt stack 1 (Intel SDM volume 3, 7.14.1). Only the breakpoint's gate admits a software
/// interrupt.
fn gate(vector: u64) -> [u64; 2] {
    let target = system_address(system::DOOR) + vector * STUB_BYTES;
    let privilege = if vector == u64::from(VECTOR_BREAKPOINT) { 0xee } else { 0x8e };
    let low = target & 0xffff
        | u64::from(CODE) << 16
        | 1 << 32
        | privilege << 40
        | (target >> 16 & 0xffff) << 48;
    [low, target >> 32]
}

fn segments() -> [u64; 7] {
    let tss = system_address(system::TSS);
    let task = u64::from(TSS_LIMIT) & 0xffff
        | (tss & 0xff_ffff) << 16
        | 0x8b << 40
        | (tss >> 24 & 0xff) << 56;
    [0, 0, 0, 0x00af_fb00_0000_ffff, 0x00cf_f300_0000_ffff, task, tss >> 32]
}

/// The port bitmap: a 0 bit allows a port. Allowed are the ports of vectors, of the door and of the doorbell.
fn port_bitmap() -> Vec<u8> {
    let mut bitmap = vec![0xff; usize::from(PORT_END / 8) + 1];
    bitmap[..32].fill(0);
    for port in PORT_CALL..PORT_END {
        bitmap[usize::from(port / 8)] &= !(1 << (port % 8));
    }
    bitmap
}

/// End address of the exception stack.
pub fn fault_stack_top() -> u64 {
    system_address(system::FAULT_STACK) + PAGE
}

/// Writes descriptors, task state, stubs, door and doorbell into the tender's pages.
///
/// # Errors
///
/// The memory has no such pages; an error of the tender itself.
pub fn fill(memory: &Memory) -> Result<()> {
    let bytes = |words: &[u64]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    memory.put_system(system::GDT, &bytes(&segments()))?;
    let gates: Vec<u64> = (0..256).flat_map(gate).collect();
    memory.put_system(system::IDT, &bytes(&gates))?;
    let mut stubs = vec![0xcc; PAGE as usize];
    for vector in 0..=255 {
        let at = usize::from(vector) * STUB_BYTES as usize;
        stubs[at..at + 4].copy_from_slice(&stub(vector));
    }
    memory.put_system(system::DOOR, &stubs)?;
    memory.put_system(DOOR, &door())?;
    memory.put_system(DOORBELL, &doorbell())?;
    // Intel SDM volume 3, figure 9-11: interrupt stack 1 is at 0x24, the bitmap's offset at 0x66.
    let mut task = vec![0; usize::from(BITMAP)];
    task[0x24..0x2c].copy_from_slice(&fault_stack_top().to_le_bytes());
    task[0x66..0x68].copy_from_slice(&BITMAP.to_le_bytes());
    task.extend(port_bitmap());
    memory.put_system(system::TSS, &task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_lead_to_stubs_at_cpl_3() {
        for vector in 0..256 {
            let [low, high] = gate(vector);
            let target = low & 0xffff | low >> 48 << 16 | high << 32;
            assert_eq!(target, GUEST_SYSTEM_BASE + system::DOOR + vector * STUB_BYTES);
            assert_eq!((low >> 16 & 3, low >> 32 & 7, low >> 47 & 1), (3, 1, 1));
            assert_eq!(low >> 45 & 3, if vector == 3 { 3 } else { 0 });
        }
    }

    #[test]
    fn only_the_interface_ports_are_allowed() {
        let bitmap = port_bitmap();
        assert_eq!(bitmap.len() as u32 - 1, TSS_LIMIT - u32::from(BITMAP));
        let open = |port: u16| bitmap[usize::from(port / 8)] >> (port % 8) & 1 == 0;
        let expected = |port: u16| port < 256 || (PORT_CALL..PORT_END).contains(&port);
        assert!((0..bitmap.len() as u16 * 8).all(|port| open(port) == expected(port)));
    }

    #[test]
    fn all_segments_are_at_cpl_3() {
        let segments = segments();
        for (i, descriptor) in segments.iter().enumerate().take(5).skip(1) {
            assert!(*descriptor == 0 || descriptor >> 45 & 3 == 3, "{i}");
        }
        assert_eq!(usize::from(CODE) / 8, 3);
        assert_eq!(segments.len() * 8 - 1, usize::from(GDT_LIMIT));
    }
}
