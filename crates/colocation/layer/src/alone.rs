//! Without Linux: the cokernel's image on a bare machine, booted by PVH.
//!
//! The baseline for the other modes. The cokernel, its tick handler, its services and the timer are the same as beside
//! Linux; only the other world is missing. The way from the interrupt to the tick handler of an idle cokernel is that
//! of any kernel: the gate, saved registers, a read of the clock. No CR3, no descriptor table and no task register is
//! loaded after the start.
//!
//! Module 1 is the cokernel's image, followed by its tasks, each on a page boundary. The command line is
//! [`command::Options`]; messages go to COM1:
//!
//! ```text
//! qemu-system-x86_64 -machine q35 -cpu max -nodefaults -display none -serial stdio \
//!     -kernel alone.elf -initrd cokernel.bin -append "hz=1000 ticks=10000"
//! ```
//!
//! Budget and cut-off are the layer's, as beside Linux, with one difference: the tick handler of an idle cokernel is
//! called straight from the gate, while the CPU holds NMIs back, so the guard takes effect only when it returns.
//!
//! Must not know: Linux, or the cokernel's purpose. The machine is the q35's family: HPET and IO-APIC at their usual
//! addresses, ACPI's power management at port 0x600.

pub mod command;
pub mod image;
pub mod memory;
pub mod pvh;
pub mod tables;

#[cfg(all(target_os = "none", feature = "alone"))]
mod host;
#[cfg(all(target_os = "none", feature = "alone"))]
mod ioapic;
#[cfg(all(target_os = "none", feature = "alone"))]
mod serial;
#[cfg(all(target_os = "none", feature = "alone"))]
mod services;
#[cfg(all(target_os = "none", feature = "alone"))]
pub mod start;
#[cfg(all(target_os = "none", feature = "alone"))]
mod timer;
#[cfg(all(target_os = "none", feature = "alone"))]
mod world;
