//! Linux's guest on one CPU: its entries, and what each exit means.

use super::cpu::{self, Cpu};
use super::entry::{count, entry};
use super::log;
use super::names::{self, Or};
use super::vmcb::*;
use super::{apic, controls, launch, park, trip, wall, watch};
use crate::arch::x86_64::{self as arch, svm};
use crate::vmm::ports::{serial, Access, Control};
use crate::vmm::registers::{self, efer, Write};
use core::sync::atomic::Ordering::SeqCst;
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::WRITE_REGISTER;
use kyozon_abi::vmm::*;

/// RDMSR and WRMSR.
const MSR_BYTES: u64 = 2;
const INVD_BYTES: u64 = 2;

impl Cpu {
    fn enter(&mut self) {
        let vmcb = self.vmcb();
        if svm::machine_checks(self.index) != 0 {
            self.event.get_or_insert(exception(MACHINE_CHECK, 0));
        }
        if self.event.is_some() && self.shows_watched() {
            // The event's handler would run with a watched page writable.
            self.end_step();
        }
        let changed = watch::changed();
        if self.flushed != changed {
            self.flushed = changed;
            // The view is older than the tables.
            self.end_step();
            vmcb.tlb_control = FLUSH_ALL;
            controls::watch(vmcb);
        }
        vmcb.event_inj = self.event.take().unwrap_or(0);
        let busy = vmcb.event_inj != 0 || self.access.is_some() || vmcb.interrupt_shadow & 1 != 0;
        let mut say = self.nmis.on_entry(busy);
        if say.inject {
            if self.announce_nmi() {
                vmcb.event_inj = EVENT_VALID | EVENT_NMI | NMI;
            } else {
                say = self.nmis.forget();
            }
        }
        vmcb.intercept_1 &= !INTERCEPT_IRET;
        if say.intercept_iret {
            vmcb.intercept_1 |= INTERCEPT_IRET;
        }
        if say.step {
            vmcb.rflags |= FLAG_TRAP | FLAG_RESUME;
        }
        vmcb.intercept_1 &= !INTERCEPT_UNSTEPPED_1;
        vmcb.intercept_2 &= !INTERCEPT_UNSTEPPED_2;
        if self.access.is_some() {
            vmcb.intercept_1 |= INTERCEPT_UNSTEPPED_1;
            vmcb.intercept_2 |= INTERCEPT_UNSTEPPED_2;
        }
        vmcb.intercept_exceptions = match say.step || self.access.is_some() {
            true => !(1 << 2 | 1 << MACHINE_CHECK),
            false => 0,
        };
        if say.exit_soon && self.access.is_none() {
            self.woken = true;
            apic::send_nmi(self.index);
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
        if self.access.is_some() {
            self.leave_step();
        }
        match vmcb.exit_code {
            VMEXIT_NMI => return self.on_nmi(),
            VMEXIT_NESTED_FAULT => wall::on_fault(self),
            VMEXIT_IRET => {
                count(EXIT_NMI_END);
                self.dr6 = vmcb.dr6;
                vmcb.dr6 &= !DEBUG_CAUSES;
                self.nmis.on_iret();
            }
            VMEXIT_MSR => self.on_register(),
            VMEXIT_VMMCALL => self.on_call(),
            VMEXIT_VMRUN..=VMEXIT_SKINIT => {
                count(EXIT_SVM);
                self.refuse(format_args!("wall: SVM instruction from"));
                self.give(exception(INVALID_OPCODE, 0));
            }
            // It ended a step, and runs again.
            VMEXIT_SOFTWARE_INTERRUPT | VMEXIT_HLT | VMEXIT_ICEBP => {}
            VMEXIT_MONITOR..=VMEXIT_MWAIT_ARMED => {}
            VMEXIT_INIT => park::take_init(self.index),
            VMEXIT_SHUTDOWN => self.on_shutdown(),
            code @ VMEXIT_EXCEPTION..VMEXIT_NMI => self.on_exception(code - VMEXIT_EXCEPTION),
            code => self.on_other(code),
        }
        trip::watch(self.index);
    }

    /// An exit during a step. Only one that the stepped instruction causes itself, by another access, leaves the step
    /// open; exceptions see to it themselves. Whatever else the guest runs now, it does not run it in the view.
    #[cold]
    fn leave_step(&mut self) {
        let vmcb = self.vmcb();
        let same = self.access.as_ref().is_some_and(|access| access.rip == vmcb.rip);
        match vmcb.exit_code {
            VMEXIT_NESTED_FAULT if same => {}
            VMEXIT_EXCEPTION..VMEXIT_NMI => {}
            _ => drop(self.end_step()),
        }
    }

    fn on_nmi(&mut self) {
        // SAFETY: the hypervisor's tables are live.
        unsafe { svm::take_nmi() };
        if self.index == entry().cokernel_cpu && trip::on_nmi(self) {
            return;
        }
        self.pass_nmi();
    }

    /// An NMI that begins no trip. After [`Cpu::woken`] the processor may have merged it with this CPU's own.
    #[cold]
    fn pass_nmi(&mut self) {
        let woken = core::mem::take(&mut self.woken);
        // It may have merged with one of Linux. While ticks come, that is a rare loss. After the last one, Linux may
        // stop this CPU before a crash kernel starts.
        if park::stand(self.index) && !log::SILENT.load(SeqCst) {
            return;
        }
        let now = arch::tsc();
        let cokernels = self.index == entry().cokernel_cpu;
        if woken || trip::may_have_sent(now, cokernels) || park::was_recent(now) {
            self.give_nmi_in_doubt();
        } else {
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
        let stepped = vector == DEBUG && is_step(vmcb.dr6);
        let mut own = !stepped;
        if let Some(access) = self.end_step() {
            // Another instruction than the one that faulted, which a step does not fit: it runs again, without.
            let is_traps = matches!(vector, BREAKPOINT | OVERFLOW);
            if is_traps || vector == INVALID_OPCODE && access.syscalls {
                return;
            }
            if stepped {
                // If Linux steps over branches, its own trap comes at the next one.
                let trap = access.trap && !access.branches;
                vmcb.dr6 = access.dr6 | if trap { DEBUG_STEP } else { 0 };
                own = trap;
                wall::finish(access, self);
            }
        }
        if self.nmis.is_stepping() {
            count(EXIT_NMI_END);
            if stepped {
                vmcb.dr6 = self.dr6;
                self.nmis.on_step_done();
            } else {
                vmcb.dr6 |= self.dr6;
                vmcb.rflags &= !FLAG_TRAP;
                self.nmis.on_step_fault();
            }
        }
        if own {
            self.reflect(vector);
        }
    }

    /// Linux reads or writes a register: its write is guarded, or the register is not in the permission map.
    #[cold]
    fn on_register(&mut self) {
        count(EXIT_MSR);
        let vmcb = self.vmcb();
        let register = self.registers.rcx as u32;
        // The exit's information is 1 for a write. APM 2 15.11.
        if vmcb.exit_info_1 & 1 == 0 {
            let value = Some(register).filter(|r| registers::may_read(*r)).and_then(svm::try_rdmsr);
            let Some(value) = value else { return self.give(exception(GENERAL_PROTECTION, 0)) };
            (vmcb.rax, self.registers.rdx) = (value & 0xffff_ffff, value >> 32);
            vmcb.rip += MSR_BYTES;
            return;
        }
        let value = self.registers.rdx << 32 | vmcb.rax & 0xffff_ffff;
        let before = match register {
            registers::EFER => Some(vmcb.efer),
            _ => svm::try_rdmsr(register),
        };
        let is_news = registers::is_watched(register) && before != Some(value);
        if is_news && watch::is_busy() {
            // The guest tries again.
            return;
        }
        let verdict = match register {
            registers::EFER => {
                efer::write(value, vmcb.efer, vmcb.cr0, efer::bits(&svm::features()))
            }
            _ if registers::is_watched(register) => Write::Pass(value),
            _ => registers::write(register, value, before),
        };
        let verdict = match verdict {
            Write::Pass(value) if register == registers::EFER => {
                vmcb.efer = value;
                Write::Keep
            }
            // SAFETY: Linux may choose this value; what the hypervisor does is the same with any of them.
            Write::Pass(value) if unsafe { svm::try_wrmsr(register, value) } => Write::Keep,
            Write::Pass(_) => Write::Fault,
            other => other,
        };
        if verdict == Write::Keep && is_news {
            let before = [before.unwrap_or(0), 0];
            watch::register(self, WRITE_REGISTER, register, vmcb.rip, before, [value, 0]);
        }
        if verdict == Write::Fault {
            return self.give(exception(GENERAL_PROTECTION, 0));
        }
        if verdict == Write::Refuse {
            let task = names::current(self);
            log::report(format_args!(
                "wall: write of MSR {register:#x} from CPU {}, rip {:#x}, task {}: {value:#x}",
                self.index,
                vmcb.rip,
                Or(task)
            ));
        }
        vmcb.rip += MSR_BYTES;
    }

    #[cold]
    fn on_other(&mut self, code: u64) {
        match code {
            VMEXIT_INVD => self.on_invd(),
            VMEXIT_PORT => self.on_port(),
            VMEXIT_CR0 | VMEXIT_CR4 | VMEXIT_IDTR | VMEXIT_GDTR | VMEXIT_TR => {
                controls::begin(self);
            }
            // Some emulators store 32 bits of the code.
            _ if code as u32 == VMEXIT_INVALID as u32 => self.on_invalid(),
            _ => self.end(code),
        }
    }

    /// Linux accesses a port that can put the machine to sleep, or the cokernel's serial port.
    fn on_port(&mut self) {
        count(EXIT_OTHER);
        let vmcb = self.vmcb();
        let access = Access::of(vmcb.exit_info_1);
        if access.string {
            return self.give(exception(GENERAL_PROTECTION, 0));
        }
        let Access { port, bytes, .. } = access;
        if access.touches(&serial(entry().serial_port)) {
            let what = if access.input { "read of" } else { "write to" };
            self.refuse(format_args!("wall: {what} port {port:#x} from"));
            let vmcb = self.vmcb();
            if access.input {
                vmcb.rax = access.absent(vmcb.rax);
            }
            vmcb.rip = vmcb.exit_info_2;
            return;
        }
        let (value, entry) = (vmcb.rax as u32, entry());
        let control = |i: usize| Control { port: entry.sleep_ports[i], off: entry.off_types[i] };
        let passed = access.awake(value, [control(0), control(1)]);
        // SAFETY: Linux chose the port and the value, and could have used them itself but for the sleep.
        unsafe {
            if access.input {
                vmcb.rax = svm::input(port, bytes, vmcb.rax);
            } else {
                svm::output(port, bytes, passed);
            }
        }
        if !access.input && passed != value {
            let task = names::current(self);
            log::report(format_args!(
                "wall: sleep from CPU {}, rip {:#x}, task {}: {value:#x} to port {port:#x}",
                self.index,
                vmcb.rip,
                Or(task)
            ));
        }
        // The address behind the instruction. APM 2 15.10.2.
        vmcb.rip = vmcb.exit_info_2;
    }

    /// INVD would discard what the cokernel and the hypervisor have written.
    fn on_invd(&mut self) {
        self.refuse(format_args!("wall: INVD from"));
        svm::write_back();
        self.vmcb().rip += INVD_BYTES;
    }

    /// VMRUN has refused Linux's state. That cannot happen on a processor: it checks what Linux writes itself, and the
    /// hypervisor checks what Linux cannot. An emulator may check at VMRUN only. QEMU also exits like this, with a
    /// valid state, where a processor raises a general protection fault (docs/emulators.md).
    fn on_invalid(&mut self) {
        let vmcb = self.vmcb();
        // An instruction that has run, or an exception that was delivered, has cleared the flag.
        if svm::is_hosts(vmcb.rip, vmcb.cr3) || vmcb.rflags & FLAG_RESUME != 0 {
            self.end(VMEXIT_INVALID);
        }
        self.refuse(format_args!("wall: invalid control register from"));
        vmcb.rflags |= FLAG_RESUME;
        self.give(exception(GENERAL_PROTECTION, 0));
    }

    /// Linux cannot continue on this CPU. If it is the cokernel's, the cokernel has stopped.
    fn end(&mut self, code: u64) -> ! {
        let vmcb = self.vmcb();
        log::report_last(format_args!(
            "wall: Linux has lost CPU {}: exit {code:#x}: {:#x} {:#x}, rip {:#x}, cr0 {:#x}, cr4 {:#x}, efer {:#x}",
            self.index,
            vmcb.exit_info_1,
            vmcb.exit_info_2,
            vmcb.rip,
            vmcb.cr0,
            vmcb.cr4,
            vmcb.efer
        ));
        watch::give_up(self.index);
        if self.index == entry().cokernel_cpu {
            trip::on_lost_cpu(code, vmcb.rip);
        }
        // SAFETY: no CPU waits for this one without a limit.
        unsafe { svm::halt_forever() }
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
