//! The way from the tender's entry to `main`, and the functions of kyozon.h that concern the machine.

use alloc::vec::Vec;
use core::ffi::{c_char, c_int, CStr};
use kyozon_unikernel::{arguments, clock, console};

kyozon_unikernel::main!(run);

extern "C" {
    fn main(count: c_int, words: *const *const c_char) -> c_int;
}

/// The program's name in `argv[0]`, as images have none.
const NAME: &CStr = c"unikernel";

fn run() -> u8 {
    crate::locks::enter();
    // A zero byte follows each argument, in pages that stay mapped.
    let mut words: Vec<*const c_char> = Vec::new();
    words.push(NAME.as_ptr());
    words.extend(arguments::arguments().map(|word| word.as_ptr().cast()));
    let count = words.len() as c_int;
    words.push(core::ptr::null());
    // SAFETY: the program's main function; the list ends with a null pointer, and outlives the call.
    let status = unsafe { main(count, words.as_ptr()) };
    status as u8
}

/// Prints a string.
///
/// # Safety
///
/// The string ends with a zero byte.
#[no_mangle]
pub unsafe extern "C" fn kyozon_print(text: *const c_char) {
    // SAFETY: the caller's promise.
    console::write(unsafe { CStr::from_ptr(text) }.to_bytes());
}

/// The group's clock, in nanoseconds.
#[no_mangle]
pub extern "C" fn kyozon_now() -> u64 {
    clock::now()
}

/// Ends the calling thread's machine; in the first thread, all machines.
#[no_mangle]
pub extern "C" fn kyozon_exit(status: c_int) -> ! {
    kyozon_unikernel::exit(status as u8)
}
