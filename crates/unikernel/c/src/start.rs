//! From the tender's entry to `main`, and what else a program has from its machine.

use alloc::vec::Vec;
use core::ffi::{c_char, c_int, CStr};
use kyozon_unikernel::{arguments, clock, console};

kyozon_unikernel::main!(run);

extern "C" {
    fn main(count: c_int, words: *const *const c_char) -> c_int;
}

/// The program's name, as images have none.
const NAME: &CStr = c"unikernel";

fn run() -> u8 {
    // Each argument has a zero byte behind it, in pages of the tender's that stay.
    let mut words: Vec<*const c_char> = Vec::new();
    words.push(NAME.as_ptr());
    words.extend(arguments::arguments().map(|word| word.as_ptr().cast()));
    let count = words.len() as c_int;
    words.push(core::ptr::null());
    // SAFETY: the program's; the list ends with a null, and lives as long as it runs.
    let status = unsafe { main(count, words.as_ptr()) };
    status as u8
}

/// Prints a string.
///
/// # Safety
///
/// It ends with a zero byte.
#[no_mangle]
pub unsafe extern "C" fn kyozon_print(text: *const c_char) {
    // SAFETY: the caller's promise.
    console::write(unsafe { CStr::from_ptr(text) }.to_bytes());
}

/// Nanoseconds of the group's clock.
#[no_mangle]
pub extern "C" fn kyozon_now() -> u64 {
    clock::now()
}

/// Ends the calling thread's machine; where it is the first, all of them.
#[no_mangle]
pub extern "C" fn kyozon_exit(status: c_int) -> ! {
    kyozon_unikernel::exit(status as u8)
}
