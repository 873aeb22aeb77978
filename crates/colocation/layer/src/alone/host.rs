//! Takes the place of the module and of Linux: starts trips, ends them, and halts the CPU in between.
//!
//! The CPU is in one of three states. *Inside* a trip the cokernel or the layer runs, and an NMI is the layer's. While
//! it is *halted*, an NMI that is due begins a trip. Between a trip's end and the halt the *host* arms the next tick;
//! an NMI is only noted then, and handled before the CPU halts.

use super::serial::{line, PORT};
use super::{command::Options, world};
use crate::arch::x86_64::{self as arch, alone as stub, entry::*};
use crate::cokernel::{guard, reports};
use crate::hpet::{self, Hpet};
use crate::interrupt;
use crate::owned::Owned;
use crate::schedule::Rates;
use crate::ticks::Ticks;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::*;

/// The trip. The stub uses it by its symbol.
#[export_name = "ALONE_TRIP"]
// SAFETY: integers only, for which zeros are values.
pub static TRIP: Owned<Trip> = Owned::new(unsafe { core::mem::zeroed() });
/// The layer's entry, written once.
#[export_name = "ALONE_ENTRY"]
// SAFETY: as above.
pub static ENTRY: Owned<LayerEntry> = Owned::new(unsafe { core::mem::zeroed() });
/// Used by the host and by NMIs that find the CPU halted; also to arm the guard at the beginning of a trip.
static HOST: Owned<Option<Host>> = Owned::new(None);

struct Host {
    ticks: Ticks,
    limit: u64,
}

/// Arms the first tick, and never returns.
pub fn run(timer: Hpet, rates: &Rates, options: &Options) -> ! {
    // SAFETY: before the first trip.
    let (host, trip) = unsafe { (HOST.get(), TRIP.get()) };
    let ticks = Ticks::new(timer, rates, options.hz, options.budget_us, trip);
    host.insert(Host { ticks, limit: options.ticks }).ticks.start(trip);
    // SAFETY: the world is live, and the layer has its entry.
    unsafe { stub::halt() }
}

/// An NMI found the CPU halted, at `now`. Returns whether a trip begins, and how (`GO_*`).
#[no_mangle]
extern "C" fn alone_on_halted(now: u64) -> u32 {
    // SAFETY: the CPU was halted, so no other code uses these.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return stub::GO_NOT };
    if !host.ticks.is_due(trip, now) {
        return stub::GO_NOT;
    }
    host.ticks.begin(trip, now);
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
        alone_watch();
    }
    stub::GO_ON
}

/// Arms the guard, unless the one that is armed covers this trip. An idle cokernel has run its tick handler before.
#[no_mangle]
extern "C" fn alone_watch() {
    // SAFETY: a trip's begin, with NMIs held back; the host is not running.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return };
    if host.ticks.needs_guard(trip) {
        guard::arm_guard(interrupt::guard_at(&guard::times()));
    }
}

/// A trip has ended. Returns 1 if NMIs may still be held back: an interrupt cut it off, or a service ended it.
#[no_mangle]
extern "C" fn alone_end() -> u32 {
    // SAFETY: the trip is over.
    let (host, trip) = unsafe { (HOST.get().as_mut(), TRIP.get()) };
    let Some(host) = host else { return 0 };
    host.ticks.count(trip);
    let cut_off = trip.result == TRIP_CUT_OFF;
    let stopped = trip.result == TRIP_STOPPED;
    if stopped || host.limit != 0 && trip.event.number > host.limit {
        // SAFETY: nothing of the cokernel runs again.
        unsafe { reports::drain_serial() };
        if stopped {
            print_fault(&trip.fault);
        }
        line!(
            "alone: {}: ticks {} missed {} overruns {}",
            if stopped { "stopped" } else { "done" },
            host.ticks.ticks,
            host.ticks.missed,
            host.ticks.overruns
        );
        arch::power_off();
    }
    host.ticks.next(trip, 0);
    u32::from(cut_off)
}

fn print_fault(fault: &Fault) {
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

/// Fills the layer's entry.
pub fn fill_entry(
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
