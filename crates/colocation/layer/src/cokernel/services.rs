//! The services that the cokernel calls. Those that differ from mode to mode are in the mode's table.

use super::guard::times;
use super::linux::Beside;
use super::pending::{layer_keep_trip, layer_kept_tick};
use super::state::{entry, in_cokernel, space, trip};
use super::{reports, stop, user_mode};
use crate::arch::x86_64::{entry::*, user_state};
use crate::interrupt::is_spent;
use crate::repair;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::events::{StatusWords, MONITOR_INDEX};
use kyozon_abi::layer::{
    Frame, Handlers, LinuxRegisters, RepairRequest, Report, Window, Writes, REPORT_BYTES,
    SERVICE_BAD_ADDRESS, SERVICE_UNAVAILABLE, TRIP_CUT_OFF,
};

/// The services that differ from mode to mode. See [`kyozon_abi::layer::BootBlock`].
pub(crate) struct Services {
    pub(crate) window: extern "C" fn(*mut Window) -> i64,
    pub(crate) registers: extern "C" fn(*mut LinuxRegisters) -> i64,
    pub(crate) repair: extern "C" fn(*const RepairRequest) -> i64,
    pub(crate) report: extern "C" fn(*const Report) -> i64,
    pub(crate) publish: extern "C" fn(u64, *const StatusWords) -> i64,
    pub(crate) reset: extern "C" fn(u64) -> i64,
    pub(crate) watch: extern "C" fn(u64, u64, u64) -> i64,
    pub(crate) writes: extern "C" fn(*mut Writes) -> i64,
    pub(crate) other_registers: extern "C" fn(*mut LinuxRegisters) -> i64,
    /// A place for those registers of this CPU that user mode can change, if the layer has to restore them.
    pub(crate) user_state: Option<user_state::Saved>,
}

/// The window on Linux's memory.
pub(crate) extern "C" fn linux_window(window: *mut Window) -> i64 {
    if !space().can_write::<Window>(window as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    let e = entry();
    // SAFETY: the cokernel's writable memory, aligned.
    unsafe {
        window.write(Window { count: u64::from(e.ram_count), ram: e.ram });
    }
    0
}

/// Stores Linux's registers, which `read` reads, where the cokernel wants them.
pub(crate) fn registers_with(read: fn() -> LinuxRegisters, to: *mut LinuxRegisters) -> i64 {
    if !space().can_write::<LinuxRegisters>(to as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    // SAFETY: the cokernel's writable memory, aligned.
    unsafe { to.write(LinuxRegisters { cpu: u64::from(entry().cpu), ..read() }) };
    end()
}

/// The service `watch` where nothing can watch writes.
pub(crate) extern "C" fn no_watch(_base: u64, _bytes: u64, _space: u64) -> i64 {
    SERVICE_UNAVAILABLE
}

/// The service `writes` there.
pub(crate) extern "C" fn no_writes(_to: *mut Writes) -> i64 {
    SERVICE_UNAVAILABLE
}

/// The service `other_registers` where no other CPU shows its registers.
pub(crate) extern "C" fn no_other_registers(_to: *mut LinuxRegisters) -> i64 {
    SERVICE_UNAVAILABLE
}

/// A copy of the report at `from` and its line, if both lie in the cokernel's readable memory.
pub(crate) fn checked_report(from: *const Report) -> Option<(Report, &'static [u8])> {
    if !space().can_read::<Report>(from as u64) {
        return None;
    }
    // SAFETY: the cokernel's readable memory, aligned. Copied, so that it cannot change after the check.
    let report = unsafe { from.read() };
    if report.bytes > REPORT_BYTES || !space().can_read_bytes(report.text, report.bytes) {
        return None;
    }
    // SAFETY: the cokernel's readable memory; no code of the cokernel runs meanwhile.
    let line =
        unsafe { core::slice::from_raw_parts(report.text as *const u8, report.bytes as usize) };
    Some((report, line))
}

/// The end of a service: gives the CPU back until the next tick if the budget is spent, as a cut-off does. The layer's
/// own code cannot be cut off, and a program that calls services again and again is in it nearly all the time. Only a
/// service calls it, last: another trip may begin and end meanwhile.
pub(crate) fn end() -> i64 {
    if is_spent(&times()) {
        wait_for_tick(TRIP_CUT_OFF);
    }
    0
}

/// Ends the trip with `result`, one of `TRIP_*`, and continues in the next one. Only a service calls it.
pub(crate) fn wait_for_tick(result: u32) {
    trip!(result = result);
    // SAFETY: a service, on the cokernel's stack; the next trip continues here.
    unsafe { layer_yield() };
    layer_keep_trip();
}

/// Writes a line to the event ring and the serial line.
pub(crate) extern "C" fn report(report: *const Report) -> i64 {
    let Some((report, line)) = checked_report(report) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: a service.
    unsafe {
        reports::write(report.kind, report.code, line);
        reports::feed_serial();
    }
    end()
}

/// A copy of `status`, if it lies in the cokernel's readable memory and there is a status with `index`.
pub(crate) fn checked_status(index: u64, status: *const StatusWords) -> Option<StatusWords> {
    let good = index <= MONITOR_INDEX as u64 && space().can_read::<StatusWords>(status as u64);
    // SAFETY: the cokernel's readable memory, aligned.
    good.then(|| unsafe { status.read() })
}

/// Publishes the status with `index` in the event ring's memory.
pub(crate) extern "C" fn publish(index: u64, status: *const StatusWords) -> i64 {
    let Some(status) = checked_status(index, status) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: a service.
    unsafe { reports::publish(index as usize, &status) };
    end()
}

/// Sets the addresses at which the cokernel is entered.
pub(crate) extern "C" fn handlers(from: *const Handlers) -> i64 {
    if !space().can_read::<Handlers>(from as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    // SAFETY: the cokernel's readable memory, aligned.
    let h = unsafe { from.read() };
    let frame = h.user_stack.wrapping_sub(size_of::<Frame>() as u64);
    let is_code = |address: u64| address == 0 || in_cokernel(address);
    if !is_code(h.tick)
        || !is_code(h.user)
        || h.typed.base.checked_add(h.typed.bytes).is_none()
        || h.user == 0 && h.typed.bytes != 0
        || (h.user != 0 && !(h.user_stack % 16 == 0 && space().can_write::<Frame>(frame)))
    {
        return SERVICE_BAD_ADDRESS;
    }
    let or = |address: u64, default: u64| if address == 0 { default } else { address };
    // SAFETY: atomics of the entry code; the stack was checked, if there is a handler for it.
    unsafe {
        LAYER_TICK.store(or(h.tick, layer_nothing as *const () as u64), Relaxed);
        LAYER_USER.store(or(h.user, stop::layer_unhandled as *const () as u64), Relaxed);
        user_mode::set_stack(if h.user == 0 { 0 } else { h.user_stack });
        user_mode::set_typed(h.typed);
    }
    0
}

/// Runs a repair transaction; `write` writes a word of Linux's memory.
pub(crate) fn repair_with(write: fn(u64, u64), request: *const RepairRequest) -> i64 {
    if !space().can_read::<RepairRequest>(request as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    // SAFETY: the cokernel's readable memory, aligned. Copied, so that it cannot change after the check.
    let request = unsafe { request.read() };
    repair::repair(&request, &mut Beside { write })
}

/// The work of `idle` before it leaves. Returns 1 if there was a tick, and `idle` is to return instead.
#[no_mangle]
extern "C" fn layer_work() -> u32 {
    // SAFETY: an atomic of the entry code.
    let work = unsafe { LAYER_WORK.load(Relaxed) };
    if work & WORK_TICK != 0 {
        layer_kept_tick();
        return 1;
    }
    // SAFETY: a service.
    unsafe { reports::feed_serial() };
    0
}
