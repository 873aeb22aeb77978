//! The colocation layer lets a cokernel run beside Linux on the same CPU.
//!
//! The layer is a flat image, mapped in the cokernel's world only. `kyozon.ko` enters it with `abi::layer::LayerEntry`
//! and `abi::layer::Trip`; it enters the cokernel with `abi::layer::BootBlock`.
//!
//! Invariants:
//!
//! 1. Each mode (alone, none, vmm) has one table of services, chosen once; shared code never asks for the mode.
//! 2. A tick is one event, whatever the mode and whatever the CPU was doing.
//! 3. A repair is all or nothing.
//! 4. Every change of Linux's state is undone before Linux runs again.
//! 5. The cokernel runs on its own stacks, with NMIs open: it can be cut off at any instruction, and continues there.
//!    The layer's own code is never cut off, so it is short everywhere.
//!
//! Must not know: what the cokernel does with its time, or any structure of Linux.
//!
//! | place | contents | where it runs |
//! |---|---|---|
//! | files of this folder | decisions and tables that touch no machine | every image, and tests on the host |
//! | `cokernel` | the first trip, services, interrupts: the same in every mode | the layer's images |
//! | `none` | services of mode none | the layer beside Linux |
//! | `vmm` | the guest's services of mode vmm; the hypervisor's decisions, which no vendor owns | layer; hypervisor |
//! | `vmm::svm` | the hypervisor for AMD SVM | the hypervisor's image |
//! | `alone` | boot, timer and services without Linux | the image of mode alone |
//! | `arch` | machine code | every image |
//!
//! Modes differ in their own folders only. No two files import each other, directly or through others:
//! machine code and the Rust code that it calls know each other by the names of symbols.
#![cfg_attr(not(test), no_std)]

pub mod alone;
pub mod backlog;
pub mod events;
pub mod frames;
pub mod interrupt;
pub mod line;
pub mod linux;
pub mod repair;
pub mod schedule;
pub mod space;
pub mod tick;
pub mod user;
pub mod vmm;

#[cfg(target_os = "none")]
pub mod arch;
#[cfg(all(target_os = "none", not(feature = "svm")))]
pub mod cokernel;
#[cfg(target_os = "none")]
pub mod hpet;
#[cfg(all(target_os = "none", not(feature = "svm")))]
mod none;
#[cfg(target_os = "none")]
mod owned;
#[cfg(target_os = "none")]
mod reset;
#[cfg(target_os = "none")]
mod serial;
#[cfg(target_os = "none")]
pub mod ticks;
