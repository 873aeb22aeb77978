//! A plug-in for QEMU's TCG that counts what one tick of a cokernel costs: instructions, and those events among them
//! that cost more than an instruction does.
//!
//! ```text
//! qemu-system-x86_64 ... -plugin libkyozon_counter.so,out=FILE,ours=LOW-HIGH,ours=LOW-HIGH,cokernel=LOW-HIGH
//! ```
//!
//! A *trip* begins where the CPU takes an interrupt or exception (control goes elsewhere than the last instruction
//! says) that leads to code in `cokernel`. Where Linux is a guest, it begins where that is left (control comes to the
//! instruction behind a VMRUN) and ends at the VMRUN that goes back to it; stages `entry` and `exit` are empty then.
//! Its stages:
//!
//! | stage | from | to |
//! |---|---|---|
//! | `entry` | the first instruction of the gate | the first one in `ours` |
//! | `path` | there | the first one in `cokernel` |
//! | `cokernel` | instructions in `cokernel`, wherever they stand in the trip | |
//! | `back` | the rest | the last one in `ours` |
//! | `exit` | there | the IRET that ends the trip; without Linux, the HLT |
//!
//! `ours` is the module, the trampoline and the layer, or the hypervisor and the layer. The file has one line for each kind of trip: how many there were,
//! and instructions and events of each stage.
//!
//! Invariants:
//!
//! 1. One virtual CPU; with more, every figure would be of a mixture. The plug-in refuses to be loaded then.
//! 2. What is counted is what ran: a block of code is counted when it begins. QEMU leaves blocks early for exceptions,
//!    which no trip has, at accesses to devices, whose rest is not counted again, and at a VMMCALL, where a block ends.
//! 3. A host intercepts VMMCALL, and there is one VMEXIT for each VMRUN.
//!
//! Must not know: what the figures are for, or what an event costs.

mod code;
mod plugin;
mod trip;
