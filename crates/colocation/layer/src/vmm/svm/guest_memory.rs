//! Reads memory at the guest's virtual addresses. What it holds is only as trustworthy as Linux.

use super::cpu::Cpu;
use super::entry::{at, entry, lies_in, list};
use crate::vmm::registers::efer::LONG_MODE_ACTIVE;

const CR4_LA57: u64 = 1 << 12;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// A gate of a 64-bit IDT (AMD APM 2, 8.9.1).
const GATE_BYTES: u64 = 16;
const GATE_PRESENT: u64 = 1 << 47;

/// A word of Linux's System RAM.
fn word(address: u64) -> Option<u64> {
    let e = entry();
    // SAFETY: RAM that the window maps; an aligned word does not leave its page.
    lies_in(list(&e.ram, e.ram_count), address)
        .then(|| unsafe { at::<u64>(address & !7).read_volatile() })
}

/// At least four bytes from the guest's virtual address `address` on, within one page.
pub fn read(cpu: &Cpu, address: u64) -> Option<u64> {
    let vmcb = cpu.vmcb();
    let mut level = if vmcb.cr4 & CR4_LA57 != 0 { 5 } else { 4 };
    let mut table = vmcb.cr3 & ADDRESS;
    loop {
        let shift = 3 + 9 * level;
        let entry = word(table + (address >> shift & 511) * 8)?;
        if entry & PRESENT == 0 {
            return None;
        }
        if level == 1 || level <= 3 && entry & LARGE != 0 {
            let offset = address & ((1 << shift) - 1);
            let physical = (entry & ADDRESS & !((1 << shift) - 1)) + offset;
            return Some(word(physical)? >> (8 * (physical & 7)));
        }
        table = entry & ADDRESS;
        level -= 1;
    }
}

/// Whether the guest has a handler for interrupts of vector `vector`. A kernel that another one has started has none
/// for some time, and would end with a triple fault.
pub fn has_gate(cpu: &Cpu, vector: u64) -> bool {
    let vmcb = cpu.vmcb();
    let gate = vector * GATE_BYTES;
    vmcb.efer & LONG_MODE_ACTIVE != 0
        && gate + GATE_BYTES <= u64::from(vmcb.idtr.limit) + 1
        && read(cpu, vmcb.idtr.base.wrapping_add(gate)).is_some_and(|low| low & GATE_PRESENT != 0)
}
