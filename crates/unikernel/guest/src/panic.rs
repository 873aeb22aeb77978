//! The panic handler: the tender prints the message, and a backtrace with the symbols of the image's file.

use crate::raw;
use core::fmt::Write;
use core::panic::PanicInfo;
use kyozon_abi::line::Line;
use kyozon_abi::unikernel::ASK_PANIC;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    // Nothing is allocated: the heap may be what broke.
    let mut message = Line::<1024>::EMPTY;
    let _ = match info.location() {
        Some(at) => write!(message, "{}, at {}:{}", info.message(), at.file(), at.line()),
        None => write!(message, "{}", info.message()),
    };
    let text = message.bytes();
    crate::thread::record_panic(text);
    // SAFETY: the tender reads these bytes. The call does not return.
    let _ = unsafe { raw::hypercall(ASK_PANIC, &[text.as_ptr() as u64, text.len() as u64]) };
    crate::exit(101)
}
