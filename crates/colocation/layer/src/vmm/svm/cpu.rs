//! Linux on one CPU: what its guest needs at an entry, and what an exit means.

use super::machine::{self, count, entry, tables, POOL};
use super::vmcb::*;
use super::wall::{self, Access};
use super::{iommu, launch};
use super::{names, park, trip};
use crate::arch::x86_64::svm::{self, Registers};
use crate::frames::Frames;
use crate::line::Line;
use crate::vmm::blocked::Nmis;
use crate::vmm::step::Step;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::COKERNEL_BASE;
use kyozon_abi::vmm::*;

/// Pages that one instruction may find in the place of others.
pub const DECOYS: usize = 4;
const LINUX_ASID: u32 = 1;
const WRMSR_BYTES: u64 = 2;
const VMMCALL_BYTES: u64 = 3;

/// Whether a CPU's view is open, so that it is said once.
static OPEN: AtomicBool = AtomicBool::new(true);

/// One CPU.
pub struct Cpu {
    /// Its number.
    pub index: u32,
    block: u64,
    /// Physical address of the page for the host's state.
    pub host_save: u64,
    /// The guest's.
    pub registers: Registers,
    nmis: Nmis,
    /// What the guest sees while it is stepped over an access.
    pub step: Step,
    /// Physical addresses of pages.
    pub decoys: [u64; DECOYS],
    /// The access that it is stepped over.
    pub access: Option<Access>,
    /// DR6 before a step over an IRET.
    dr6: u64,
    /// An event that the guest has to get before it runs on.
    event: Option<u64>,
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
        unsafe { &mut *machine::at(self.block) }
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
        machine::doubt();
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

    fn enter(&mut self) {
        let vmcb = self.vmcb();
        if svm::machine_checks() != 0 {
            self.event.get_or_insert(exception(MACHINE_CHECK, 0));
        }
        vmcb.event_inj = self.event.take().unwrap_or(0);
        let busy = vmcb.event_inj != 0 || self.access.is_some() || vmcb.interrupt_shadow & 1 != 0;
        let say = self.nmis.on_entry(busy);
        if say.inject {
            vmcb.event_inj = EVENT_VALID | EVENT_NMI | 2;
        }
        vmcb.intercept_1 &= !INTERCEPT_IRET;
        if say.intercept_iret {
            vmcb.intercept_1 |= INTERCEPT_IRET;
        }
        if say.step {
            vmcb.rflags |= FLAG_TRAP | FLAG_RESUME;
        }
        vmcb.intercept_exceptions = match say.step || self.access.is_some() {
            true => !(1 << 2 | 1 << MACHINE_CHECK),
            false => 0,
        };
        if say.exit_soon && self.access.is_none() {
            park::send_nmi(self.index);
        }
        // SAFETY: Linux's tables do not have our memory, or it is in the middle of a launch; GIF is 0 since then.
        unsafe { svm::run_guest(&mut self.registers, self.block) };
        vmcb.tlb_control = 0;
        vmcb.event_inj = 0;
    }

    fn exit(&mut self) {
        let vmcb = self.vmcb();
        let cut_short = vmcb.exit_int_info;
        if cut_short & EVENT_VALID != 0 {
            match cut_short & EVENT_TYPE {
                EVENT_NMI => self.nmis.on_not_delivered(),
                // A software interrupt is raised again by its instruction.
                0x400 => {}
                _ => self.give(cut_short),
            }
        }
        match vmcb.exit_code {
            VMEXIT_NMI => self.on_nmi(),
            VMEXIT_NESTED_FAULT => wall::on_fault(self),
            VMEXIT_IRET => {
                count(EXIT_NMI_END);
                self.dr6 = vmcb.dr6;
                self.nmis.on_iret();
            }
            VMEXIT_MSR => self.on_register(),
            VMEXIT_VMMCALL => self.on_call(),
            VMEXIT_VMRUN..=VMEXIT_SKINIT => {
                count(EXIT_SVM);
                let task = names::current(self);
                machine::report(format_args!(
                    "wall: SVM instruction from CPU {}, rip {:#x}, task {}",
                    self.index,
                    vmcb.rip,
                    Or(task)
                ));
                self.give(exception(INVALID_OPCODE, 0));
            }
            VMEXIT_INIT => {
                count(EXIT_INIT);
                machine::report(format_args!("wall: INIT to CPU {}", self.index));
                // It becomes an exception of ours, which does nothing: see `launch`.
                // SAFETY: the hypervisor's tables are live.
                unsafe { svm::take_nmi() };
            }
            VMEXIT_SHUTDOWN => self.on_shutdown(),
            code @ VMEXIT_EXCEPTION..VMEXIT_NMI => self.on_exception(code - VMEXIT_EXCEPTION),
            code => machine::failed(format_args!(
                "hypervisor: exit {code:#x} of Linux is unknown: {:#x} {:#x}, rip {:#x}",
                vmcb.exit_info_1, vmcb.exit_info_2, vmcb.rip
            )),
        }
    }

    fn on_nmi(&mut self) {
        // SAFETY: the hypervisor's tables are live.
        unsafe { svm::take_nmi() };
        if self.index == entry().cokernel_cpu && trip::on_nmi(self) {
            return;
        }
        if !park::stand(self.index) {
            self.give_nmi();
        }
    }

    /// Linux gets the exception that has exited, as it would have without us.
    fn reflect(&mut self, vector: u64) {
        let vmcb = self.vmcb();
        if vector == PAGE_FAULT {
            vmcb.cr2 = vmcb.exit_info_2;
        }
        self.give(exception(vector, vmcb.exit_info_1 & 0xffff_ffff));
    }

    /// Exceptions exit only while the guest is stepped.
    fn on_exception(&mut self, vector: u64) {
        let vmcb = self.vmcb();
        let stepped = vector == DEBUG && vmcb.dr6 & DEBUG_STEP != 0;
        let mut own = !stepped;
        if let Some(access) = self.access.take() {
            count(EXIT_STEP);
            if !access.trap {
                vmcb.rflags &= !FLAG_TRAP;
            }
            vmcb.interrupt_shadow &= !1;
            self.show_shared();
            if stepped {
                vmcb.dr6 = access.dr6 | if access.trap { DEBUG_STEP } else { 0 };
                own = access.trap;
                access.finish(self);
            }
        }
        if self.nmis.is_blocked() {
            count(EXIT_NMI_END);
            if stepped {
                vmcb.dr6 = self.dr6;
                self.nmis.on_step_done();
            } else {
                vmcb.rflags &= !FLAG_TRAP;
                self.nmis.on_step_fault();
            }
        }
        if own {
            self.reflect(vector);
        }
    }

    /// A write of a guarded register.
    fn on_register(&mut self) {
        count(EXIT_MSR);
        let vmcb = self.vmcb();
        let register = self.registers.rcx as u32;
        let value = self.registers.rdx << 32 | vmcb.rax & 0xffff_ffff;
        const LONG_MODE: u64 = 1 << 8 | 1 << 10;
        let same = match register {
            machine::EFER => {
                let keep = EFER_SVME | LONG_MODE;
                let same = value & keep == vmcb.efer & keep;
                vmcb.efer = value & !keep | vmcb.efer & keep;
                same
            }
            // SAFETY: Linux can write it, so it exists.
            _ => unsafe { svm::rdmsr(register) == value },
        };
        if !same {
            let task = names::current(self);
            machine::report(format_args!(
                "wall: write of MSR {register:#x} from CPU {}, rip {:#x}, task {}: {value:#x}",
                self.index,
                vmcb.rip,
                Or(task)
            ));
        }
        vmcb.rip += WRMSR_BYTES;
    }

    fn on_call(&mut self) {
        let vmcb = self.vmcb();
        let cokernels = self.index == entry().cokernel_cpu;
        if vmcb.cpl != 0 {
            return self.give(exception(INVALID_OPCODE, 0));
        }
        match vmcb.rax {
            CALL_SEAL => {
                self.sealed = true;
                if OPEN.swap(false, Relaxed) {
                    iommu::start();
                }
                self.show_shared();
            }
            CALL_OPEN => {
                self.sealed = false;
                self.show_shared();
                if !OPEN.swap(true, Relaxed) {
                    iommu::stop();
                    let task = names::current(self);
                    let line = Line::new(format_args!(
                        "wall: opened for the unload from CPU {}, task {}",
                        self.index,
                        Or(task)
                    ));
                    machine::write(EVENT_NOTE, 0, line.bytes());
                }
            }
            CALL_START if cokernels => trip::start(),
            CALL_STOP => trip::stop(cokernels),
            CALL_CHECK_TICK => trip::look(),
            CALL_LEAVE if !self.sealed && vmcb.rip < COKERNEL_BASE => launch::give_back(self),
            _ => return self.give(exception(INVALID_OPCODE, 0)),
        }
        count(EXIT_CALL);
        vmcb.rax = 0;
        vmcb.rip += VMMCALL_BYTES;
    }

    /// Three faults at once: the machine would start anew, and so it does.
    fn on_shutdown(&mut self) {
        const RESET: u16 = 0xcf9;
        machine::write(EVENT_NOTE, 0, b"Linux has shut down a CPU: the machine starts anew");
        machine::last_words();
        // SAFETY: the chipset's reset register; nothing runs after it. Else the processor itself shuts down.
        unsafe {
            crate::arch::x86_64::out8(RESET, 0x02);
            crate::arch::x86_64::out8(RESET, 0x06);
            svm::halt_forever()
        }
    }
}

/// A task, or that it is not known.
pub struct Or(pub Option<names::Task>);

impl core::fmt::Display for Or {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.0 {
            Some(task) => task.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

/// A CPU in the host, for ever: on its stack, after [`launch::launch`].
pub extern "C" fn run() -> ! {
    let index = entry().cpu as usize;
    launch::enter_host();
    loop {
        // SAFETY: this CPU, and no reference is kept.
        let cpu = unsafe { machine::cpu(index) }.as_mut().expect("made at the launch");
        cpu.enter();
        cpu.exit();
    }
}
