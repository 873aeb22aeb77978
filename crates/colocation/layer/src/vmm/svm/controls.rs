//! Linux's writes of CR0, CR4 and IDTR while memory is watched: the cokernel learns of those that change something.
//!
//! The writing instruction exits, and runs once without that: so it need not be decoded. Whatever it was, it is judged
//! by what it changed.

use super::access::{Access, Target};
use super::cpu::Cpu;
use super::entry::count;
use super::vmcb::*;
use super::watch;
use kyozon_abi::layer::{WRITE_CONTROL, WRITE_TABLE};
use kyozon_abi::vmm::EXIT_WATCH;

/// Writes of a guest exit from now on.
pub fn watch(vmcb: &mut Vmcb) {
    vmcb.intercept_cr |= INTERCEPT_CR4;
    vmcb.intercept_1 |= INTERCEPT_CONTROLS;
}

/// The guest is about to write a register. If there is no room to keep that, it tries again.
pub fn begin(cpu: &mut Cpu) {
    if watch::is_busy() {
        return;
    }
    count(EXIT_WATCH);
    let vmcb = cpu.vmcb();
    let trap = vmcb.rflags & FLAG_TRAP != 0 && !cpu.nmis.is_stepping();
    cpu.access = Some(Access::new(vmcb, trap, Target::Control, 0));
    vmcb.intercept_cr &= !INTERCEPT_CR4;
    vmcb.intercept_1 &= !INTERCEPT_CONTROLS;
    Access::step(vmcb);
}

/// The instruction has run, or could not.
pub fn end(access: &Access, cpu: &Cpu) {
    let vmcb = cpu.vmcb();
    watch(vmcb);
    let [cr0, cr4, table @ ..] = access.controls;
    let [new_cr0, new_cr4, new_table @ ..] = vmcb.controls();
    for (kind, number, before, after) in [
        (WRITE_CONTROL, 0, [cr0, 0], [new_cr0, 0]),
        (WRITE_CONTROL, 4, [cr4, 0], [new_cr4, 0]),
        (WRITE_TABLE, 0, table, new_table),
    ] {
        if before != after {
            watch::register(cpu, kind, number, access.rip, before, after);
        }
    }
}
