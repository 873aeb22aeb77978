//! Names the task that Linux runs. The name is read from Linux's memory, so it is only as trustworthy as Linux.

use super::cpu::Cpu;
use super::entry::entry;
use super::guest_memory::read;
use crate::arch::x86_64::svm;
use core::fmt;

const GS_BASE: u32 = 0xc000_0101;
const KERNEL_GS_BASE: u32 = 0xc000_0102;
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
