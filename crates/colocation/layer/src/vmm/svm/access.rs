//! An access of Linux that its CPU is stepped over. See `wall`.

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

/// An access that a CPU is stepped over.
pub struct Access {
    /// The guest's own TF.
    pub trap: bool,
    /// DR6 before.
    pub dr6: u64,
    /// What was accessed first.
    pub target: Target,
    /// Guest-physical address that faulted first.
    pub gpa: u64,
    /// Index of the decoy page in its place.
    pub decoy: usize,
    /// The marked bytes around it, if it is a device's register.
    pub marked: [u8; WINDOW],
    /// Decoy pages in use.
    pub used: usize,
}
