//! Copying, filling and comparing memory, which the compiler calls where a program has a C library. Targets without
//! an operating system bring their own.
//!
//! Short pieces are copied and filled by a few words or vectors, of which the last may overlap others. `rep movsb` and
//! `rep stosb` are as fast as anything for long pieces, on processors of the last ten years (Intel's optimization
//! manual, 3.7.6). There is no loop that the compiler could take for a copy, and make a call of itself.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_set1_epi8, _mm_storeu_si128};
use core::sync::atomic::{compiler_fence, Ordering};

/// Below this many bytes, starting `rep` costs more than it gains.
const SHORT: usize = 128;

/// Calls a macro with the type of word that pieces of `$bytes` bytes, up to [`SHORT`], are made of, and with the
/// positions of these words, which count from both ends.
macro_rules! by_length {
    ($bytes:expr, $piece:ident) => {
        match $bytes {
            0 => {}
            1 => $piece!(u8, 0),
            2..=3 => $piece!(u16, 0),
            4..=7 => $piece!(u32, 0),
            8..=15 => $piece!(u64, 0),
            16..=32 => $piece!(__m128i, 0),
            33..=64 => $piece!(__m128i, 0 1),
            65..=96 => $piece!(__m128i, 0 1 2),
            _ => $piece!(__m128i, 0 1 2 3),
        }
    };
}

/// Copies up to [`SHORT`] bytes. The pieces may overlap, as all bytes are read before any is written.
///
/// # Safety
///
/// Those of [`memmove`].
#[inline(always)]
unsafe fn copy_short(to: *mut u8, from: *const u8, bytes: usize) {
    macro_rules! piece {
        ($word:ty, $($at:literal)*) => {{
            const WORD: usize = size_of::<$word>();
            // SAFETY: inside the pieces, by their length; unaligned accesses need no alignment.
            unsafe {
                let read = |at: usize| from.add(at).cast::<$word>().read_unaligned();
                let first = [$(read($at * WORD)),*];
                let last = [$(read(bytes - ($at + 1) * WORD)),*];
                $(to.add($at * WORD).cast::<$word>().write_unaligned(first[$at]);)*
                $(to.add(bytes - ($at + 1) * WORD).cast::<$word>().write_unaligned(last[$at]);)*
            }
        }};
    }
    by_length!(bytes, piece)
}

/// C's `memcpy`.
///
/// # Safety
///
/// As in C.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise; DF is 0 in the System V ABI.
    unsafe {
        if bytes <= SHORT {
            copy_short(to, from, bytes);
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
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise. Copying upwards overwrites unread bytes only if `to` lies inside the piece at
    // `from`.
    unsafe {
        if bytes <= SHORT {
            copy_short(to, from, bytes);
        } else if (to as usize).wrapping_sub(from as usize) >= bytes {
            memcpy(to, from, bytes);
        } else {
            // Downwards by words from the end. The rest at the beginning is in the word that was read first.
            let first = from.cast::<u64>().read_unaligned();
            let mut left = bytes;
            while left >= 8 {
                left -= 8;
                let word = from.add(left).cast::<u64>().read_unaligned();
                to.add(left).cast::<u64>().write_unaligned(word);
                // Keeps the compiler from replacing the loop by a call of memmove.
                compiler_fence(Ordering::SeqCst);
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
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // As in C, only the lowest byte counts.
    let byte = byte as u8;
    macro_rules! piece {
        (__m128i, $($at:literal)*) => {{
            // SAFETY: SSE2 is part of the architecture; inside the piece, by its length.
            unsafe {
                let word = _mm_set1_epi8(byte as i8);
                $(_mm_storeu_si128(to.add($at * 16).cast(), word);)*
                $(_mm_storeu_si128(to.add(bytes - ($at + 1) * 16).cast(), word);)*
            }
        }};
        ($word:ty, $($at:literal)*) => {{
            let word = <$word>::from_ne_bytes([byte; size_of::<$word>()]);
            // SAFETY: inside the piece, by its length.
            unsafe {
                to.cast::<$word>().write_unaligned(word);
                to.add(bytes - size_of::<$word>()).cast::<$word>().write_unaligned(word);
            }
        }};
    }
    if bytes <= SHORT {
        by_length!(bytes, piece);
    } else {
        // SAFETY: the caller's promise; DF is 0 in the System V ABI.
        unsafe {
            asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte,
                options(nostack, preserves_flags));
        }
    }
    to
}

/// C's `memcmp`.
///
/// # Safety
///
/// As in C.
#[cfg_attr(not(test), no_mangle)]
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
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, bytes) }
}

/// C's `strlen`.
///
/// # Safety
///
/// As in C.
#[cfg_attr(not(test), no_mangle)]
pub unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut bytes = 0;
    // SAFETY: up to the zero byte, by the caller's promise. Volatile, so that the compiler does not replace this loop
    // by a call of strlen.
    while unsafe { text.add(bytes).read_volatile() } != 0 {
        bytes += 1;
    }
    bytes
}

/// Precompiled code that could unwind refers to this. Panics abort, so nothing calls it.
#[cfg(not(test))]
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

/// See [`rust_eh_personality`].
#[cfg(not(test))]
#[no_mangle]
pub extern "C" fn _Unwind_Resume() -> ! {
    crate::exit(101)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    const MAX: usize = 300;

    fn numbers() -> Vec<u8> {
        (0..3 * MAX).map(|number| (number % 251) as u8).collect()
    }

    #[test]
    fn every_length_is_copied() {
        for bytes in 0..MAX {
            let (from, mut to) = (numbers(), std::vec![255; 3 * MAX]);
            // SAFETY: inside both.
            unsafe { memcpy(to.as_mut_ptr().add(5), from.as_ptr().add(MAX), bytes) };
            assert_eq!(to[5..5 + bytes], from[MAX..MAX + bytes], "{bytes}");
            assert!(to[..5].iter().chain(&to[5 + bytes..]).all(|byte| *byte == 255), "{bytes}");
        }
    }

    #[test]
    fn overlapping_pieces_are_moved() {
        for bytes in 0..MAX {
            for at in [MAX - bytes, MAX - bytes / 2, MAX - 1, MAX, MAX + 1, MAX + bytes / 2] {
                let (mut got, mut want) = (numbers(), numbers());
                want.copy_within(MAX..MAX + bytes, at);
                // SAFETY: inside the vector.
                unsafe { memmove(got.as_mut_ptr().add(at), got.as_ptr().add(MAX), bytes) };
                assert!(got == want, "{bytes} to {at}");
            }
        }
    }

    #[test]
    fn every_length_is_filled() {
        for bytes in 0..MAX {
            let (mut got, mut want) = (numbers(), numbers());
            want[7..7 + bytes].fill(0xa5);
            // SAFETY: inside the vector.
            unsafe { memset(got.as_mut_ptr().add(7), 0x1a5, bytes) };
            assert!(got == want, "{bytes}");
        }
    }

    #[test]
    fn the_first_difference_decides_a_comparison() {
        for bytes in 0..40 {
            let same = numbers();
            for at in 0..bytes {
                for byte in [0, 255] {
                    let mut other = numbers();
                    other[at] = byte;
                    // SAFETY: inside both.
                    let order = unsafe { memcmp(same.as_ptr(), other.as_ptr(), bytes) };
                    assert_eq!(order.cmp(&0), same[..bytes].cmp(&other[..bytes]), "{bytes} {at}");
                }
            }
        }
        // SAFETY: the string ends with a zero byte.
        assert_eq!(unsafe { strlen(c"four".as_ptr().cast()) }, 4);
        // SAFETY: inside both.
        assert_eq!(unsafe { bcmp(numbers().as_ptr(), numbers().as_ptr(), MAX) }, 0);
    }
}
