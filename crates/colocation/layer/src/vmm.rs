//! Linux as a guest: a small hypervisor under a Linux that runs already. AMD SVM.
//!
//! The decisions and tables touch no machine, have no unsafe code, allocate only pages for page tables, and are tested
//! on the host:
//!
//! - [`nested`]: which memory the guest reaches, and how.
//! - [`step`]: one instruction of one CPU sees other pages than the rest of the machine.
//! - [`filter`]: what an instruction wrote to the tick's timer or IO-APIC, and whether that may pass.
//! - [`device_event`]: an IOMMU's log entry about a device.
//! - [`blocked`]: when the guest can take an NMI.
//! - [`ports`]: what Linux may write to the ports that put the machine to sleep.
//! - [`registers`]: which registers Linux may write, and with which values.
//! - [`stay`]: when a trip of the cokernel has lasted too long.
//! - [`watched`]: what an instruction wrote to watched memory, until the cokernel fetches it.
//! - [`key`]: what a call must present that opens the wall, or starts or stops the ticks.
//! - [`flood`]: limits the lines on stopped attempts.
//!
//! [`svm`] touches the machine, and exists on the bare machine only. `guest` is the layer's side of the mode.
//!
//! Must not know: what the cokernel does, or any structure of Linux.
//!
//! Reference: AMD APM 2, chapter 15.

pub mod blocked;
pub mod device_event;
pub mod filter;
pub mod flood;
#[cfg(all(target_os = "none", not(feature = "svm")))]
pub(crate) mod guest;
pub mod key;
pub mod nested;
pub mod ports;
pub mod registers;
pub mod stay;
pub mod step;
pub mod svm;
pub mod watched;
