//! The first trip.

use super::guard::{arm_guard, times};
use super::services::{handlers, Services};
use super::state::{self, entry, trip};
use super::stop::stop;
use super::{reports, user_mode};
use crate::arch::x86_64::{entry::*, gates};
use crate::interrupt::guard_at;
use crate::owned::Owned;
use crate::space::Space;
use crate::{none, vmm};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::layer::{
    BootBlock, Fault, Frame, ImageHeader, LayerEntry, Range, Trip, FAULT_LAYER, FAULT_RETURNED,
    LAYER_VERSION, MODE_VMM, TRIP_STOPPED,
};

/// Written once, before the cokernel starts.
static BOOT: Owned<Option<BootBlock>> = Owned::new(None);

/// The call that the machine code makes after the first entry: `start` with `boot`.
#[repr(C)]
pub(crate) struct Start {
    boot: u64,
    start: u64,
}

/// The cokernel's image header.
fn cokernel_header() -> ImageHeader {
    // SAFETY: the module mapped the image there and compared its hash.
    unsafe { (entry().cokernel as *const ImageHeader).read() }
}

/// The first trip beside Linux: chooses the mode.
#[no_mangle]
extern "C" fn layer_init(from: *mut LayerEntry, trip: *mut Trip) -> Start {
    // SAFETY: the first field of the module's structure, in every version.
    if unsafe { (*from).version } != LAYER_VERSION {
        refuse(from, trip);
    }
    // SAFETY: the module's structure.
    let services = match unsafe { (*from).mode } {
        MODE_VMM => &vmm::guest::SERVICES,
        _ => &none::SERVICES,
    };
    init(from, trip, services)
}

/// Stops the cokernel before it started: the module has another version of the interface than this image. The module
/// compares the version in the image's header, so this happens only if that comparison failed.
#[cold]
fn refuse(from: *mut LayerEntry, trip: *mut Trip) -> ! {
    state::set(from, trip);
    trip!(fault = Fault { reason: FAULT_LAYER, ..Fault::default() });
    trip!(result = TRIP_STOPPED);
    // SAFETY: nothing of the cokernel has run. Linux continues from here.
    unsafe { layer_abandon() }
}

/// The first trip, in every mode.
pub(crate) fn init(from: *mut LayerEntry, trip: *mut Trip, services: &Services) -> Start {
    state::set(from, trip);
    let e = entry();
    // SAFETY: the trampoline's table, live, and no other code writes it.
    unsafe { gates::fill(e.idt as *mut [u64; 2]) };
    trip!(machine_check_entry = gates::layer_machine_check as *const () as u64);
    trip!(nmi_entry = gates::layer_nmi as *const () as u64);
    // An NMI before this moment was only counted, and may have been the guard's.
    arm_guard(guard_at(&times()));
    // SAFETY: an atomic of the entry code.
    unsafe { LAYER_GUARD_SLACK.store(times().slack, Relaxed) };

    let image = cokernel_header();
    let constant = image.text_bytes + image.rodata_bytes;
    let range = |base, bytes| Range { base, bytes };
    let space = Space::new(
        range(image.base, constant),
        [
            range(image.base + constant, image.memory_bytes),
            range(e.memory, e.memory_bytes),
            range((&raw const LAYER_START_STACK) as u64, START_STACK_BYTES as u64),
        ],
    );
    let boot = BootBlock {
        version: LAYER_VERSION,
        mode: e.mode,
        tsc_khz: e.tsc_khz,
        tick_hz: e.tick_hz,
        budget_us: e.budget_us,
        memory: e.memory,
        memory_bytes: e.memory_bytes,
        idle: layer_idle as *const () as u64,
        linux_window: services.window as *const () as u64,
        linux_repair: services.repair as *const () as u64,
        report: services.report as *const () as u64,
        publish: services.publish as *const () as u64,
        handlers: handlers as *const () as u64,
        enter_user: layer_enter_user as *const () as u64,
        page_table: e.page_table,
        tables: e.tables,
        paging_levels: e.paging_levels,
        piece_count: e.piece_count as u32,
        pieces: e.pieces.as_ptr() as u64,
        tasks: e.tasks.as_ptr() as u64,
        task_count: e.task_count,
        parameter: e.parameter,
        data: e.data,
        work: (&raw const LAYER_WORK) as u64,
        linux_registers: services.registers as *const () as u64,
        reset: services.reset as *const () as u64,
        watch: services.watch as *const () as u64,
        writes: services.writes as *const () as u64,
        other_registers: services.other_registers as *const () as u64,
        vectors: user_mode::vectors as *const () as u64,
    };
    // SAFETY: the first trip, before any service; interrupts do not use these.
    unsafe {
        reports::open();
        state::set_space(space);
        user_mode::set_saved(services.user_state);
        Start { boot: ptr::from_ref(BOOT.get().insert(boot)) as u64, start: image.entry }
    }
}

#[no_mangle]
extern "C" fn layer_returned() -> ! {
    stop(FAULT_RETURNED, &Frame::default())
}
