//! The border to C.

use core::mem::MaybeUninit;

use kyozon_abi::typed::{TypedChecker, TYPED_PANIC};

use crate::arena::cut;
use crate::call::{call, Message};

/// Memory of the module's as a slice.
///
/// # Safety
///
/// `address` has `count` values of T, which only the caller uses until 'a is over.
unsafe fn slice<'a, T>(address: u64, count: u64) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(address as *mut T, count as usize) }
}

/// Checks a program.
///
/// # Safety
///
/// The addresses in `request` are memory of the sizes there, not null and aligned for their contents, which nothing
/// else uses until this returns, or until the panic handler leaves it.
#[no_mangle]
pub unsafe extern "C" fn kyozon_typed_check(request: &mut TypedChecker) {
    // SAFETY: the caller's promise; the five are apart from each other.
    let (file, words, faults, message) = unsafe {
        (
            slice::<u8>(request.file, request.file_bytes),
            slice::<MaybeUninit<u64>>(request.memory, request.memory_bytes / 8),
            slice::<u32>(request.faults, request.fault_room),
            slice::<u8>(request.message, request.message_bytes),
        )
    };
    assert!(request.host & TYPED_PANIC == 0, "a test wants a panic");
    let mut message = Message::new(message);
    let mut memory = cut(words);
    (request.result, request.contents) =
        call(file, request.host, &mut memory, faults, &mut message, pause);
}

/// Lets other tasks run; whether to go on.
fn pause() -> bool {
    #[cfg(target_os = "none")]
    {
        extern "C" {
            fn kyozon_typed_pause() -> bool;
        }
        // SAFETY: a function of the module for this moment: nothing here holds a lock.
        unsafe { kyozon_typed_pause() }
    }
    #[cfg(not(target_os = "none"))]
    true
}

/// A bug of the checker must not take the kernel with it. Nothing here owns a lock or memory, so the module leaves the
/// check by restoring its own stack pointer, and refuses the program.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    extern "C" {
        /// Does not return. It is not declared so, because the kernel's objtool would then miss the end of this.
        fn kyozon_typed_panicked(file: *const u8, bytes: usize, line: u32);
    }
    let (file, line) = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    loop {
        // SAFETY: the string is static.
        unsafe { kyozon_typed_panicked(file.as_ptr(), file.len(), line) };
    }
}
