//! The task in typed code: its calls of the microkernel are imports.

use crate::Kernel;
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::PanicInfo;
use core::sync::atomic::AtomicU64;
use kyozon_abi::layer::REPORT_BYTES;
use kyozon_abi::line::Line;

#[link(wasm_import_module = "task")]
extern "C" {
    fn nothing() -> i64;
    fn wait_tick() -> i64;
    fn exit(code: u32);
    fn report(text: *const u8, bytes: usize) -> i64;
    fn read(physical: u64, to: *mut u64, bytes: usize) -> i64;
    fn clock() -> u64;
    fn parameter() -> u64;
}

/// A page of Linux's memory, copied.
struct Page(UnsafeCell<[u64; 512]>);

// SAFETY: a task in typed code has one thread.
unsafe impl Sync for Page {}

static PAGE: Page = Page(UnsafeCell::new([0; 512]));

struct Imports;

impl Kernel for Imports {
    fn parameter(&self) -> u64 {
        // SAFETY: reads a number.
        unsafe { parameter() }
    }
    fn nothing(&self) {
        // SAFETY: does nothing.
        unsafe { nothing() };
    }
    fn clock(&self) -> u64 {
        // SAFETY: reads a counter.
        unsafe { clock() }
    }
    fn wait_tick(&self) {
        // SAFETY: no memory is touched.
        unsafe { wait_tick() };
    }
    fn page(&mut self, physical: u64) -> Option<&[AtomicU64; 512]> {
        // SAFETY: nothing else uses the page while this is borrowed.
        unsafe {
            let to = PAGE.0.get();
            (read(physical, to.cast(), 4096) == 0).then_some(&*to.cast())
        }
    }
    fn report(&self, line: fmt::Arguments<'_>) {
        let line = Line::<{ REPORT_BYTES as usize }>::new(line);
        // SAFETY: reads the line.
        unsafe { report(line.bytes().as_ptr(), line.bytes().len()) };
    }
}

#[no_mangle]
extern "C" fn run() {
    crate::run(&mut Imports);
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: it does not return.
    unsafe { exit(1) };
    core::arch::wasm32::unreachable()
}
