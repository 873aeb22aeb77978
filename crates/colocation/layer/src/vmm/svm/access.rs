//! An access of Linux to hidden, guarded or watched memory, or to a control register, over which its CPU is
//! single-stepped. See `wall` and `controls`.

use super::cpu::DECOYS;
use super::vmcb::{Controls, Vmcb, DEBUG_CAUSES, EFER_SCE, FLAG_TRAP, VIRTUAL_MASKING};
use crate::arch::x86_64::svm;
use crate::vmm::filter::WINDOW;
use crate::vmm::registers::{DEBUG_CONTROL, STEP_BRANCHES};

/// What Linux accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Memory of the cokernel or of the hypervisor.
    Hidden,
    /// Registers of an IOMMU that the hypervisor drives.
    Iommu,
    /// Memory that Linux may only read: the event ring and the status.
    ReadOnly,
    /// Memory whose writes the cokernel watches.
    Watched,
    /// The same, by the processor itself: the frame of an exception or interrupt, or a walk of page tables.
    Frame,
    /// Registers of the tick's timer.
    Timer,
    /// Registers of the IO-APIC that has the tick's pin.
    IoApic,
    /// CR0, CR4, IDTR, GDTR or TR.
    Control,
}

/// An access over which a CPU is single-stepped.
pub struct Access {
    /// The guest's own RFLAGS.TF.
    pub trap: bool,
    /// The guest's own DEBUGCTL.BTF, which is off during the step: with it, the step would end at the next branch.
    pub branches: bool,
    /// The guest's own EFER.SCE, which is off during the step: SYSCALL and SYSRET would end it without a trap.
    pub syscalls: bool,
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
    /// The watched page that is shown itself, and of which the decoy page keeps the contents, or 0.
    pub watched: [u64; DECOYS],
    /// Address of the instruction.
    pub rip: u64,
    /// CR3 at its start.
    pub cr3: u64,
    /// The registers that `controls` judges, by then.
    pub controls: Controls,
}

/// Switches DEBUGCTL.BTF off, and returns whether it was on. An exit leaves Linux's value in the register.
fn take_branches() -> bool {
    let control = svm::try_rdmsr(DEBUG_CONTROL).unwrap_or(0);
    let branches = control & STEP_BRANCHES != 0;
    if branches {
        // SAFETY: a value that the register had, without one bit. The host makes no single steps.
        unsafe { svm::try_wrmsr(DEBUG_CONTROL, control & !STEP_BRANCHES) };
    }
    branches
}

impl Access {
    /// No watched pages.
    pub const NOTHING: [u64; DECOYS] = [0; DECOYS];

    /// An access by the guest's next instruction. `trap`: the guest's own RFLAGS.TF.
    pub fn new(vmcb: &Vmcb, trap: bool, target: Target, gpa: u64) -> Self {
        Self {
            trap,
            branches: take_branches(),
            syscalls: vmcb.efer & EFER_SCE != 0,
            dr6: vmcb.dr6,
            target,
            gpa,
            decoy: 0,
            marked: [0; WINDOW],
            used: 0,
            watched: Self::NOTHING,
            rip: vmcb.rip,
            cr3: vmcb.cr3,
            controls: vmcb.controls(),
        }
    }

    /// At its next entry the guest runs one instruction.
    pub fn step(vmcb: &mut Vmcb) {
        vmcb.dr6 &= !DEBUG_CAUSES;
        vmcb.efer &= !EFER_SCE;
        vmcb.rflags |= FLAG_TRAP;
        // The host's RFLAGS.IF is 0, so the guest takes no interrupt: its frame would contain the trap flag. 15.21.1.
        vmcb.virtual_interrupt |= VIRTUAL_MASKING;
    }

    /// Gives the guest its DEBUGCTL.BTF back.
    pub fn restore_branches(&self) {
        if self.branches {
            let control = svm::try_rdmsr(DEBUG_CONTROL).unwrap_or(0);
            // SAFETY: as above, with the guest's bit.
            unsafe { svm::try_wrmsr(DEBUG_CONTROL, control | STEP_BRANCHES) };
        }
    }
}
