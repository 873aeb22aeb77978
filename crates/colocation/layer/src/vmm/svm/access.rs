//! An access of Linux to hidden or guarded memory, over which its CPU is single-stepped. See `wall`.

use crate::vmm::filter::WINDOW;

/// What Linux accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Memory of the cokernel or of the hypervisor.
    Hidden,
    /// Registers of an IOMMU that the hypervisor drives.
    Iommu,
    /// Memory that Linux may only read: the event ring and the status.
    ReadOnly,
    /// Registers of the tick's timer.
    Timer,
    /// Registers of the IO-APIC that has the tick's pin.
    IoApic,
}

/// An access over which a CPU is single-stepped.
pub struct Access {
    /// The guest's own RFLAGS.TF.
    pub trap: bool,
    /// DR6 before the step.
    pub dr6: u64,
    /// The kind of memory that was accessed first.
    pub target: Target,
    /// Guest-physical address that faulted first.
    pub gpa: u64,
    /// Index of the decoy page that replaces it.
    pub decoy: usize,
    /// The marked bytes around it, if it is a device's register.
    pub marked: [u8; WINDOW],
    /// Decoy pages in use.
    pub used: usize,
}
