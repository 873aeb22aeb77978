//! The panic handler: the tender prints the message, and a backtrace with the symbols of the image's file.

use crate::raw;
use core::fmt::Write;
use core::panic::PanicInfo;
use kyozon_abi::unikernel::ASK_PANIC;

/// A panic message, cut when the buffer is full. Nothing is allocated: the heap may be what broke.
struct Message {
    bytes: [u8; 1024],
    used: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.bytes[self.used..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut message = Message { bytes: [0; 1024], used: 0 };
    let _ = match info.location() {
        Some(at) => write!(message, "{}, at {}:{}", info.message(), at.file(), at.line()),
        None => write!(message, "{}", info.message()),
    };
    crate::thread::record_panic(&message.bytes[..message.used]);
    // SAFETY: the tender reads these bytes. The call does not return.
    let _ = unsafe { raw::ask(ASK_PANIC, &[message.bytes.as_ptr() as u64, message.used as u64]) };
    crate::exit(101)
}
