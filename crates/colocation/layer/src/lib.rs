//! The colocation layer: what lets a cokernel run beside Linux on the same CPU.
//!
//! A flat image of its own, mapped in the cokernel's world only. `kyozon.ko` enters it through
//! `abi::layer::LayerEntry` and `abi::layer::Trip`; it enters the cokernel through `abi::layer::BootBlock`.
//!
//! Invariants:
//!
//! 1. The modes (alone, hal, vmm) are implementations of one trait, [`linux::Linux`], chosen once; shared code never
//!    asks which.
//! 2. A tick is one event, whatever the mode and whatever the CPU was doing.
//! 3. A repair is all or nothing.
//! 4. Nothing of Linux's state is changed that is not put back before Linux runs again.
//! 5. Everything of the cokernel runs on stacks of the cokernel, with NMIs open: it can be cut off anywhere, and goes
//!    on where it was. The layer's own code is never cut off; it is short everywhere.
//!
//! Must not know: what the cokernel does with its time, or any structure of Linux.
//!
//! Machine code and everything that touches the machine is in `arch`, `hal` and parts of [`alone`], which exist on the
//! bare machine only; the rest is tested on the host.
#![cfg_attr(not(test), no_std)]

pub mod alone;
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
mod behind;
#[cfg(all(target_os = "none", not(feature = "svm")))]
pub mod hal;
#[cfg(all(target_os = "none", any(feature = "alone", feature = "svm")))]
mod hpet;
#[cfg(target_os = "none")]
mod owned;
#[cfg(target_os = "none")]
mod serial;
#[cfg(all(target_os = "none", any(feature = "alone", feature = "svm")))]
mod ticks;
