//! Lines for the event ring and the serial line, from any CPU.

use super::entry::{count_finding, entry, trip};
use super::memory::{Guard, Lock};
use crate::arch::x86_64::{self as arch, svm};
use crate::events::Events;
use crate::line::Line;
use crate::serial;
use crate::vmm::flood::{Flood, Limit};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kyozon_abi::events::EVENT_WALL;

static EVENTS: Lock<Events> = Lock::new(Events::none());
/// Limits the lines of the wall: many attempts must not push everything else out of the ring.
static FLOOD: Lock<Flood> = Lock::new(Flood::new());
/// Whether there is no tick any more.
pub static SILENT: AtomicBool = AtomicBool::new(true);

/// Opens the module's event ring.
///
/// # Safety
///
/// Called once, at the first launch: the ring is the module's, and Linux may only read it.
pub unsafe fn open() {
    let e = entry();
    // SAFETY: the caller's promise.
    unsafe { EVENTS.lock().open(e.events as *mut u8, e.events_bytes) };
}

/// Reports an attempt of Linux that the wall stopped.
pub fn report(arguments: core::fmt::Arguments<'_>) {
    count_finding();
    match FLOOD.lock().next(arch::tsc(), entry().tsc_khz * 1000) {
        Limit::Drop => return,
        Limit::Write => {}
        Limit::WriteAfter(lines) => {
            let line = Line::new(format_args!("wall: {lines} more attempts in a second"));
            write(EVENT_WALL, 0, line.bytes());
        }
    }
    write(EVENT_WALL, 0, Line::new(arguments).bytes());
}

/// Reports what can happen once only: no flood of attempts hides it.
pub fn report_last(arguments: core::fmt::Arguments<'_>) {
    count_finding();
    write(EVENT_WALL, 0, Line::new(arguments).bytes());
}

/// Writes a line to the event ring and the serial line. Any CPU.
pub fn write(kind: u32, code: u32, line: &[u8]) {
    // SAFETY: a field of the trip.
    let tick = unsafe { (&raw const (*trip()).event.number).read_volatile() };
    let mut events = EVENTS.lock();
    events.write(kind, code, arch::tsc(), tick, line);
    if SILENT.load(Relaxed) {
        if let Some(port) = port() {
            serial::drain(&mut events, port, entry().tsc_khz);
        }
    }
}

/// The ring and the serial line.
pub fn events() -> Guard<'static, Events> {
    EVENTS.lock()
}

fn port() -> Option<u16> {
    u16::try_from(entry().serial_port).ok().filter(|port| *port != 0)
}

/// Sends what the serial line is ready to take.
pub fn feed_serial() {
    if let Some(port) = port() {
        serial::feed(&mut EVENTS.lock(), port);
    }
}

/// Sends what is left for the serial line, for at most a few milliseconds.
pub fn drain_serial() {
    if let Some(port) = port() {
        serial::drain(&mut EVENTS.lock(), port, entry().tsc_khz);
    }
}

/// Sends everything that is left for the serial line, before Linux can reach this code's memory. It gives up if the
/// port takes nothing for a while.
pub fn flush_serial() {
    let Some(port) = port() else { return };
    serial::flush(entry().tsc_khz, || {
        let mut events = EVENTS.lock();
        events.has_serial().then(|| serial::feed(&mut events, port))
    });
}

/// An exception in the hypervisor. `frame` holds the last two words that the exception pushed.
#[no_mangle]
extern "C" fn hypervisor_fault(vector: u64, frame: &[u64; 2]) -> ! {
    let [first, second] = *frame;
    failed(format_args!(
        "hypervisor failed: vector {vector}, {first:#x} {second:#x}, cr2 {:#x}",
        svm::cr2()
    ))
}

/// The hypervisor itself failed: writes a line to the serial line and halts this CPU.
pub fn failed(arguments: core::fmt::Arguments<'_>) -> ! {
    if let Some(port) = port() {
        for byte in Line::new(arguments).bytes().iter().chain(b"\n") {
            // SAFETY: the operator gave this port to the cokernel. Its buffer may overflow: waiting is not possible
            // here.
            unsafe { arch::out8(port, *byte) };
        }
    }
    // SAFETY: the hypervisor cannot continue.
    unsafe { svm::halt_forever() }
}
