//! Typed calls of the boot block's functions.

use core::fmt;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use kyozon_abi::events::{StatusWords, EVENT_NOTE};
use kyozon_abi::layer::*;
use kyozon_abi::line::Line;

static BOOT: AtomicPtr<BootBlock> = AtomicPtr::new(core::ptr::null_mut());

kyozon_abi::image_header!(IMAGE_COKERNEL, "cokernel_entry");

#[no_mangle]
extern "C" fn cokernel_entry(boot: *mut BootBlock) {
    BOOT.store(boot, Relaxed);
    crate::script::run(self::boot());
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    print(format_args!("panic"));
    loop {
        idle();
    }
}

/// The boot block.
pub fn boot() -> &'static BootBlock {
    // SAFETY: the layer keeps it valid as long as the cokernel runs.
    unsafe { &*BOOT.load(Relaxed) }
}

/// Calls a service through its address in the boot block.
macro_rules! service {
    ($field:ident: fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {{
        // SAFETY: the boot block says that this is a function of this type.
        let f: extern "C" fn($($type),*) -> $result = unsafe { core::mem::transmute(boot().$field) };
        f($($argument),*)
    }};
}

/// Gives the CPU back until the next tick.
pub fn idle() {
    service!(idle: fn() -> (),);
}

/// Fills in the readable ranges of Linux's memory.
pub fn linux_window(window: *mut Window) -> i64 {
    service!(linux_window: fn(*mut Window) -> i64, window)
}

/// Fills in Linux's registers on this CPU.
pub fn linux_registers(registers: *mut LinuxRegisters) -> i64 {
    service!(linux_registers: fn(*mut LinuxRegisters) -> i64, registers)
}

/// Carries out a repair transaction.
pub fn linux_repair(request: *const RepairRequest) -> i64 {
    service!(linux_repair: fn(*const RepairRequest) -> i64, request)
}

/// Reports a line.
pub fn report(wanted: *const Report) -> i64 {
    service!(report: fn(*const Report) -> i64, wanted)
}

/// Publishes the status of a check.
pub fn publish(check: u64, status: *const StatusWords) -> i64 {
    service!(publish: fn(u64, *const StatusWords) -> i64, check, status)
}

/// Sets the cokernel's entry points.
pub fn handlers(handlers: *const Handlers) -> i64 {
    service!(handlers: fn(*const Handlers) -> i64, handlers)
}

/// Enters user mode; returns only if the layer refuses.
pub fn enter_user(frame: *mut Frame) -> i64 {
    service!(enter_user: fn(*mut Frame) -> i64, frame)
}

/// Reports a formatted note.
pub fn print(arguments: fmt::Arguments<'_>) {
    let line = Line::<200>::new(arguments);
    let text = line.bytes();
    report(&Report {
        kind: EVENT_NOTE,
        code: 0,
        text: text.as_ptr() as u64,
        bytes: text.len() as u64,
    });
}

/// The time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
