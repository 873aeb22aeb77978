//! What module and Linux are elsewhere: starts trips, ends them, and halts the CPU in between.
//!
//! The CPU is in one of three states. *Inside* a trip the cokernel or the layer runs, and an NMI is the layer's. While
//! it is *halted*, an NMI that is due begins a trip. Between a trip's end and the halt the *host* arms the next tick;
//! an NMI is only noted then, and looked at before the CPU halts.

use super::hpet::{self, Hpet};
use super::schedule::{scale, Rates, Schedule};
use super::serial::{line, PORT};
use super::{command::Options, world};
use crate::arch::x86_64::{self as arch, alone as stub, entry::*};
use crate::hal::{self, Owned};
use crate::interrupt;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::*;

/// Microseconds by which the timer's clock and the time-stamp counter may disagree.
const SLACK_US: u64 = 2;

/// The trip. The stub knows where it is.
// SAFETY: integers only, for which zeros are values.
pub static TRIP: Owned<Trip> = Owned::new(unsafe { core::mem::zeroed() });
/// What the layer gets, once.
// SAFETY: as above.
pub static ENTRY: Owned<LayerEntry> = Owned::new(unsafe { core::mem::zeroed() });
/// Host and halted only, and the guard's arming at a trip's begin.
static HOST: Owned<Option<Host>> = Owned::new(None);

struct Host {
    timer: Hpet,
    schedule: Schedule,
    tsc_per_count: u64,
    budget_tsc: u64,
    watch_tsc: u64,
    watch: u32,
    slack_tsc: u64,
    limit: u64,
    passed: u64,
    ticks: u64,
    missed: u64,
    overruns: u64,
}

/// Arms the first tick, and waits for it for ever after.
pub fn run(mut timer: Hpet, rates: &Rates, options: &Options) -> ! {
    use super::schedule::Counter;
    let period_tsc = rates.tsc_khz * 1000 / u64::from(options.hz);
    let budget_tsc = u64::from(options.budget_us) * rates.tsc_khz / 1000;
    timer.set_up();
    let schedule = Schedule::new(rates, options.hz, timer.now());
    let watch_us = u64::from(options.budget_us).min(1_000_000 / u64::from(options.hz));
    // SAFETY: before the first trip.
    let host = unsafe { HOST.get() }.insert(Host {
        timer,
        schedule,
        tsc_per_count: rates.tsc_per_count(),
        budget_tsc,
        watch_tsc: budget_tsc.min(period_tsc),
        watch: rates.counts(watch_us) as u32,
        slack_tsc: SLACK_US * rates.tsc_khz / 1000 + (period_tsc >> 10),
        limit: options.ticks,
        passed: 0,
        ticks: 0,
        missed: 0,
        overruns: 0,
    });
    // SAFETY: as above.
    unsafe { TRIP.get() }.period_tsc = period_tsc;
    host.arm(Schedule::first);
    host.timer.enable();
    // SAFETY: the world is live, and the layer has its entry.
    unsafe { stub::halt() }
}

impl Host {
    fn arm(&mut self, which: fn(&mut Schedule, &mut Hpet) -> super::schedule::Armed) {
        let armed = which(&mut self.schedule, &mut self.timer);
        // SAFETY: no trip is on its way.
        let trip = unsafe { TRIP.get() };
        trip.next_tsc = armed.tsc + scale(armed.left, self.tsc_per_count);
        if self.timer.has_own_guard() {
            self.timer.set_guard(armed.at.wrapping_add(self.watch));
        }
        self.passed = u64::from(armed.passed);
    }
}

/// An NMI that found the CPU halted, at `now`: whether a trip begins, and how (`GO_*`).
pub extern "C" fn on_halted(now: u64) -> u32 {
    // SAFETY: halted: nobody else uses these.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return stub::GO_NOT };
    let due = trip.next_tsc;
    if (now.wrapping_add(host.slack_tsc).wrapping_sub(due) as i64) < 0
        && !host.schedule.is_due(&host.timer)
    {
        return stub::GO_NOT;
    }
    trip.event.number += 1 + host.passed;
    trip.event.missed = host.passed;
    trip.event.scheduled_tsc = due;
    trip.event.entered_tsc = now;
    trip.deadline_tsc = now + host.budget_tsc;
    trip.guard_tsc = due + host.watch_tsc;
    trip.next_tsc = due + trip.period_tsc;
    trip.result = TRIP_IDLE;
    trip.ticks_inside = 0;
    trip.inside = 1;
    stub::set_halted(false);
    // SAFETY: atomics of the entry code.
    let idle = unsafe {
        LAYER_RESUME.load(Relaxed) == layer_resume_idle as *const () as u64
            && LAYER_WORK.load(Relaxed) == 0
    };
    if idle {
        return stub::GO_IDLE;
    }
    // The first trip arms the guard itself, when the layer is ready for it.
    if trip.nmi_entry != 0 {
        watch();
    }
    stub::GO_ON
}

/// Arms the guard where the one that stands does not cover this trip. A cokernel that was idle runs its tick handler
/// before that.
pub extern "C" fn watch() {
    // SAFETY: a trip's begin, with NMIs held back; the host is not running.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return };
    let late = trip.event.entered_tsc.wrapping_sub(trip.event.scheduled_tsc) as i64;
    if !host.timer.has_own_guard() || late >= (host.watch_tsc / 2) as i64 || trip_is_old(host, trip)
    {
        hal::arm_guard(interrupt::guard_at(&hal::times()));
    }
}

/// Whether the guard may have come while NMIs were held back, in vain.
fn trip_is_old(host: &Host, trip: &Trip) -> bool {
    arch::tsc().wrapping_sub(trip.event.entered_tsc) >= host.watch_tsc / 2
}

/// A trip has ended. 1 where NMIs are still held back.
pub extern "C" fn end() -> u32 {
    // SAFETY: the trip is over.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return 0 };
    let inside = u64::from(trip.ticks_inside);
    host.ticks += 1 + inside;
    host.missed += trip.event.missed;
    trip.event.number += inside;
    let cut_off = trip.result == TRIP_CUT_OFF;
    host.overruns += u64::from(cut_off);
    let stopped = trip.result == TRIP_STOPPED;
    if stopped || host.limit != 0 && trip.event.number > host.limit {
        hal::last_words();
        if stopped {
            say_fault(&trip.fault);
        }
        line!(
            "alone: {}: ticks {} missed {} overruns {}",
            if stopped { "stopped" } else { "done" },
            host.ticks,
            host.missed,
            host.overruns
        );
        arch::power_off();
    }
    host.arm(Schedule::next);
    // Those that the layer delivered meanwhile were not missed.
    host.passed = host.passed.saturating_sub(inside);
    u32::from(cut_off)
}

fn say_fault(fault: &Fault) {
    let f = &fault.frame;
    line!(
        "alone: reason {} vector {} error {:#x} rip {:#x} cs {:#x} rflags {:#x} rsp {:#x} ss {:#x} cr2 {:#x} cr3 {:#x}",
        fault.reason, f.vector, f.error, f.rip, f.cs, f.rflags, f.rsp, f.ss, fault.cr2, fault.cr3
    );
    line!(
        "alone: rax {:#x} rbx {:#x} rcx {:#x} rdx {:#x} rsi {:#x} rdi {:#x} rbp {:#x}",
        f.rax,
        f.rbx,
        f.rcx,
        f.rdx,
        f.rsi,
        f.rdi,
        f.rbp
    );
    line!(
        "alone: r8 {:#x} r9 {:#x} r10 {:#x} r11 {:#x} r12 {:#x} r13 {:#x} r14 {:#x} r15 {:#x}",
        f.r8,
        f.r9,
        f.r10,
        f.r11,
        f.r12,
        f.r13,
        f.r14,
        f.r15
    );
}

/// Fills what the layer is told.
pub fn introduce(
    entry: &mut LayerEntry,
    timer: &Hpet,
    rates: &Rates,
    options: &Options,
    header: &ImageHeader,
    page_table: u64,
) {
    let (tss, idt) = world::descriptors();
    entry.version = LAYER_VERSION;
    entry.mode = MODE_ALONE;
    entry.tsc_khz = rates.tsc_khz;
    entry.tick_hz = options.hz;
    entry.budget_us = options.budget_us;
    entry.paging_levels = 4;
    entry.cokernel = header.base;
    entry.cokernel_text_bytes = header.text_bytes;
    entry.cokernel_bytes = header.text_bytes + header.rodata_bytes + header.memory_bytes;
    entry.memory = MEMORY_BASE;
    entry.memory_bytes = options.memory;
    entry.page_table = page_table;
    entry.tables = world::TABLES;
    entry.tss = tss;
    entry.idt = idt;
    entry.serial_port = u32::from(PORT);
    entry.trip = (&raw const TRIP) as u64;
    entry.guard = world::TIMER;
    entry.guard_comparator = hpet::comparator(timer.guard());
    entry.guard_counter = hpet::COUNTER;
    entry.guard_per_tsc = rates.count_per_tsc();
    entry.parameter = options.parameter;
}
