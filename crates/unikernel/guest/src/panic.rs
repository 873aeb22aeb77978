//! A panic: the tender prints what it was about, and a backtrace with names, which are in the file that it has.

use crate::raw;
use core::fmt::Write;
use core::panic::PanicInfo;
use kyozon_abi::unikernel::ASK_PANIC;

/// Words of a panic, cut where they are too many. Nothing is allocated: the heap may be what broke.
struct Words {
    bytes: [u8; 1024],
    used: usize,
}

impl Write for Words {
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
    let mut words = Words { bytes: [0; 1024], used: 0 };
    let _ = match info.location() {
        Some(at) => write!(words, "{}, at {}:{}", info.message(), at.file(), at.line()),
        None => write!(words, "{}", info.message()),
    };
    crate::thread::panicked(&words.bytes[..words.used]);
    // SAFETY: the tender reads these bytes. It does not come back.
    let _ = unsafe { raw::ask(ASK_PANIC, &[words.bytes.as_ptr() as u64, words.used as u64]) };
    crate::exit(101)
}
