//! Linux's writes of CR0, CR4, IDTR, GDTR and TR while memory is watched: the cokernel learns of those that change
//! something.
//!
//! The writing instruction exits, and runs once without that: so it need not be decoded. Whatever it was, it is judged
//! by what it changed.

use super::access::{Access, Target};
use super::cpu::Cpu;
use super::entry::count;
use super::vmcb::*;
use super::watch;
use crate::arch::x86_64::svm;
use kyozon_abi::layer::{WRITE_CONTROL, WRITE_TABLE};
use kyozon_abi::vmm::EXIT_WATCH;

/// Writes of a guest exit from now on.
pub fn watch(vmcb: &mut Vmcb) {
    vmcb.intercept_cr |= INTERCEPT_CR4;
    vmcb.intercept_1 |= INTERCEPT_CONTROLS;
}

/// An exit leaves TR in the processor.
fn save_task_register(cpu: &Cpu) {
    // SAFETY: this CPU's own control block, and the registers are still its guest's.
    unsafe { svm::save(cpu.block()) };
}

/// The guest is about to write a register. If there is no room to keep that, it tries again.
pub fn begin(cpu: &mut Cpu) {
    if watch::is_busy() {
        return;
    }
    count(EXIT_WATCH);
    save_task_register(cpu);
    let vmcb = cpu.vmcb();
    let trap = vmcb.rflags & FLAG_TRAP != 0 && !cpu.nmis.is_stepping();
    cpu.access = Some(Access::new(vmcb, trap, Target::Control, 0));
    vmcb.intercept_cr &= !INTERCEPT_CR4;
    vmcb.intercept_1 &= !INTERCEPT_CONTROLS;
    Access::step(vmcb);
}

/// The instruction has run, or could not.
pub fn end(access: &Access, cpu: &Cpu) {
    save_task_register(cpu);
    let vmcb = cpu.vmcb();
    watch(vmcb);
    let (old, new) = (access.controls, vmcb.controls());
    let see = |kind, number, before, after| {
        if before != after {
            watch::register(cpu, kind, number, access.rip, before, after);
        }
    };
    for ((number, before), after) in [0, 4].into_iter().zip(old.registers).zip(new.registers) {
        see(WRITE_CONTROL, number, [before, 0], [after, 0]);
    }
    for ((number, before), after) in (0..).zip(old.tables).zip(new.tables) {
        see(WRITE_TABLE, number, before, after);
    }
}
