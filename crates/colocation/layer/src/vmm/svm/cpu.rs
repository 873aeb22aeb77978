//! Linux on one CPU: its control block, its registers, and the events that wait for it.

use super::access::{Access, Target};
use super::controls;
use super::entry::{at, count, entry, set_doubtful_nmi};
use super::guest_memory::has_gate;
use super::memory::POOL;
use super::tables::tables;
use super::vmcb::*;
use super::watch;
use crate::arch::x86_64::svm::Registers;
use crate::frames::Frames;
use crate::owned::Owned;
use crate::vmm::blocked::Nmis;
use crate::vmm::step::Step;
use kyozon_abi::vmm::{EXIT_NMI, EXIT_STEP, HOST_MAX_CPUS};

/// Maximum decoy pages for one instruction.
pub const DECOYS: usize = 4;
const LINUX_ASID: u32 = 1;

/// The state of each CPU, which makes and owns it.
static CPUS: [Owned<Option<Cpu>>; HOST_MAX_CPUS] = [const { Owned::new(None) }; HOST_MAX_CPUS];

/// One CPU.
pub struct Cpu {
    /// Its index in the module's list.
    pub index: u32,
    block: u64,
    /// Physical address of the page for the host's state.
    pub host_save: u64,
    /// The guest's general registers.
    pub registers: Registers,
    /// When the guest can take an NMI.
    pub nmis: Nmis,
    /// Whether the NMI that waits, or that was injected last, may not be Linux's.
    doubtful: bool,
    /// Whether an NMI is on its way that this CPU sent to itself, to cause an exit.
    pub woken: bool,
    /// The guest's view while it is single-stepped over an access.
    pub step: Step,
    /// Physical addresses of the decoy pages.
    pub decoys: [u64; DECOYS],
    /// The access over which the guest is single-stepped.
    pub access: Option<Access>,
    /// DR6 before a step over an IRET.
    pub dr6: u64,
    /// An event that the guest gets at the next entry.
    pub event: Option<u64>,
    /// Whether the reserve is hidden from this CPU.
    pub sealed: bool,
    /// The last change of the watched memory that this CPU has flushed its guest for.
    pub flushed: u64,
}

impl Cpu {
    /// A CPU with a control block that lacks only the guest's state. `None` if memory ran out.
    pub fn make(index: u32) -> Option<Self> {
        let mut pool = POOL.lock();
        let cpu = Self {
            index,
            block: pool.page()?,
            host_save: pool.page()?,
            registers: Registers::default(),
            nmis: Nmis::new(),
            doubtful: false,
            woken: false,
            step: Step::new(&mut *pool)?,
            decoys: [pool.page()?, pool.page()?, pool.page()?, pool.page()?],
            access: None,
            dr6: 0,
            event: None,
            sealed: false,
            flushed: 0,
        };
        let vmcb = cpu.vmcb();
        vmcb.intercept_1 = INTERCEPT_NMI
            | INTERCEPT_INIT
            | INTERCEPT_INVD
            | INTERCEPT_PORTS
            | INTERCEPT_MSRS
            | INTERCEPT_SHUTDOWN;
        vmcb.intercept_2 = INTERCEPT_SVM;
        vmcb.iopm = tables().linux_ports;
        vmcb.msrpm = tables().linux_registers;
        vmcb.asid = LINUX_ASID;
        vmcb.tlb_control = FLUSH_ALL;
        vmcb.nested_control = 1;
        vmcb.nested_cr3 = tables().open.root();
        Some(cpu)
    }

    /// The control block.
    #[allow(clippy::mut_from_ref)] // only this CPU uses it, and the processor between an entry and an exit
    pub fn vmcb(&self) -> &'static mut Vmcb {
        // SAFETY: a page of this CPU's alone.
        unsafe { &mut *at(self.block) }
    }

    /// Physical address of the control block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// The guest gets `event` (`EVENT_*`) at the next entry.
    pub fn give(&mut self, event: u64) {
        self.event = Some(event);
    }

    /// Passes an NMI to Linux.
    pub fn give_nmi(&mut self) {
        count(EXIT_NMI);
        self.doubtful = false;
        self.nmis.want();
    }

    /// Passes an NMI to Linux that may not be Linux's: kyozon.ko handles it if no one else does. An NMI that already
    /// waits stays what it is.
    pub fn give_nmi_in_doubt(&mut self) {
        count(EXIT_NMI);
        self.doubtful |= !self.nmis.waits();
        self.nmis.want();
    }

    /// The guest takes its NMI at this entry. False if it does not: the NMI may not be Linux's, and a kernel that has
    /// no handler yet would end with a triple fault.
    pub fn announce_nmi(&self) -> bool {
        set_doubtful_nmi(self.index, self.doubtful);
        !self.doubtful || has_gate(self, NMI)
    }

    /// Ends the step over an access, if there is one: the guest gets its own state and its normal view back.
    pub fn end_step(&mut self) -> Option<Access> {
        let access = self.access.take()?;
        count(EXIT_STEP);
        let vmcb = self.vmcb();
        if !access.trap {
            vmcb.rflags &= !FLAG_TRAP;
        }
        if access.syscalls {
            vmcb.efer |= EFER_SCE;
        }
        vmcb.virtual_interrupt &= !VIRTUAL_MASKING;
        vmcb.dr6 |= access.dr6;
        self.show_shared();
        access.restore_branches();
        // Even if it has not run to its end: a string instruction may have written a part.
        watch::end(&access, self);
        if access.target == Target::Control {
            controls::end(&access, self);
        }
        Some(access)
    }

    /// Whether a watched page is writable in the view of the current step.
    pub fn shows_watched(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.watched != Access::NOTHING)
    }

    /// Gives the guest its normal view, without decoys.
    pub fn show_shared(&mut self) {
        self.step.reset();
        let tables = tables();
        let root = if self.sealed { tables.sealed.root() } else { tables.open.root() };
        let vmcb = self.vmcb();
        vmcb.nested_cr3 = root;
        vmcb.tlb_control = FLUSH_ALL;
    }
}

/// Time after an irregularity in which an NMI of the hypervisor may still arrive. A virtual machine's CPU may stand
/// still for long between any two instructions.
const DOUBT_MS: u64 = 5000;

/// Whether an irregularity at `then`, 0 for never, casts doubt on an NMI at `now`.
pub fn casts_doubt(then: u64, now: u64) -> bool {
    then != 0 && (now.wrapping_sub(then) as i64) < (DOUBT_MS * entry().tsc_khz) as i64
}

/// The state of CPU `index`.
///
/// # Safety
///
/// Only on this CPU, which holds no other reference.
pub unsafe fn of(index: usize) -> &'static mut Option<Cpu> {
    // SAFETY: the caller's promise.
    unsafe { CPUS[index].get() }
}
