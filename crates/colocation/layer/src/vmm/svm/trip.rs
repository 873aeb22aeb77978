//! The cokernel's trips: its guest runs from one tick to the end of its work, on its own CPU.
//!
//! What the layer in that guest knows of a trip is the same as beside Linux without isolation; what the module and the
//! trampoline do there is done here.

use super::check::State;
use super::cpu::Cpu;
use super::iommu;
use super::launch::{data_segment, CODE};
use super::machine::{self, at, cokernel, count, entry, lies_in, list, status, tables, SILENT};
use super::park;
use super::vmcb::*;
use crate::arch::x86_64::{self as arch, svm, svm::Registers};
use crate::frames::Frames;
use crate::hpet::Hpet;
use crate::line;
use crate::schedule::{Armed, Counter, Rates};
use crate::ticks::Ticks;
use crate::vmm::blocked::Nmis;
use crate::vmm::stay::Stay;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use kyozon_abi::device::{STATE_RUNNING, STATE_STOPPED};
use kyozon_abi::events::{CheckStatus, EVENT_FAULT, EVENT_WALL};
use kyozon_abi::layer::*;
use kyozon_abi::vmm::*;

const COKERNEL_ASID: u32 = 2;
const VMMCALL_BYTES: u64 = 3;
/// The trampoline's call at the end of a trip may have an ENDBR before it.
const EXIT_BYTES: u64 = 8;
/// How long a trip on another CPU is waited for.
const LAST_TRIP_US: u64 = 20_000;
/// A layer that works ends every trip sooner than that; one that was destroyed has it twice ([`Stay`]).
const LAYER_LIMIT_MS: u64 = 200;
/// A tick that comes within this part of its period leaves hardly any time for another NMI to fall together with it.
const PROMPT: u64 = 16;
/// Linux is asked at most that often.
const ASK_MS: u64 = 10;
/// So late is no tick by itself.
const LATE_MS: i64 = 150;
/// The trampoline's task state segment in its descriptor table, and its bytes.
const TSS_SELECTOR: u16 = 12 * 8;
const TSS_LIMIT: u32 = 0x67;
const GDT_LIMIT: u32 = 16 * 8 - 1;
const IDT_LIMIT: u32 = 4095;

const CR0_TS: u64 = 1 << 3;
const CR4_CET: u64 = 1 << 23;
const EFER_SCE: u64 = 1;

/// Whether a trip is on its way.
static INSIDE: AtomicBool = AtomicBool::new(false);

/// The cokernel's guest, and its timer.
pub struct Cokernel {
    block: u64,
    registers: Registers,
    nmis: Nmis,
    ticks: Option<Ticks>,
    /// NMIs of ours that may still be on their way, of this trip and of the one before.
    swallow: u32,
    overdue: u32,
    /// When a timer of 32 bits interrupts once more.
    wrap_tsc: Option<u64>,
    /// Whether an NMI of Linux's may have fallen together with one of the tick's; and when it was last asked in vain.
    doubt: bool,
    asked_tsc: u64,
}

impl Cokernel {
    /// None where memory ran out.
    pub fn make(frames: &mut impl Frames) -> Option<Self> {
        let e = entry();
        let block = frames.page()?;
        // SAFETY: a page of ours.
        let vmcb: &mut Vmcb = unsafe { &mut *at(block) };
        vmcb.intercept_1 = INTERCEPT_NMI
            | INTERCEPT_INIT
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
            vmcb.efer = svm::rdmsr(machine::EFER) & !EFER_SCE | EFER_SVME;
            vmcb.pat = svm::rdmsr(0x277);
        }
        vmcb.cr0 = svm::cr0() | CR0_TS;
        vmcb.cr3 = e.guest_page_table;
        vmcb.cr4 = svm::cr4() & !(arch::CR4_PKE | CR4_CET);
        vmcb.dr6 = 0xffff_0ff0;
        vmcb.dr7 = 0x400;
        Some(Self {
            block,
            registers: Registers::default(),
            nmis: Nmis::new(),
            ticks: None,
            swallow: 0,
            overdue: 0,
            wrap_tsc: None,
            doubt: false,
            asked_tsc: 0,
        })
    }

    fn vmcb(&self) -> &'static mut Vmcb {
        // SAFETY: a page of the cokernel's CPU's.
        unsafe { &mut *at(self.block) }
    }

    /// Runs the guest until its trip ends. False where it did what it may not.
    fn round(&mut self) -> bool {
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
            let say = self.nmis.on_entry(vmcb.event_inj != 0 || vmcb.interrupt_shadow & 1 != 0);
            if say.inject {
                vmcb.event_inj = EVENT_VALID | EVENT_NMI | 2;
                stay.on_given(arch::tsc());
            }
            vmcb.intercept_1 &= !INTERCEPT_IRET;
            if say.intercept_iret {
                vmcb.intercept_1 |= INTERCEPT_IRET;
            }
            vmcb.intercept_exceptions = if say.step { !(1 << 2 | 1 << MACHINE_CHECK) } else { 0 };
            if say.step {
                vmcb.rflags |= FLAG_TRAP | FLAG_RESUME;
            }
            if say.exit_soon {
                park::send_nmi(e.cokernel_cpu);
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
            match vmcb.exit_code {
                VMEXIT_VMMCALL if vmcb.rip.wrapping_sub(e.guest_exit) < EXIT_BYTES => return true,
                VMEXIT_VMMCALL if vmcb.cpl == 0 => {
                    vmcb.rax = self.call(vmcb.rax);
                    vmcb.rip += VMMCALL_BYTES;
                }
                VMEXIT_NMI => {
                    // SAFETY: the hypervisor's tables are live.
                    unsafe { svm::take_nmi() };
                    let now = arch::tsc();
                    if !stay.on_nmi(now) {
                        return false;
                    }
                    self.watch_layer(now);
                    self.nmis.want();
                }
                VMEXIT_IRET => self.nmis.on_iret(),
                code @ VMEXIT_EXCEPTION..VMEXIT_NMI if say.step => {
                    let vector = code - VMEXIT_EXCEPTION;
                    if vector == DEBUG && vmcb.dr6 & DEBUG_STEP != 0 {
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
                _ => return false,
            }
        }
    }

    /// The layer has something to do about its budget; where it does not come to that, there will be one more NMI, and
    /// another after that. The tick's comparator is free as long as the trip lasts; where it is the guard too, it is free
    /// once that was due: at every NMI the layer arms it anew.
    fn watch_layer(&mut self, now: u64) {
        let Some(ticks) = &mut self.ticks else { return };
        // SAFETY: a field of the trip; the layer does not run meanwhile.
        let guard = unsafe { (&raw const (*machine::trip()).guard_tsc).read_volatile() };
        if ticks.timer.has_own_guard() || (now.wrapping_sub(guard) as i64) >= 0 {
            let at = ticks.timer.now().wrapping_add(ticks.counts(LAYER_LIMIT_MS * 1000 + 1000));
            ticks.timer.set_tick(at);
        }
    }

    /// Two NMIs that come at once are one. Where the tick's was late, another may have been in it: Linux, which looks at all
    /// its sources at each, gets one that nobody needs, now and then.
    fn ask(&mut self, cpu: &mut Cpu) {
        let now = arch::tsc();
        if self.doubt && now.wrapping_sub(self.asked_tsc) > ASK_MS * entry().tsc_khz {
            (self.doubt, self.asked_tsc) = (false, now);
            cpu.give_nmi_in_doubt();
        }
    }

    /// What the layer asks for.
    fn call(&mut self, number: u64) -> u64 {
        let e = entry();
        let (first, second) = (self.registers.rdi, self.registers.rsi);
        // SAFETY: the page that the layer shares with us; it does not run meanwhile.
        let mailbox = unsafe { &*at::<Mailbox>(e.mailbox) };
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
                machine::write(mailbox.kind, mailbox.code, text);
                0
            }
            CALL_PUBLISH => {
                // SAFETY: integers only, in the size of a status.
                let check = unsafe { (&raw const mailbox.check).cast::<CheckStatus>().read() };
                machine::events().publish(first as usize, &check);
                0
            }
            _ => u64::MAX,
        }
    }

    /// Notes when NMIs will come that no trip begins with.
    fn armed(&mut self, armed: Armed) {
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

/// An NMI on the cokernel's CPU: false where it is Linux's.
pub fn on_nmi(cpu: &mut Cpu) -> bool {
    let now = arch::tsc();
    // SAFETY: the cokernel's CPU, outside of any trip.
    let (Some(cokernel), trip) = (unsafe { cokernel() }.as_mut(), machine::trip()) else {
        return false;
    };
    let Some(ticks) = &cokernel.ticks else { return false };
    // SAFETY: no trip is on its way.
    let due = !SILENT.load(SeqCst) && ticks.is_due(unsafe { &*trip }, now);
    let slack = ticks.slack_tsc;
    if due {
        // SAFETY: no trip is on its way.
        let (scheduled, period) = unsafe { ((*trip).next_tsc, (*trip).period_tsc) };
        cokernel.doubt |= now.wrapping_sub(scheduled) as i64 > (period / PROMPT) as i64;
        count(EXIT_TICK);
        INSIDE.store(true, SeqCst);
        run(cokernel, cpu, trip, now);
        INSIDE.store(false, SeqCst);
        cokernel.ask(cpu);
        return true;
    }
    let ours = if cokernel.overdue > 0 {
        cokernel.overdue -= 1;
        true
    } else if cokernel.swallow > 0 {
        cokernel.swallow -= 1;
        true
    } else {
        cokernel
            .wrap_tsc
            .is_some_and(|wrap| (now.wrapping_add(slack).wrapping_sub(wrap) as i64) >= 0)
    };
    if ours {
        count(EXIT_TICK);
        cokernel.doubt = true;
    }
    ours
}

/// `trip` is a pointer: while its guest runs, the layer has the other end.
fn run(cokernel: &mut Cokernel, cpu: &mut Cpu, trip: *mut Trip, now: u64) {
    // SAFETY: the guest does not run yet.
    begin(cokernel, unsafe { &mut *trip }, now);
    let before = (entry().check != 0).then(|| State::take(cpu));
    // SAFETY: Linux's block and the cokernel's.
    unsafe {
        svm::save(cpu.block());
        svm::load(cokernel.block);
    }
    let mut good = cokernel.round();
    // SAFETY: a field of the trip, between two rounds.
    while good && unsafe { (&raw const (*trip).result).read_volatile() } == TRIP_PARK {
        park::park(cpu.index);
        // SAFETY: as above.
        unsafe { (&raw mut (*trip).result).write_volatile(TRIP_IDLE) };
        good = cokernel.round();
    }
    // SAFETY: Linux's block.
    unsafe { svm::load(cpu.block()) };
    if let Some(before) = before {
        differ(before.differences(&State::take(cpu)));
    }
    park::release();
    // SAFETY: the guest does not run any more.
    finish(cokernel, cpu, unsafe { &mut *trip }, now, good);
}

fn begin(cokernel: &mut Cokernel, trip: &mut Trip, now: u64) {
    let Some(ticks) = &mut cokernel.ticks else { return };
    let due = trip.next_tsc;
    ticks.begin(trip, now);
    cokernel.overdue = cokernel.swallow;
    cokernel.swallow = u32::from((now.wrapping_sub(due) as i64) < ticks.slack_tsc as i64);
    trip.stale = cokernel.overdue + cokernel.swallow;
    if ticks.needs_guard(trip) {
        guard(ticks, trip, now);
    }
}

/// Arms the guard for a trip that begins too late for the one that stands; and looks whether somebody is to blame.
fn guard(ticks: &mut Ticks, trip: &mut Trip, now: u64) {
    if !ticks.timer.is_as_set() {
        machine::report(format_args!("wall: the tick's timer was changed; it is set anew"));
        ticks.timer.set_up();
        ticks.timer.enable();
    }
    trip.stale += u32::from(ticks.guard_may_have_come(trip));
    trip.guard_tsc = now + (trip.deadline_tsc - now).min(trip.period_tsc);
    let at = ticks.timer.now().wrapping_add(ticks.watch());
    ticks.timer.set_guard(at);
}

fn finish(cokernel: &mut Cokernel, cpu: &mut Cpu, trip: &mut Trip, now: u64, good: bool) {
    if trip.machine_check != 0 {
        trip.machine_check = 0;
        cpu.give(exception(MACHINE_CHECK, 0));
    }
    // Those that come before the layer listens are the guard's.
    trip.in_transit = 0;
    if trip.foreign != 0 {
        trip.foreign = 0;
        cpu.give_nmi_in_doubt();
    }
    let Some(ticks) = &mut cokernel.ticks else { return };
    ticks.count(trip);
    if !good || trip.result == TRIP_STOPPED {
        if !good {
            trip.fault = fault(cokernel);
        }
        return end(cokernel, trip);
    }
    let stop = arch::tsc() - now;
    let armed = ticks.next(trip, stop);
    let end = arch::tsc();
    if (end.wrapping_add(ticks.slack_tsc).wrapping_sub(trip.guard_tsc) as i64) >= 0 {
        cokernel.swallow += 1;
    }
    cokernel.armed(armed);
    account(cokernel, trip, end - now);
    iommu::look();
    machine::say();
}

fn differ(words: u64) {
    // SAFETY: a field of the status, which this CPU alone writes.
    let sum = unsafe { &raw mut (*status()).differences };
    // SAFETY: as above.
    unsafe { sum.write_volatile(sum.read_volatile() + words) };
}

/// What Linux may read of the last trip.
fn account(cokernel: &Cokernel, trip: &Trip, stop: u64) {
    let Some(ticks) = &cokernel.ticks else { return };
    let status = status();
    // SAFETY: the status, of which these fields are written by this CPU only.
    unsafe {
        (&raw mut (*status).ticks).write_volatile(ticks.ticks);
        (&raw mut (*status).missed).write_volatile(ticks.missed);
        (&raw mut (*status).overruns).write_volatile(ticks.overruns);
        (&raw mut (*status).due_tsc).write_volatile(trip.next_tsc);
        let longest = &raw mut (*status).longest_tsc;
        longest.write_volatile(longest.read_volatile().max(stop));
        let slot = &raw mut (*status).histogram[(stop | 1).ilog2() as usize];
        slot.write_volatile(slot.read_volatile() + 1);
    }
}

/// Why the guest was ended, in the layer's words.
fn fault(cokernel: &Cokernel) -> Fault {
    let (v, r) = (cokernel.vmcb(), &cokernel.registers);
    Fault {
        reason: match v.exit_code {
            VMEXIT_NMI => FAULT_RUNAWAY,
            _ if svm::is_hosts(v.rip, v.cr3) => FAULT_PROCESSOR,
            _ => FAULT_WALL,
        },
        reserved: 0,
        cr2: v.exit_info_2,
        cr3: v.cr3,
        frame: Frame {
            r15: r.r15,
            r14: r.r14,
            r13: r.r13,
            r12: r.r12,
            rbp: r.rbp,
            rbx: r.rbx,
            r11: r.r11,
            r10: r.r10,
            r9: r.r9,
            r8: r.r8,
            rax: v.rax,
            rcx: r.rcx,
            rdx: r.rdx,
            rsi: r.rsi,
            rdi: r.rdi,
            vector: v.exit_code,
            error: v.exit_info_1,
            rip: v.rip,
            cs: v.cs.selector.into(),
            rflags: v.rflags,
            rsp: v.rsp,
            ss: v.ss.selector.into(),
        },
    }
}

/// The cokernel is stopped for good.
fn end(cokernel: &mut Cokernel, trip: &Trip) {
    SILENT.store(true, SeqCst);
    if let Some(ticks) = &mut cokernel.ticks {
        ticks.timer.disable();
    }
    cokernel.swallow = 2;
    account(cokernel, trip, arch::tsc() - trip.event.entered_tsc);
    // SAFETY: the status; the state is written last.
    unsafe {
        (&raw mut (*status()).fault).write_volatile(trip.fault);
        (&raw mut (*status()).state).write_volatile(STATE_STOPPED);
    }
    machine::write(
        EVENT_FAULT,
        trip.fault.frame.vector as u32,
        line::of_fault(&trip.fault).bytes(),
    );
}

/// Tells of ticks that do not come: the cokernel's CPU may have been taken away. From any CPU.
pub fn look() {
    let e = entry();
    // SAFETY: a field of the status, which the cokernel's CPU writes.
    let due = unsafe { (&raw const (*status()).due_tsc).read_volatile() };
    let late = arch::tsc().wrapping_sub(due) as i64 / e.tsc_khz.max(1) as i64;
    if !SILENT.load(SeqCst) && !INSIDE.load(SeqCst) && late > LATE_MS {
        machine::report(format_args!("wall: no tick for {late} ms, CPU {}", e.cokernel_cpu));
    }
}

fn timer() -> Hpet {
    let t = &entry().timer;
    // SAFETY: the module has claimed it; the window maps it.
    unsafe { Hpet::new(at::<u8>(t.registers) as u64, t.config, t.guard, t.message) }
}

/// Ticks from here on. On the cokernel's CPU.
pub fn start() {
    let e = entry();
    // SAFETY: as said; no trip is on its way.
    let (Some(cokernel), trip) = (unsafe { cokernel() }.as_mut(), unsafe { &mut *machine::trip() })
    else {
        return;
    };
    let rates = Rates { period_fs: e.timer.period_fs, tsc_khz: e.tsc_khz };
    let mut ticks = Ticks::new(timer(), &rates, e.tick_hz, e.budget_us, trip);
    SILENT.store(false, SeqCst);
    cokernel.swallow = 1;
    let armed = ticks.start(trip);
    cokernel.ticks = Some(ticks);
    cokernel.armed(armed);
    // SAFETY: the status.
    unsafe {
        (&raw mut (*status()).due_tsc).write_volatile(trip.next_tsc);
        (&raw mut (*status()).state).write_volatile(STATE_RUNNING);
    }
}

/// No tick from here on, and no trip on its way when this returns, as far as can be waited for.
pub fn stop(own: bool) {
    SILENT.store(true, SeqCst);
    timer().disable();
    let end = arch::tsc() + LAST_TRIP_US * entry().tsc_khz / 1000;
    while !own && INSIDE.load(SeqCst) && arch::tsc() < end {
        core::hint::spin_loop();
    }
    // The end of that trip may have armed the timer, but has not switched it on.
    machine::last_words();
    if own {
        // SAFETY: the cokernel's CPU, outside of any trip.
        if let Some(cokernel) = unsafe { cokernel() } {
            cokernel.swallow = 2;
        }
    }
}
