//! The event ring, and the serial line that repeats it.

use super::state::{entry, trip};
use crate::arch::x86_64::{
    self as arch,
    entry::{LAYER_WORK, WORK_SERIAL},
};
use crate::events::Events;
use crate::owned::Owned;
use crate::serial;
use core::sync::atomic::Ordering::Relaxed;
use kyozon_abi::events::StatusWords;

/// Owner: services; interrupts only when they stop the cokernel for good.
static EVENTS: Owned<Events> = Owned::new(Events::none());

/// Opens the module's event ring.
///
/// # Safety
///
/// Called once, on the first trip, before the cokernel starts.
pub(crate) unsafe fn open() {
    let e = entry();
    // SAFETY: the caller's promise; the module maps the ring as long as the layer runs.
    unsafe { EVENTS.get().open(e.events as *mut _, e.events_bytes) };
}

/// Writes one line to the ring, with the trip's tick.
///
/// # Safety
///
/// The caller is a service, or nothing of the cokernel or of a service runs again.
pub(crate) unsafe fn write(kind: u32, code: u32, line: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe { EVENTS.get() }.write(kind, code, arch::tsc(), trip!(event).number, line);
}

/// Publishes the status with `index`.
///
/// # Safety
///
/// The caller is a service.
pub(crate) unsafe fn publish(index: usize, status: &StatusWords) {
    // SAFETY: the caller's promise.
    unsafe { EVENTS.get() }.publish(index, status);
}

fn port() -> Option<u16> {
    u16::try_from(entry().serial_port).ok().filter(|port| *port != 0)
}

/// Sends as much of the lines as the serial line accepts now.
///
/// # Safety
///
/// The caller is a service.
pub(crate) unsafe fn feed_serial() {
    let Some(port) = port() else { return };
    // SAFETY: the caller's promise; an atomic of the entry code.
    unsafe {
        let events = EVENTS.get();
        serial::feed(events, port);
        if events.has_serial() {
            LAYER_WORK.fetch_or(WORK_SERIAL, Relaxed);
        } else {
            LAYER_WORK.fetch_and(!WORK_SERIAL, Relaxed);
        }
    }
}

/// Sends all lines that are left to the serial line. It gives up if the port takes nothing for a while.
///
/// # Safety
///
/// Nothing of the cokernel or of a service runs again.
pub(crate) unsafe fn flush_serial() {
    let Some(port) = port() else { return };
    // SAFETY: the caller's promise.
    let events = unsafe { EVENTS.get() };
    serial::flush(entry().tsc_khz, || events.has_serial().then(|| serial::feed(events, port)));
}

/// Sends the rest of the lines to the serial line, for a bounded time.
///
/// # Safety
///
/// Nothing of the cokernel or of a service runs again.
pub(crate) unsafe fn drain_serial() {
    let Some(port) = port() else { return };
    // SAFETY: the caller's promise.
    serial::drain(unsafe { EVENTS.get() }, port, entry().tsc_khz);
}
