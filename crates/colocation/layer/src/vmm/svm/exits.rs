//! Linux's guest on one CPU: its entries, and what each exit means.

use super::cpu::{self, Cpu};
use super::entry::{count, entry};
use super::log;
use super::names::{self, Or};
use super::permissions;
use super::vmcb::*;
use super::{iommu, launch, park, trip, wall};
use crate::arch::x86_64::{self as arch, svm};
use crate::line::Line;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::COKERNEL_BASE;
use kyozon_abi::vmm::*;

const WRMSR_BYTES: u64 = 2;
const VMMCALL_BYTES: u64 = 3;

/// Whether the wall is open: its opening is reported once.
static OPEN: AtomicBool = AtomicBool::new(true);

impl Cpu {
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
        let block = self.block();
        // SAFETY: Linux's tables do not map the reserve, or Linux is in the middle of a launch; GIF is 0 since then.
        unsafe { svm::run_guest(&mut self.registers, block) };
        vmcb.tlb_control = 0;
        vmcb.event_inj = 0;
    }

    // On the way of every tick: a call costs a dozen saved registers.
    #[inline(always)]
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
                log::report(format_args!(
                    "wall: SVM instruction from CPU {}, rip {:#x}, task {}",
                    self.index,
                    vmcb.rip,
                    Or(task)
                ));
                self.give(exception(INVALID_OPCODE, 0));
            }
            VMEXIT_INIT => {
                count(EXIT_INIT);
                log::report(format_args!("wall: INIT to CPU {}", self.index));
                // In the host an INIT becomes an exception, which does nothing: see `launch`.
                // SAFETY: the hypervisor's tables are live.
                unsafe { svm::take_nmi() };
            }
            VMEXIT_SHUTDOWN => self.on_shutdown(),
            code @ VMEXIT_EXCEPTION..VMEXIT_NMI => self.on_exception(code - VMEXIT_EXCEPTION),
            code => log::failed(format_args!(
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

    /// Linux gets the exception that caused the exit, as it would without a hypervisor.
    fn reflect(&mut self, vector: u64) {
        let vmcb = self.vmcb();
        if vector == PAGE_FAULT {
            vmcb.cr2 = vmcb.exit_info_2;
        }
        self.give(exception(vector, vmcb.exit_info_1 & 0xffff_ffff));
    }

    /// An exception exits only while the guest is single-stepped.
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
                wall::finish(access, self);
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

    /// Linux writes to a guarded register.
    fn on_register(&mut self) {
        count(EXIT_MSR);
        let vmcb = self.vmcb();
        let register = self.registers.rcx as u32;
        let value = self.registers.rdx << 32 | vmcb.rax & 0xffff_ffff;
        const LONG_MODE: u64 = 1 << 8 | 1 << 10;
        let same = match register {
            permissions::EFER => {
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
            log::report(format_args!(
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
                    log::write(EVENT_NOTE, 0, line.bytes());
                }
            }
            CALL_START if cokernels => trip::start(),
            CALL_STOP => trip::stop(cokernels),
            CALL_CHECK_TICK => trip::check_tick(),
            CALL_LEAVE if !self.sealed && vmcb.rip < COKERNEL_BASE => launch::give_back(self),
            _ => return self.give(exception(INVALID_OPCODE, 0)),
        }
        count(EXIT_CALL);
        vmcb.rax = 0;
        vmcb.rip += VMMCALL_BYTES;
    }

    /// A triple fault: without a hypervisor the machine would reset, and so it does.
    fn on_shutdown(&mut self) {
        const RESET: u16 = 0xcf9;
        log::write(EVENT_NOTE, 0, b"Linux has shut down a CPU: the machine resets");
        log::drain_serial();
        // SAFETY: the chipset's reset register; no code runs after the reset. If there is none, this CPU halts.
        unsafe {
            arch::out8(RESET, 0x02);
            arch::out8(RESET, 0x06);
            svm::halt_forever()
        }
    }
}

/// Runs this CPU in the host for ever, on its stack, after [`launch::launch`].
#[no_mangle]
extern "C" fn hypervisor_run() -> ! {
    let index = entry().cpu as usize;
    launch::enter_host();
    loop {
        // SAFETY: this CPU, and no reference is kept.
        let cpu = unsafe { cpu::of(index) }.as_mut().expect("made at the launch");
        cpu.enter();
        cpu.exit();
    }
}
