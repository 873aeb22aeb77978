//! AMD SVM: the hypervisor's image.
//!
//! Each CPU is in one of three states: *Linux* runs as a guest, the *cokernel* runs as another (on one CPU), or the
//! *host*, which is this code, runs: with interrupts and NMIs held back (GIF is 0), on this CPU's own stack, with page
//! tables that only the host uses. Everything that a VMEXIT needs is in memory that neither guest reaches.
//!
//! | file | what |
//! |---|---|
//! | [`vmcb`] | the processor's structure |
//! | `segments` | segment registers of guests |
//! | `entry` | what the module passed, and the structures that are shared |
//! | `memory` | locks, and pages for tables |
//! | `permissions` | registers and ports that a guest may use |
//! | `tables` | the memory that each guest reaches |
//! | `log` | lines for the event ring and the serial line |
//! | `apic` | messages to CPUs, and the ID that leads them |
//! | `cpu` | Linux on one CPU: its state |
//! | `exits` | its entries and exits |
//! | `calls` | the module's calls |
//! | `launch` | how a CPU becomes a guest, and how it is given back |
//! | `iommu` | what devices may reach |
//! | `access`, `wall` | accesses to what is hidden or guarded |
//! | `watch`, `controls` | the memory and registers whose writes the cokernel wants to know |
//! | `cokernel` | the cokernel's guest |
//! | `trip` | the cokernel's trips |
//! | [`trip_exit`] | what an exit of the cokernel's guest means |
//! | `park` | the other CPUs stand still |
//! | `check` | compares Linux's state around a trip, for tests |
//! | `guest_memory` | Linux's memory at Linux's addresses |
//! | `names` | names the task that Linux runs |
//!
//! Reference: AMD APM 2, chapter 15.

pub mod trip_exit;
pub mod vmcb;

#[cfg(all(target_os = "none", feature = "svm"))]
mod access;
#[cfg(all(target_os = "none", feature = "svm"))]
mod apic;
#[cfg(all(target_os = "none", feature = "svm"))]
mod calls;
#[cfg(all(target_os = "none", feature = "svm"))]
mod check;
#[cfg(all(target_os = "none", feature = "svm"))]
mod cokernel;
#[cfg(all(target_os = "none", feature = "svm"))]
mod controls;
#[cfg(all(target_os = "none", feature = "svm"))]
mod cpu;
#[cfg(all(target_os = "none", feature = "svm"))]
mod entry;
#[cfg(all(target_os = "none", feature = "svm"))]
mod exits;
#[cfg(all(target_os = "none", feature = "svm"))]
mod guest_memory;
#[cfg(all(target_os = "none", feature = "svm"))]
mod iommu;
#[cfg(all(target_os = "none", feature = "svm"))]
mod launch;
#[cfg(all(target_os = "none", feature = "svm"))]
pub mod log;
#[cfg(all(target_os = "none", feature = "svm"))]
mod memory;
#[cfg(all(target_os = "none", feature = "svm"))]
mod names;
#[cfg(all(target_os = "none", feature = "svm"))]
mod park;
#[cfg(all(target_os = "none", feature = "svm"))]
mod permissions;
#[cfg(all(target_os = "none", feature = "svm"))]
mod segments;
#[cfg(all(target_os = "none", feature = "svm"))]
mod tables;
#[cfg(all(target_os = "none", feature = "svm"))]
mod trip;
#[cfg(all(target_os = "none", feature = "svm"))]
mod wall;
#[cfg(all(target_os = "none", feature = "svm"))]
mod watch;
