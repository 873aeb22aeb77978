//! Compares Linux's state before and after a trip. For tests: `HostEntry::check`.

use super::cpu::Cpu;
use super::vmcb::Vmcb;
use crate::arch::x86_64::svm::{self, Live, Registers};
use core::mem::offset_of;

/// Words of the control block from the guest's state on, up to the last field that a processor saves.
const FIRST: usize = offset_of!(Vmcb, es) / 8;
const WORDS: usize = offset_of!(Vmcb, debug_control) / 8 + 1 - FIRST;

/// Linux's state: its control block, its general registers, and registers that no control block has.
pub struct State {
    block: [u64; WORDS],
    registers: Registers,
    live: Live,
}

impl State {
    /// Takes the present state. Must be called on `cpu`, while its guest does not run.
    pub fn take(cpu: &Cpu) -> Self {
        let block: *const u64 = core::ptr::from_ref(cpu.vmcb()).cast();
        // SAFETY: Linux's block; the fields that the processor holds in registers are stored first. Words of a page.
        let block = unsafe {
            svm::save(cpu.block());
            core::array::from_fn(|i| block.add(FIRST + i).read_volatile())
        };
        Self { block, registers: cpu.registers, live: Live::take() }
    }

    /// Number of words that differ.
    pub fn differences(&self, other: &Self) -> u64 {
        let words = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(a, b)| a != b).count() as u64;
        words(&self.block, &other.block)
            + u64::from(self.registers != other.registers)
            + words(&self.live.registers, &other.live.registers)
            + words(&self.live.fpu, &other.live.fpu)
    }
}
