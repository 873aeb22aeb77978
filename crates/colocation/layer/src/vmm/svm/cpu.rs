//! Linux on one CPU: its control block, its registers, and what it has to get.

use super::access::Access;
use super::entry::{at, count, count_extra_nmi};
use super::memory::POOL;
use super::tables::tables;
use super::vmcb::*;
use crate::arch::x86_64::svm::Registers;
use crate::frames::Frames;
use crate::owned::Owned;
use crate::vmm::blocked::Nmis;
use crate::vmm::step::Step;
use kyozon_abi::vmm::{EXIT_NMI, HOST_MAX_CPUS};

/// Pages that one instruction may find in the place of others.
pub const DECOYS: usize = 4;
const LINUX_ASID: u32 = 1;

/// Each is its CPU's, and made by it.
static CPUS: [Owned<Option<Cpu>>; HOST_MAX_CPUS] = [const { Owned::new(None) }; HOST_MAX_CPUS];

/// One CPU.
pub struct Cpu {
    /// Its number.
    pub index: u32,
    block: u64,
    /// Physical address of the page for the host's state.
    pub host_save: u64,
    /// The guest's.
    pub registers: Registers,
    /// When the guest can take an NMI.
    pub nmis: Nmis,
    /// What the guest sees while it is stepped over an access.
    pub step: Step,
    /// Physical addresses of pages.
    pub decoys: [u64; DECOYS],
    /// The access that it is stepped over.
    pub access: Option<Access>,
    /// DR6 before a step over an IRET.
    pub dr6: u64,
    /// An event that the guest has to get before it runs on.
    pub event: Option<u64>,
    /// Whether what is hidden is hidden.
    pub sealed: bool,
}

impl Cpu {
    /// A CPU with a control block that says everything but the guest's state. None where memory ran out.
    pub fn make(index: u32) -> Option<Self> {
        let mut pool = POOL.lock();
        let cpu = Self {
            index,
            block: pool.page()?,
            host_save: pool.page()?,
            registers: Registers::default(),
            nmis: Nmis::new(),
            step: Step::new(&mut *pool)?,
            decoys: [pool.page()?, pool.page()?, pool.page()?, pool.page()?],
            access: None,
            dr6: 0,
            event: None,
            sealed: false,
        };
        let vmcb = cpu.vmcb();
        vmcb.intercept_1 = INTERCEPT_NMI | INTERCEPT_INIT | INTERCEPT_MSRS | INTERCEPT_SHUTDOWN;
        vmcb.intercept_2 = INTERCEPT_SVM;
        vmcb.msrpm = tables().linux_registers;
        vmcb.asid = LINUX_ASID;
        vmcb.tlb_control = FLUSH_ALL;
        vmcb.nested_control = 1;
        vmcb.nested_cr3 = tables().open.root();
        Some(cpu)
    }

    /// The control block.
    #[allow(clippy::mut_from_ref)] // it is this CPU's, and the processor's between an entry and an exit
    pub fn vmcb(&self) -> &'static mut Vmcb {
        // SAFETY: a page of this CPU's alone.
        unsafe { &mut *at(self.block) }
    }

    /// Physical address of the control block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// The guest gets `event` (`EVENT_*`) before it runs on.
    pub fn give(&mut self, event: u64) {
        self.event = Some(event);
    }

    /// An NMI is Linux's.
    pub fn give_nmi(&mut self) {
        count(EXIT_NMI);
        self.nmis.want();
    }

    /// An NMI may be Linux's: if it is not, kyozon.ko takes it.
    pub fn give_nmi_in_doubt(&mut self) {
        count_extra_nmi();
        self.give_nmi();
    }

    /// The guest sees what it is to see when nothing is stepped over.
    pub fn show_shared(&mut self) {
        self.step.reset();
        let tables = tables();
        let root = if self.sealed { tables.sealed.root() } else { tables.open.root() };
        let vmcb = self.vmcb();
        vmcb.nested_cr3 = root;
        vmcb.tlb_control = FLUSH_ALL;
    }
}

/// CPU `index`'s own.
///
/// # Safety
///
/// Only on this CPU, which holds no other reference.
pub unsafe fn of(index: usize) -> &'static mut Option<Cpu> {
    // SAFETY: the caller's promise.
    unsafe { CPUS[index].get() }
}
