//! AMD SVM: the hypervisor's image.
//!
//! Each CPU is in one of three states: *Linux* runs as a guest, the *cokernel* runs as another (on one CPU), or the
//! *host*, which is this code: with interrupts and NMIs held back (GIF is 0), on a stack of this CPU's, in page tables
//! that nobody else uses. Everything that a VMEXIT needs is in memory that neither guest reaches.
//!
//! | file | what |
//! |---|---|
//! | [`vmcb`] | the processor's structure |
//! | `machine` | what all CPUs share: memory, tables, timer, reports |
//! | `cpu` | Linux on one CPU: entry, exit, events |
//! | `launch` | how a CPU becomes a guest, and how it is given back |
//! | `iommu` | what devices may reach |
//! | `wall` | accesses to what is hidden or guarded |
//! | `trip` | the cokernel's trips |
//! | `park` | the other CPUs stand still |
//! | `check` | compares Linux's state around a trip, for tests |
//! | `names` | which task of Linux it was |
//!
//! Reference: AMD APM 2, chapter 15.

pub mod vmcb;

#[cfg(all(target_os = "none", feature = "svm"))]
mod check;
#[cfg(all(target_os = "none", feature = "svm"))]
mod cpu;
#[cfg(all(target_os = "none", feature = "svm"))]
mod iommu;
#[cfg(all(target_os = "none", feature = "svm"))]
mod launch;
#[cfg(all(target_os = "none", feature = "svm"))]
pub mod machine;
#[cfg(all(target_os = "none", feature = "svm"))]
mod names;
#[cfg(all(target_os = "none", feature = "svm"))]
mod park;
#[cfg(all(target_os = "none", feature = "svm"))]
mod trip;
#[cfg(all(target_os = "none", feature = "svm"))]
mod wall;

/// What the machine code calls.
#[cfg(all(target_os = "none", feature = "svm"))]
pub(crate) mod entries {
    pub(crate) use super::cpu::run;
    pub(crate) use super::launch::{launch, left};
    pub(crate) use super::machine::fault;
}
