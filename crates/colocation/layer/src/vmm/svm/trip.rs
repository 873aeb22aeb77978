//! The cokernel's trips: its guest runs from a tick to the end of its work, on its own CPU.
//!
//! The layer in that guest sees the same trips as in mode none; this file does what the module and the trampoline do
//! there.

use super::check::State;
use super::cokernel::{cokernel, Cokernel};
use super::cpu::{casts_doubt, Cpu};
use super::entry::{at, count, entry, status};
use super::log::{self, SILENT};
use super::vmcb::*;
use super::{apic, entry, iommu, park};
use crate::arch::x86_64::{self as arch, svm};
use crate::hpet::{Hpet, TIMER_MESSAGE};
use crate::line;
use crate::schedule::{Counter, Rates};
use crate::ticks::Ticks;
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use kyozon_abi::device::{STATE_RUNNING, STATE_STOPPED};
use kyozon_abi::events::EVENT_FAULT;
use kyozon_abi::layer::*;
use kyozon_abi::vmm::*;

/// Maximum wait for a trip on another CPU.
const LAST_TRIP_US: u64 = 20_000;
/// A tick that comes within this fraction of its period leaves hardly any time for another NMI to merge with it.
const PROMPT: u64 = 16;
/// Minimum time between two extra NMIs for Linux.
const ASK_MS: u64 = 10;
/// A tick that is later than this is reported.
const LATE_MS: i64 = 150;
/// The same without a suspicion: the host of a virtual machine may stop a CPU for long.
const VERY_LATE_MS: i64 = 500;

/// Whether a trip is running.
static INSIDE: AtomicBool = AtomicBool::new(false);

/// Time-stamp counter when ticks were last found missing, or 0. An NMI was then sent in place of a tick.
static REVIVED_TSC: AtomicU64 = AtomicU64::new(0);
/// Whether the guard interrupts every CPU: see [`timer`].
static IS_GUARD_FOR_ALL: AtomicBool = AtomicBool::new(false);
/// Time-stamp counter when the guard may have interrupted last, or 0.
static GUARD_TSC: AtomicU64 = AtomicU64::new(0);

/// Handles an NMI on the cokernel's CPU. False if it is not the tick's.
pub fn on_nmi(cpu: &mut Cpu) -> bool {
    let now = arch::tsc();
    // SAFETY: the cokernel's CPU, outside of any trip.
    let (Some(cokernel), trip) = (unsafe { cokernel() }.as_mut(), entry::trip()) else {
        return false;
    };
    let Some(ticks) = &cokernel.ticks else { return false };
    // SAFETY: no trip is running.
    let due = ticks.is_due(unsafe { &*trip }, now);
    let slack = ticks.slack_tsc;
    // SAFETY: no trip is running.
    let scheduled = unsafe { (*trip).next_tsc };
    if due && enter() {
        // SAFETY: no other code uses the trip now.
        let period = unsafe { (*trip).period_tsc };
        if now.wrapping_sub(scheduled) as i64 > (period / PROMPT) as i64 {
            (cokernel.doubt, cokernel.irregular_tsc) = (true, now);
            restore_apic_id();
        }
        count(EXIT_TICK);
        cpu.woken = false;
        run(cokernel, cpu, trip, now);
        INSIDE.store(false, SeqCst);
        send_extra_nmi(cokernel, cpu);
        return true;
    }
    let ours = if cpu.woken {
        false
    } else if cokernel.overdue > 0 {
        cokernel.overdue -= 1;
        true
    } else if cokernel.swallow > 0 {
        cokernel.swallow -= 1;
        true
    } else {
        let wrapped = |wrap| (now.wrapping_add(slack).wrapping_sub(wrap) as i64) >= 0;
        // If it is due, the ticks were stopped: the timer may have sent it before.
        cokernel.wrap_tsc.is_some_and(wrapped) || due && casts_doubt(scheduled, now)
    };
    if !ours {
        return false;
    }
    (cokernel.doubt, cokernel.irregular_tsc) = (true, now);
    // It may be Linux's all the same, such as the one that stops this CPU before a crash kernel starts. While ticks
    // come, Linux gets an extra one after the next. After the last one Linux gets this.
    if SILENT.load(SeqCst) {
        return false;
    }
    count(EXIT_TICK);
    true
}

/// Begins a trip, unless the ticks are stopped.
///
/// This CPU writes INSIDE and then reads SILENT; [`stop`] on another CPU writes SILENT and then reads INSIDE. All four
/// accesses have one order, so at least one of the two reads the other's write: either there is no trip, or `stop`
/// waits for it.
#[inline(always)]
fn enter() -> bool {
    INSIDE.store(true, SeqCst);
    let runs = !SILENT.load(SeqCst);
    if !runs {
        INSIDE.store(false, SeqCst);
    }
    runs
}

/// Whether an NMI at `now` that no tick explains may be the timer's, or one sent in place of a tick, all the same.
/// `cokernels`: this is the cokernel's CPU.
pub fn may_have_sent(now: u64, cokernels: bool) -> bool {
    let irregular = if cokernels {
        // SAFETY: the cokernel's CPU, outside of any trip.
        unsafe { cokernel() }.as_ref().is_some_and(|c| casts_doubt(c.irregular_tsc, now))
    } else {
        IS_GUARD_FOR_ALL.load(Relaxed)
            && (casts_doubt(GUARD_TSC.load(Relaxed), now) || late(now) >= 0)
    };
    irregular || casts_doubt(REVIVED_TSC.load(Relaxed), now)
}

/// Notes that the guard may have interrupted.
pub fn note_guard(now: u64) {
    GUARD_TSC.store(now, Relaxed);
}

/// Two NMIs that come at once are merged. If the tick's was late, it may contain another one: Linux, which checks all
/// its sources at each NMI, then gets an extra one, at a limited rate. If this was the last trip, Linux gets one in any
/// case: no later one can make up for what the trip has taken. So it does if it is to start its crash kernel.
fn send_extra_nmi(cokernel: &mut Cokernel, cpu: &mut Cpu) {
    let now = arch::tsc();
    let asks = || now.wrapping_sub(cokernel.asked_tsc) > ASK_MS * entry().tsc_khz;
    let wants = cokernel.doubt || cokernel.crash_tsc.is_some();
    if SILENT.load(SeqCst) || wants && asks() {
        (cokernel.doubt, cokernel.asked_tsc) = (false, now);
        cpu.give_nmi_in_doubt();
    }
}

/// Runs a trip. `trip` is a pointer, since the layer also writes to it while the guest runs.
fn run(cokernel: &mut Cokernel, cpu: &mut Cpu, trip: *mut Trip, now: u64) {
    // SAFETY: the guest does not run yet.
    begin(cokernel, unsafe { &mut *trip }, now);
    let before = (entry().check != 0).then(|| State::take(cpu));
    // SAFETY: Linux's block and the cokernel's.
    unsafe {
        svm::save(cpu.block());
        svm::load(cokernel.block);
    }
    cokernel.linux_block = cpu.block();
    let mut good = cokernel.run();
    // SAFETY: a field of the trip, between two rounds.
    while good && unsafe { (&raw const (*trip).result).read_volatile() } == TRIP_PARK {
        park::park(cpu.index);
        // SAFETY: as above.
        unsafe { (&raw mut (*trip).result).write_volatile(TRIP_IDLE) };
        good = cokernel.run();
    }
    // SAFETY: Linux's block.
    unsafe { svm::load(cpu.block()) };
    if let Some(before) = before {
        count_differences(before.differences(&State::take(cpu)));
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

/// A late tick's message may have found no CPU: this NMI is then the guard's, or was sent in its place.
#[cold]
fn restore_apic_id() {
    let index = entry().cokernel_cpu;
    if let Some(id) = apic::restore_id(index) {
        log::report(format_args!(
            "wall: the APIC ID of CPU {index} was changed to {id:#x}; it is set back"
        ));
    }
}

/// Arms the guard for a trip that begins too late for the armed one, and reports a changed timer.
fn guard(ticks: &mut Ticks, trip: &mut Trip, now: u64) {
    if ticks.timer.has_own_guard() {
        note_guard(now);
        restore_apic_id();
    }
    if !ticks.timer.is_as_set() && !SILENT.load(SeqCst) {
        log::report(format_args!("wall: the tick's timer was changed; it is set anew"));
        ticks.timer.set_up();
        ticks.timer.enable();
        // `stop` on another CPU writes SILENT and then switches the timer off. The read of the timer returns after the
        // write above has reached it. If SILENT is still false then, the timer will be switched off after it was
        // switched on here; if not, it is switched off here.
        if ticks.timer.is_as_set() && SILENT.load(SeqCst) {
            ticks.timer.disable();
        }
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
    // An NMI that came before the layer's gates were ready was the guard's.
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
    iommu::check_log();
    log::feed_serial();
}

fn count_differences(words: u64) {
    // SAFETY: a field of the status, which this CPU alone writes.
    let sum = unsafe { &raw mut (*status()).differences };
    // SAFETY: as above.
    unsafe { sum.write_volatile(sum.read_volatile() + words) };
}

/// Updates the status page for Linux.
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

/// Why the guest was ended, as the layer would report it.
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
    log::write(EVENT_FAULT, trip.fault.frame.vector as u32, line::of_fault(&trip.fault).bytes());
}

/// The cokernel's CPU cannot run Linux any more after exit `code`, and so has no ticks.
#[cold]
pub fn on_lost_cpu(code: u64, rip: u64) {
    // SAFETY: the cokernel's CPU; no trip is running.
    let (cokernel, trip) = unsafe { (cokernel().as_mut(), &mut *entry::trip()) };
    let Some(cokernel) = cokernel else { return };
    let frame = Frame { vector: code, rip, ..Frame::default() };
    trip.fault = Fault { reason: FAULT_LOST_CPU, frame, ..Fault::default() };
    end(cokernel, trip);
}

/// Time since the next tick was due, below 0 before, in ticks of the time-stamp counter.
fn late(now: u64) -> i64 {
    // SAFETY: a field of the status, which the cokernel's CPU writes.
    let due = unsafe { (&raw const (*status()).due_tsc).read_volatile() };
    now.wrapping_sub(due) as i64
}

/// Linux suspects that ticks are missing. On CPU `own`.
pub fn check_tick(own: u32) {
    report_late(own, LATE_MS);
}

/// Looks for missing ticks, at any exit but a tick's. On CPU `own`.
pub fn watch(own: u32) {
    report_late(own, VERY_LATE_MS);
}

/// Reports missing ticks, and sends an NMI in their place: Linux may have taken the cokernel's CPU away, or changed its
/// APIC ID.
///
/// A trip ends within its budget unless its CPU is lost in it, which is reported too. An NMI would end it, if it still
/// runs.
fn report_late(own: u32, limit_ms: i64) {
    let (e, now) = (entry(), arch::tsc());
    let (late, khz) = (late(now), e.tsc_khz as i64);
    let inside = INSIDE.load(SeqCst);
    let limit_ms = if inside { VERY_LATE_MS } else { limit_ms };
    if late <= limit_ms * khz || SILENT.load(SeqCst) {
        return;
    }
    let last = REVIVED_TSC.load(Relaxed);
    if last != 0 && (now.wrapping_sub(last) as i64) < LATE_MS * khz {
        return;
    }
    REVIVED_TSC.store(now, Relaxed);
    log::report(format_args!("wall: no tick for {} ms, CPU {}", late / khz, e.cokernel_cpu));
    // The serial line is fed at ticks.
    log::drain_serial();
    if inside {
        return;
    }
    if own == e.cokernel_cpu {
        restore_apic_id();
        apic::send_nmi(own);
    } else {
        apic::send_nmi_to_others();
    }
}

/// The timer. If the guard has a comparator of its own, its messages go to all CPUs: it comes even if no CPU has the
/// cokernel's APIC ID any more. It comes only then, or if a trip exceeds its budget.
fn timer() -> Hpet {
    let t = &entry().timer;
    // SAFETY: the module has claimed it; the window maps it.
    let mut hpet = unsafe { Hpet::new(at::<u8>(t.registers) as u64, t.config, t.guard, t.message) };
    let by_message = t.config & TIMER_MESSAGE != 0;
    let for_all = by_message && hpet.has_own_guard() && entry().cpu_count > 1 && !apic::is_x2apic();
    if for_all {
        hpet.guard_all();
    }
    IS_GUARD_FOR_ALL.store(for_all, Relaxed);
    hpet
}

/// What a start was.
pub enum Start {
    /// The first of this load.
    First,
    /// One after [`stop`].
    Again,
}

/// The ticks run already, or ended for good, or this is another CPU.
pub struct Running;

/// Starts the ticks. `own`: this is the cokernel's CPU; no other can. Counts go on after a stop: the time in between
/// counts as missed ticks.
pub fn start(own: bool) -> Result<Start, Running> {
    // SAFETY: the status, which this CPU writes while there is no tick.
    let reason = unsafe { (&raw const (*status()).fault.reason).read_volatile() };
    if !own || !SILENT.load(SeqCst) || !matches!(reason, 0 | FAULT_CALL) {
        return Err(Running);
    }
    let e = entry();
    // SAFETY: the cokernel's CPU; no trip is running.
    let (Some(cokernel), trip) = (unsafe { cokernel() }.as_mut(), unsafe { &mut *entry::trip() })
    else {
        return Err(Running);
    };
    let rates = Rates { period_fs: e.timer.period_fs, tsc_khz: e.tsc_khz };
    let due = trip.next_tsc;
    let mut ticks = Ticks::new(timer(), &rates, e.tick_hz, e.budget_us, trip);
    let start = match &cokernel.ticks {
        Some(before) => {
            ticks.follow(before, trip, arch::tsc().saturating_sub(due));
            Start::Again
        }
        None => Start::First,
    };
    SILENT.store(false, SeqCst);
    cokernel.swallow = 1;
    cokernel.irregular_tsc = arch::tsc();
    let armed = ticks.start(trip);
    cokernel.ticks = Some(ticks);
    cokernel.armed(armed);
    // SAFETY: the status.
    unsafe {
        (&raw mut (*status()).due_tsc).write_volatile(trip.next_tsc);
        (&raw mut (*status()).fault.reason).write_volatile(0);
        (&raw mut (*status()).state).write_volatile(STATE_RUNNING);
    }
    Ok(start)
}

/// Stops the ticks, and waits for a running trip, for a bounded time. `own`: this is the cokernel's CPU. Returns
/// whether there were ticks.
pub fn stop(own: bool) -> bool {
    let ran = !SILENT.swap(true, SeqCst);
    timer().disable();
    let end = arch::tsc() + LAST_TRIP_US * entry().tsc_khz / 1000;
    while !own && INSIDE.load(SeqCst) && arch::tsc() < end {
        core::hint::spin_loop();
    }
    // The end of that trip may have armed the timer, but has not enabled it.
    if own {
        // SAFETY: the cokernel's CPU, outside of any trip.
        if let Some(cokernel) = unsafe { cokernel() } {
            cokernel.swallow = 2;
        }
    }
    if ran {
        // SAFETY: the status. If the last trip stopped the cokernel for good, its reason stays.
        unsafe {
            let reason = &raw mut (*status()).fault.reason;
            if reason.read_volatile() == 0 {
                reason.write_volatile(FAULT_CALL);
            }
            (&raw mut (*status()).state).write_volatile(STATE_STOPPED);
        }
    }
    ran
}
