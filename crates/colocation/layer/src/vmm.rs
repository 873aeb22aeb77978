//! Linux as a guest: a small hypervisor under a Linux that runs already. AMD SVM.
//!
//! What decides and keeps tables touches no machine, has no unsafe code, allocates nothing but pages of page tables,
//! and is tested on the host:
//!
//! - [`nested`]: which memory the guest reaches, and how.
//! - [`step`]: one instruction of one CPU sees other pages than the rest of the machine.
//! - [`filter`]: what an instruction wrote to a device of the tick's, and whether that may pass.
//! - [`device_event`]: what an IOMMU tells of a device.
//! - [`blocked`]: when the guest can take an NMI.
//! - [`stay`]: when the cokernel has stayed for too long.
//! - [`flood`]: how many lines the attempts of a second are worth.
//!
//! What touches the machine is [`svm`], on the bare machine only.
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
pub mod nested;
pub mod stay;
pub mod step;
pub mod svm;
