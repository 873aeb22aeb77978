//! Without Linux: the cokernel's image on a bare machine, booted by PVH.
//!
//! The row that the other modes are compared with. The cokernel, its tick handler, its services and the timer are the
//! same as beside Linux; what is missing is the other world. From the interrupt to the tick handler of an idle
//! cokernel there is what any kernel has: the gate, the registers saved, a look at the clock. No CR3, no descriptor
//! table and no task register is loaded after the start.
//!
//! Module 1 is the cokernel's image with its tasks behind it, each from a page on. The command line is
//! [`command::Options`], and what is said goes to COM1:
//!
//! ```text
//! qemu-system-x86_64 -machine q35 -cpu max -nodefaults -display none -serial stdio \
//!     -kernel alone.elf -initrd cokernel.bin -append "hz=1000 ticks=10000"
//! ```
//!
//! Budget and cut-off are the layer's, as beside Linux. One thing differs: the tick handler of a cokernel that was
//! idle is called straight from the gate, while the CPU holds NMIs back, so the guard reaches it only when it returns.
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
