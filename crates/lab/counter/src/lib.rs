//! A plug-in for QEMU's TCG that counts the cost of one tick of a cokernel: its instructions, and the events among them
//! that cost more than an instruction.
//!
//! ```text
//! qemu-system-x86_64 ... -plugin libkyozon_counter.so,out=FILE,ours=LOW-HIGH,ours=LOW-HIGH,cokernel=LOW-HIGH
//! ```
//!
//! A *trip* begins when the CPU takes an interrupt or exception that leads to code in `cokernel`: control goes
//! elsewhere than the last instruction allows. If Linux is a guest, the trip begins when Linux exits (control arrives
//! at the instruction after a VMRUN) and ends at the VMRUN that enters Linux again; the stages `entry` and `exit` are
//! then empty. The stages:
//!
//! | stage | from | to |
//! |---|---|---|
//! | `entry` | the first instruction of the gate | the first one in `ours` |
//! | `path` | there | the first one in `cokernel` |
//! | `cokernel` | instructions in `cokernel`, anywhere in the trip | |
//! | `back` | the rest | the last one in `ours` |
//! | `exit` | there | the IRET that ends the trip; without Linux, the HLT |
//!
//! `ours` is the module, the trampoline and the layer, or the hypervisor and the layer. The file has one line for each
//! kind of trip: its count, then instructions and events of each stage.
//!
//! With `calls=1` it counts system calls instead, from a software interrupt to the instruction behind it, whoever makes
//! them.
//!
//! Invariants:
//!
//! 1. One virtual CPU: with several, every figure would mix them, so the plug-in refuses to load.
//! 2. Only code that ran is counted, by blocks, each when it begins. QEMU leaves a block early for an exception, which
//!    no trip has; at an access to a device, after which the rest is not counted again; and at a VMMCALL, where a block
//!    ends.
//! 3. A host intercepts VMMCALL, and there is one VMEXIT for each VMRUN.
//!
//! Must not know: the purpose of the figures, or the cost of an event.

mod calls;
mod code;
mod plugin;
mod trip;
