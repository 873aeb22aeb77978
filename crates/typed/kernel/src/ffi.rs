//! The border to C.

use core::mem::MaybeUninit;

use kyozon_abi::typed::{
    TypedBuild, TypedChecker, TypedGate, TYPED_ACCEPTED, TYPED_HAS_RESULT, TYPED_OUTSIDE_GATES,
    TYPED_PANIC, TYPED_REFUSED, TYPED_THUNKS,
};

use crate::arena::cut;
use crate::call::{call, image, Message};
use crate::image::Place;

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
/// The addresses in `request` are memory of the sizes there, not null (but for imports) and aligned for their
/// contents, which nothing else uses until this returns, or until the panic handler leaves it.
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
    let (result, accepted) = call(file, request.host, &mut memory, faults, &mut message, pause);
    request.result = result;
    request.contents = accepted.contents;
    request.image_bytes = accepted.image;
    request.properties = accepted.properties;
}

/// Makes the image of a program.
///
/// # Safety
///
/// As for [`kyozon_typed_check`]. The file is one that was accepted for the same host, and has not changed since.
#[no_mangle]
pub unsafe extern "C" fn kyozon_typed_build(request: &mut TypedBuild) {
    // SAFETY: the caller's promise; the seven are apart from each other.
    let (file, target, gates, thunks, outside, imports, message) = unsafe {
        (
            slice::<u8>(request.file, request.file_bytes),
            slice::<u8>(request.image, request.image_bytes),
            slice::<TypedGate>(request.gates, request.gate_count),
            slice::<u64>(request.thunks, TYPED_THUNKS as u64),
            slice::<u64>(request.outside, TYPED_OUTSIDE_GATES as u64),
            (request.imports != 0).then(|| slice::<u32>(request.imports, request.import_count)),
            slice::<u8>(request.message, request.message_bytes),
        )
    };
    let imports = imports.map(|numbers| &*numbers);
    let place = Place { image: target, address: request.address, gates, thunks, imports, outside };
    let entry = image(file, request.host, place, &mut Message::new(message), pause);
    request.result = if entry.is_some() { TYPED_ACCEPTED } else { TYPED_REFUSED };
    if let Some(entry) = entry {
        request.entry = entry.offset;
        request.masks = entry.masks;
        request.outside_arguments = entry.outside_arguments;
        request.properties = if entry.result { TYPED_HAS_RESULT } else { 0 };
    }
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
