//! The C library's functions on bytes and strings, by general registers and SSE2 only.
//!
//! A static executable that links this crate takes these functions instead of the C library's, which chooses variants
//! for AVX at start. So no code of the executable changes the upper halves of vector registers, which then belong to
//! somebody else: a program that runs in the same process, and that Linux promises to keep them across system calls.
//! The test `library/exec` checks the finished executable: it chooses nothing at start.
//!
//! | module | contents |
//! |---|---|
//! | [`bytes`] | memcpy and others: the length is known |
//! | [`text`] | strlen and others: a zero ends the text |
//!
//! Invariants:
//!
//! 1. All names of a function that the C library's object has are here; otherwise the linker takes that object, too.
//! 2. Only the locale "C" exists.
//! 3. Nothing here knows what it is used for.

#![cfg_attr(not(test), no_std)]
// Loops here must not become calls of the functions that they implement.
#![no_builtins]
#![allow(clippy::missing_safety_doc)]

/// The C library's own names for its own calls.
macro_rules! alias {
    ($($alias:ident = $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("As [`", stringify!($name), "`].")]
        #[no_mangle]
        pub unsafe extern "C" fn $alias($($argument: $type),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe { $name($($argument),*) }
        }
    )*};
}

pub mod bytes;
pub mod text;

/// Makes the linker take this crate. Programs call it once.
pub fn link() {
    core::hint::black_box(bytes::memcpy as *const ());
}
