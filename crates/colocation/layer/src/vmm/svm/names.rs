//! Names the task that Linux runs. The name is read from Linux's memory, so it is only as trustworthy as Linux.

use super::cpu::Cpu;
use super::entry::{at, entry, lies_in, list};
use crate::arch::x86_64::svm;
use core::fmt;

const GS_BASE: u32 = 0xc000_0101;
const KERNEL_GS_BASE: u32 = 0xc000_0102;
const CR4_LA57: u64 = 1 << 12;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Bytes of a task's name.
const NAME: usize = 16;

/// A task's name and pid.
pub struct Task {
    name: [u8; NAME],
    pid: u32,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.name.iter().take_while(|b| **b != 0);
        for byte in bytes.map(|b| if b.is_ascii_graphic() { *b } else { b'?' }) {
            fmt::Write::write_char(f, char::from(byte))?;
        }
        write!(f, " ({})", self.pid)
    }
}

/// The task that Linux runs on `cpu`.
pub fn current(cpu: &mut Cpu) -> Option<Task> {
    // SAFETY: both exist; the host does not change them.
    let (gs, other) = unsafe { (svm::rdmsr(GS_BASE), svm::rdmsr(KERNEL_GS_BASE)) };
    let names = entry().names;
    // Linux's own base is in the upper half; if it is not loaded, it is in the other register.
    let base = [gs, other].into_iter().find(|base| base >> 63 == 1)?;
    let task = read(cpu, base.wrapping_add(names.current_task))?;
    let pid = read(cpu, task.wrapping_add(names.pid))? as u32;
    let mut name = [0; NAME];
    for (i, part) in name.chunks_mut(8).enumerate() {
        let word = read(cpu, task.wrapping_add(names.comm + 8 * i as u64))?;
        part.copy_from_slice(&word.to_le_bytes());
    }
    Some(Task { name, pid })
}

/// A word of Linux's System RAM.
fn word(address: u64) -> Option<u64> {
    let e = entry();
    // SAFETY: RAM that the window maps; an aligned word does not leave its page.
    lies_in(list(&e.ram, e.ram_count), address)
        .then(|| unsafe { at::<u64>(address & !7).read_volatile() })
}

/// At least four bytes from the guest's virtual address `address` on, within one page.
fn read(cpu: &mut Cpu, address: u64) -> Option<u64> {
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

/// Shows a task, or "unknown".
pub struct Or(pub Option<Task>);

impl fmt::Display for Or {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(task) => task.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}
