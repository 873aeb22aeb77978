//! Copying, filling and comparing memory, which the compiler calls where a program has a C library. Targets without
//! an operating system bring their own.
//!
//! `rep movsb` and `rep stosb` are as fast as anything for long pieces, on processors of the last ten years (Intel's
//! optimization manual, 3.7.6); short pieces are copied by two words that may overlap.

use core::arch::asm;

/// Below this many bytes, starting `rep` costs more than it gains.
const SHORT: usize = 16;

/// Copies up to [`SHORT`] bytes: all are read before any is written, so that they may overlap.
///
/// # Safety
///
/// As [`memmove`].
#[inline(always)]
unsafe fn short(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: both words of each case lie inside the pieces, by their lengths.
    unsafe {
        match bytes {
            8..=SHORT => {
                let first = from.cast::<u64>().read_unaligned();
                let last = from.add(bytes - 8).cast::<u64>().read_unaligned();
                to.cast::<u64>().write_unaligned(first);
                to.add(bytes - 8).cast::<u64>().write_unaligned(last);
            }
            4..=7 => {
                let first = from.cast::<u32>().read_unaligned();
                let last = from.add(bytes - 4).cast::<u32>().read_unaligned();
                to.cast::<u32>().write_unaligned(first);
                to.add(bytes - 4).cast::<u32>().write_unaligned(last);
            }
            1..=3 => {
                let (first, middle, last) = (*from, *from.add(bytes / 2), *from.add(bytes - 1));
                *to = first;
                *to.add(bytes / 2) = middle;
                *to.add(bytes - 1) = last;
            }
            _ => {}
        }
    }
}

/// C's `memcpy`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; DF is 0 in the System V ABI.
    unsafe {
        if bytes <= SHORT {
            short(to, from, bytes);
        } else {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }
    to
}

/// C's `memmove`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise. Upwards, what is read is not yet written unless `to` lies inside `from`'s piece.
    unsafe {
        if bytes <= SHORT {
            short(to, from, bytes);
        } else if (to as usize).wrapping_sub(from as usize) >= bytes {
            memcpy(to, from, bytes);
        } else {
            // Downwards, by words from the end, then what is left at the beginning, which a word read before holds.
            let first = from.cast::<u64>().read_unaligned();
            let mut left = bytes;
            while left >= 8 {
                left -= 8;
                let word = from.add(left).cast::<u64>().read_unaligned();
                to.add(left).cast::<u64>().write_unaligned(word);
            }
            to.cast::<u64>().write_unaligned(first);
        }
    }
    to
}

/// C's `memset`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; DF is 0 in the System V ABI.
    unsafe {
        asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags));
    }
    to
}

/// C's `memcmp`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    let mut at = 0;
    // SAFETY: inside both pieces, by the caller's promise.
    unsafe {
        while at + 8 <= bytes {
            let (x, y) = (
                a.add(at).cast::<u64>().read_unaligned(),
                b.add(at).cast::<u64>().read_unaligned(),
            );
            if x != y {
                return if x.swap_bytes() < y.swap_bytes() { -1 } else { 1 };
            }
            at += 8;
        }
        while at < bytes {
            let (x, y) = (*a.add(at), *b.add(at));
            if x != y {
                return i32::from(x) - i32::from(y);
            }
            at += 1;
        }
    }
    0
}

/// C's `bcmp`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, bytes) }
}

/// C's `strlen`.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut bytes = 0;
    // SAFETY: up to the zero byte, by the caller's promise. Volatile, so that this loop does not become a call of
    // itself.
    while unsafe { text.add(bytes).read_volatile() } != 0 {
        bytes += 1;
    }
    bytes
}

/// What precompiled code that could unwind refers to. Panics abort: nothing calls it.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

/// As above.
#[no_mangle]
pub extern "C" fn _Unwind_Resume() -> ! {
    crate::exit(101)
}
