//! The cokernel's guest: it runs from a tick to the end of the cokernel's work, on its own CPU.

use super::apic;
use super::entry::{at, entry, lies_in, list, status, trip};
use super::log;
use super::memory::POOL;
use super::park;
use super::segments::{data_segment, CODE};
use super::tables::tables;
use super::trip as trips;
use super::trip_exit::{meaning, TripExit};
use super::vmcb::*;
use super::watch;
use crate::arch::x86_64::{self as arch, svm, svm::Registers};
use crate::frames::Frames;
use crate::owned::Owned;
use crate::reset;
use crate::schedule::{Armed, Counter};
use crate::ticks::Ticks;
use crate::vmm::blocked::Nmis;
use crate::vmm::registers;
use crate::vmm::stay::Stay;
use kyozon_abi::events::EVENT_WALL;
use kyozon_abi::layer::{LinuxRegisters, Range};
use kyozon_abi::task::RESET_ONLY;
use kyozon_abi::vmm::*;

const COKERNEL_ASID: u32 = 2;
/// The trampoline's call at the end of a trip may have an ENDBR before it.
const EXIT_BYTES: u64 = 8;
/// A working layer ends every trip sooner. A destroyed one gets this time twice ([`Stay`]).
const LAYER_LIMIT_MS: u64 = 200;
/// Time in which Linux may start its crash kernel.
const CRASH_MS: u64 = 2000;
/// The trampoline's task state segment in its descriptor table, and its bytes.
const TSS_SELECTOR: u16 = 12 * 8;
const TSS_LIMIT: u32 = 0x67;
const GDT_LIMIT: u32 = 16 * 8 - 1;
const IDT_LIMIT: u32 = 4095;

/// The cokernel's CPU owns it; the first CPU makes it.
static COKERNEL: Owned<Option<Cokernel>> = Owned::new(None);

/// The cokernel's guest, and its timer.
pub struct Cokernel {
    /// Physical address of the control block.
    pub block: u64,
    /// Physical address of Linux's control block on this CPU, which is complete during a trip.
    pub linux_block: u64,
    /// General registers.
    pub registers: Registers,
    nmis: Nmis,
    /// The timer, from the first tick on.
    pub ticks: Option<Ticks>,
    /// NMIs of this trip's tick and guard that may still arrive.
    pub swallow: u32,
    /// The same for the trip before.
    pub overdue: u32,
    /// Time-stamp counter at which a 32-bit timer wraps and interrupts once more.
    pub wrap_tsc: Option<u64>,
    /// Whether an NMI for Linux may have merged with one of the tick. Linux then gets an extra NMI.
    pub doubt: bool,
    /// Time-stamp counter at the last NMI that was late, or not due, or 0.
    pub irregular_tsc: u64,
    /// Time-stamp counter at Linux's last extra NMI.
    pub asked_tsc: u64,
    /// Time-stamp counter when Linux was asked to start its crash kernel.
    pub crash_tsc: Option<u64>,
}

impl Cokernel {
    /// Makes the guest. `None` if memory ran out.
    ///
    /// # Safety
    ///
    /// Called once, at the first launch, before there is a second CPU.
    pub unsafe fn make() -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe { *COKERNEL.get() = Some(Self::new()?) };
        Some(())
    }

    fn new() -> Option<Self> {
        let e = entry();
        let block = POOL.lock().page()?;
        // SAFETY: a page of the pool, which only this guest's block uses.
        let vmcb: &mut Vmcb = unsafe { &mut *at(block) };
        vmcb.intercept_1 = INTERCEPT_NMI
            | INTERCEPT_INIT
            | INTERCEPT_INVD
            | INTERCEPT_HLT
            | INTERCEPT_PORTS
            | INTERCEPT_MSRS
            | INTERCEPT_SHUTDOWN;
        vmcb.intercept_2 = INTERCEPT_SVM | INTERCEPT_REST;
        vmcb.iopm = tables().ports;
        vmcb.msrpm = tables().cokernel_registers;
        vmcb.asid = COKERNEL_ASID;
        vmcb.tlb_control = FLUSH_ALL;
        vmcb.virtual_interrupt = VIRTUAL_MASKING;
        vmcb.nested_control = 1;
        vmcb.nested_cr3 = tables().cokernel.root();
        vmcb.cs = CODE;
        vmcb.ds = data_segment(0);
        vmcb.es = data_segment(0);
        let table = |base, limit| Segment { base, limit, ..Segment::default() };
        vmcb.gdtr = table(e.guest_gdt, GDT_LIMIT);
        vmcb.idtr = table(e.guest_idt, IDT_LIMIT);
        vmcb.tr =
            Segment { selector: TSS_SELECTOR, attributes: 0x8b, ..table(e.guest_tss, TSS_LIMIT) };
        // SAFETY: these exist; on the first CPU, whose kernel mode is like that of all.
        unsafe {
            vmcb.efer = svm::rdmsr(registers::EFER) & !(EFER_SCE | arch::EFER_FFXSR) | EFER_SVME;
            vmcb.pat = svm::rdmsr(0x277);
            if svm::has_virtual_spec_ctrl() {
                vmcb.spec_ctrl = svm::rdmsr(registers::SPEC_CTRL);
            }
        }
        // What user mode may use of the vector registers: `arch::user_state`.
        vmcb.cr0 = (svm::cr0() | arch::CR0_TS) & !arch::CR0_EM;
        vmcb.cr3 = e.guest_page_table;
        let own = arch::CR4_PKE | arch::CR4_CET | arch::CR4_OSXSAVE | arch::CR4_TSD;
        vmcb.cr4 = (svm::cr4() | arch::CR4_OSFXSR) & !own;
        vmcb.dr6 = 0xffff_0ff0;
        vmcb.dr7 = 0x400;
        Some(Self {
            block,
            linux_block: 0,
            registers: Registers::default(),
            nmis: Nmis::new(),
            ticks: None,
            swallow: 0,
            overdue: 0,
            wrap_tsc: None,
            doubt: false,
            irregular_tsc: 0,
            asked_tsc: 0,
            crash_tsc: None,
        })
    }

    /// The control block.
    pub fn vmcb(&self) -> &'static mut Vmcb {
        // SAFETY: a page of the cokernel's CPU's.
        unsafe { &mut *at(self.block) }
    }

    /// Runs the guest until its trip ends. Returns false if the guest violated its limits.
    pub fn run(&mut self) -> bool {
        let e = entry();
        let vmcb = self.vmcb();
        vmcb.rip = e.guest_entry;
        vmcb.rsp = e.guest_stack;
        vmcb.rflags = 2;
        vmcb.cpl = 0;
        vmcb.cs = CODE;
        vmcb.ss = data_segment(svm::KERNEL_DATA);
        self.registers.rdi = e.guest_argument;
        self.registers.rsi = e.guest_trip;
        // A trip may have ended in the handler of an NMI.
        self.nmis = Nmis::new();
        let mut stay = Stay::new(arch::tsc(), LAYER_LIMIT_MS * e.tsc_khz);
        let mut event = 0;
        loop {
            vmcb.event_inj = event;
            event = 0;
            let entry = self.nmis.on_entry(vmcb.event_inj != 0 || vmcb.interrupt_shadow & 1 != 0);
            if entry.inject {
                vmcb.event_inj = EVENT_VALID | EVENT_NMI | NMI;
                stay.on_given(arch::tsc());
            }
            vmcb.intercept_1 &= !INTERCEPT_IRET;
            if entry.intercept_iret {
                vmcb.intercept_1 |= INTERCEPT_IRET;
            }
            vmcb.intercept_exceptions = if entry.step { !(1 << 2 | 1 << MACHINE_CHECK) } else { 0 };
            if entry.step {
                vmcb.rflags |= FLAG_TRAP | FLAG_RESUME;
            }
            if entry.exit_soon {
                apic::send_nmi(e.cokernel_cpu);
            }
            // SAFETY: its tables have its own memory, and Linux's for reading; GIF is 0.
            unsafe { svm::run_guest(&mut self.registers, self.block) };
            vmcb.tlb_control = 0;
            let cut_short = vmcb.exit_int_info;
            if cut_short & EVENT_VALID != 0 {
                match cut_short & EVENT_TYPE {
                    EVENT_NMI => self.nmis.on_not_delivered(),
                    0x400 => {}
                    _ => event = cut_short,
                }
            }
            let at_end = vmcb.rip.wrapping_sub(e.guest_exit) < EXIT_BYTES;
            match meaning(vmcb.exit_code, vmcb.cpl == 0, at_end, entry.step) {
                TripExit::End => return true,
                TripExit::Call => {
                    vmcb.rax = self.call(vmcb.rax);
                    vmcb.rip += VMMCALL_BYTES;
                }
                TripExit::Nmi => {
                    // SAFETY: the hypervisor's tables are live.
                    unsafe { svm::take_nmi() };
                    let now = arch::tsc();
                    trips::note_guard(now);
                    if !stay.on_nmi(now) {
                        return false;
                    }
                    self.watch_layer(now);
                    self.nmis.want();
                }
                TripExit::Iret => self.nmis.on_iret(),
                TripExit::Undefined => event = exception(INVALID_OPCODE, 0),
                TripExit::Init => park::take_init(e.cokernel_cpu),
                TripExit::Violation => return false,
                TripExit::Stepped(vector) => {
                    if vector == DEBUG && is_step(vmcb.dr6) {
                        vmcb.dr6 &= !DEBUG_STEP;
                        self.nmis.on_step_done();
                        continue;
                    }
                    vmcb.rflags &= !FLAG_TRAP;
                    self.nmis.on_step_fault();
                    if vector == PAGE_FAULT {
                        vmcb.cr2 = vmcb.exit_info_2;
                    }
                    event = exception(vector, vmcb.exit_info_1 & 0xffff_ffff);
                }
            }
        }
    }

    /// Arms an NMI in case the layer does not enforce its budget. The tick's comparator is free during a trip; if it is
    /// the guard too, it is free once the guard was due: the layer arms it again at every NMI.
    fn watch_layer(&mut self, now: u64) {
        let Some(ticks) = &mut self.ticks else { return };
        // SAFETY: a field of the trip; the layer does not run meanwhile.
        let guard = unsafe { (&raw const (*trip()).guard_tsc).read_volatile() };
        if ticks.timer.has_own_guard() || (now.wrapping_sub(guard) as i64) >= 0 {
            let at = ticks.timer.now().wrapping_add(ticks.counts(LAYER_LIMIT_MS * 1000 + 1000));
            ticks.timer.set_tick(at);
        }
    }

    /// Serves a call of the layer.
    fn call(&mut self, number: u64) -> u64 {
        let e = entry();
        let (first, second) = (self.registers.rdi, self.registers.rsi);
        // SAFETY: the page that the layer shares with us; it does not run meanwhile.
        let mailbox = unsafe { &mut *at::<Mailbox>(e.mailbox) };
        match number {
            CALL_WRITE => {
                if first % 8 != 0 || !lies_in(list(&e.ram, e.ram_count), first) {
                    return u64::MAX;
                }
                // SAFETY: a word of Linux's memory; the layer has made the other CPUs stand still.
                unsafe { at::<u64>(first).write_volatile(second) };
                0
            }
            CALL_REPORT if mailbox.kind != EVENT_WALL => {
                let text = &mailbox.text[..(mailbox.bytes as usize).min(MAILBOX_BYTES)];
                log::write(mailbox.kind, mailbox.code, text);
                0
            }
            CALL_PUBLISH => {
                log::events().publish(first as usize, &mailbox.status);
                0
            }
            CALL_RESET => self.reset(first),
            CALL_WATCH => {
                let range = Range { base: first, bytes: second };
                match watch::add(e.cokernel_cpu, range, self.registers.rdx) {
                    true => 0,
                    false => u64::MAX,
                }
            }
            CALL_WRITES => {
                watch::fetch(&mut mailbox.writes);
                0
            }
            CALL_REGISTERS if self.linux_block != 0 => {
                mailbox.registers = self.linux_registers();
                0
            }
            _ => u64::MAX,
        }
    }

    /// Asks Linux to start its crash kernel, and resets the machine if the ticks still come later, or if `how` says so.
    #[cold]
    fn reset(&mut self, how: u64) -> u64 {
        let now = arch::tsc();
        let asked = *self.crash_tsc.get_or_insert(now);
        log::flush_serial();
        if how == RESET_ONLY || now.wrapping_sub(asked) > CRASH_MS * entry().tsc_khz {
            reset::machine()
        }
        // SAFETY: a field of the status, which this CPU alone writes.
        unsafe { (&raw mut (*status()).crash).write_volatile(1) };
        RESET_WAITS
    }

    /// Linux's registers on this CPU. The processor switches all but the addresses of breakpoints, which neither the
    /// cokernel nor the hypervisor changes.
    fn linux_registers(&self) -> LinuxRegisters {
        // SAFETY: a control block of this CPU's, while its guest does not run.
        let linux: &Vmcb = unsafe { &*at(self.linux_block) };
        LinuxRegisters {
            cpu: 0,
            cr0: linux.cr0,
            cr4: linux.cr4,
            idt_base: linux.idtr.base,
            idt_limit: u64::from(linux.idtr.limit),
            gdt_base: linux.gdtr.base,
            gdt_limit: u64::from(linux.gdtr.limit),
            efer: linux.efer,
            star: linux.star,
            lstar: linux.lstar,
            cstar: linux.cstar,
            sfmask: linux.sfmask,
            sysenter_cs: linux.sysenter_cs,
            sysenter_esp: linux.sysenter_esp,
            sysenter_eip: linux.sysenter_eip,
            breakpoints: arch::breakpoints(),
            dr7: linux.dr7,
        }
    }

    /// Notes NMIs to come that will not begin a trip.
    pub fn armed(&mut self, armed: Armed) {
        let Some(ticks) = &mut self.ticks else { return };
        if armed.passed != 0 {
            self.swallow += 1;
        }
        let now = armed.at.wrapping_sub(armed.left);
        let end = armed.at.wrapping_add(ticks.watch());
        self.wrap_tsc =
            (end < now).then(|| armed.tsc.wrapping_add(ticks.to_tsc(now.wrapping_neg())));
    }
}

/// The cokernel.
///
/// # Safety
///
/// Only on the cokernel's CPU, which holds no other reference; or while no CPU is a guest.
pub unsafe fn cokernel() -> &'static mut Option<Cokernel> {
    // SAFETY: the caller's promise.
    unsafe { COKERNEL.get() }
}
