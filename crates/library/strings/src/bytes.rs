//! Functions on bytes whose number is known. Their contracts are those of ISO C and of glibc.

use core::arch::asm;

/// Bytes from which the processor's string instructions are faster than a loop.
const LARGE: usize = 256;

/// memcpy(3).
#[no_mangle]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise: both ranges are valid and do not overlap.
    unsafe { forwards(to, from, bytes) };
    to
}

/// Copies from the start. The last block, and all of a small copy, is read before anything is written to its place.
#[inline(always)]
unsafe fn forwards(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: every access is within the ranges, which the caller promises to be valid.
    unsafe {
        if bytes >= 16 {
            if bytes >= LARGE {
                asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                    options(nostack, preserves_flags));
                return;
            }
            let last = from.add(bytes - 16).cast::<u128>().read_unaligned();
            let mut i = 0;
            while i < bytes - 16 {
                let block = from.add(i).cast::<u128>().read_unaligned();
                to.add(i).cast::<u128>().write_unaligned(block);
                i += 16;
            }
            to.add(bytes - 16).cast::<u128>().write_unaligned(last);
        } else if bytes >= 8 {
            let first = from.cast::<u64>().read_unaligned();
            let last = from.add(bytes - 8).cast::<u64>().read_unaligned();
            to.cast::<u64>().write_unaligned(first);
            to.add(bytes - 8).cast::<u64>().write_unaligned(last);
        } else if bytes >= 4 {
            let first = from.cast::<u32>().read_unaligned();
            let last = from.add(bytes - 4).cast::<u32>().read_unaligned();
            to.cast::<u32>().write_unaligned(first);
            to.add(bytes - 4).cast::<u32>().write_unaligned(last);
        } else if bytes > 0 {
            let (first, middle, last) = (*from, *from.add(bytes / 2), *from.add(bytes - 1));
            *to = first;
            *to.add(bytes / 2) = middle;
            *to.add(bytes - 1) = last;
        }
    }
}

/// memmove(3).
#[no_mangle]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise: both ranges are valid.
    unsafe {
        if bytes < 16 || (to as usize).wrapping_sub(from as usize) >= bytes {
            // If they overlap, the target comes first, or all is read before anything is written.
            forwards(to, from, bytes);
        } else {
            // The source comes first: backwards.
            let first = from.cast::<u128>().read_unaligned();
            let mut left = bytes;
            while left > 16 {
                left -= 16;
                let block = from.add(left).cast::<u128>().read_unaligned();
                to.add(left).cast::<u128>().write_unaligned(block);
            }
            to.cast::<u128>().write_unaligned(first);
        }
    }
    to
}

/// mempcpy(3).
#[no_mangle]
pub unsafe extern "C" fn mempcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { memcpy(to, from, bytes).add(bytes) }
}

/// memset(3).
#[no_mangle]
pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise: the range is valid.
    unsafe {
        if bytes >= LARGE {
            asm!("rep stosb", inout("rcx") bytes => _, inout("rdi") to => _, in("al") byte as u8,
                options(nostack, preserves_flags));
        } else if bytes >= 16 {
            let pattern = u128::from_ne_bytes([byte as u8; 16]);
            let mut i = 0;
            while i < bytes - 16 {
                to.add(i).cast::<u128>().write_unaligned(pattern);
                i += 16;
            }
            to.add(bytes - 16).cast::<u128>().write_unaligned(pattern);
        } else {
            for i in 0..bytes {
                *to.add(i) = byte as u8;
            }
        }
    }
    to
}

/// memcmp(3).
#[no_mangle]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    let mut i = 0;
    // SAFETY: the caller's promise: both ranges are valid.
    unsafe {
        while bytes - i >= 8 {
            let x = a.add(i).cast::<u64>().read_unaligned();
            let y = b.add(i).cast::<u64>().read_unaligned();
            if x != y {
                return if x.swap_bytes() < y.swap_bytes() { -1 } else { 1 };
            }
            i += 8;
        }
        while i < bytes {
            let (x, y) = (*a.add(i), *b.add(i));
            if x != y {
                return i32::from(x) - i32::from(y);
            }
            i += 1;
        }
    }
    0
}

/// bcmp(3).
#[no_mangle]
pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { memcmp(a, b, bytes) }
}

/// memchr(3).
#[no_mangle]
pub unsafe extern "C" fn memchr(text: *const u8, byte: i32, bytes: usize) -> *const u8 {
    for i in 0..bytes {
        // SAFETY: the caller's promise: the range is valid up to the byte.
        unsafe {
            if *text.add(i) == byte as u8 {
                return text.add(i);
            }
        }
    }
    core::ptr::null()
}

/// rawmemchr(3).
#[no_mangle]
pub unsafe extern "C" fn rawmemchr(text: *const u8, byte: i32) -> *const u8 {
    // SAFETY: the caller's promise: the byte is there.
    unsafe { memchr(text, byte, usize::MAX) }
}

/// wmemset(3).
#[no_mangle]
pub unsafe extern "C" fn wmemset(to: *mut u32, word: u32, words: usize) -> *mut u32 {
    for i in 0..words {
        // SAFETY: the caller's promise: the range is valid.
        unsafe { *to.add(i) = word };
    }
    to
}

/// wmemchr(3).
#[no_mangle]
pub unsafe extern "C" fn wmemchr(text: *const u32, word: u32, words: usize) -> *const u32 {
    for i in 0..words {
        // SAFETY: the caller's promise: the range is valid up to the word.
        unsafe {
            if *text.add(i) == word {
                return text.add(i);
            }
        }
    }
    core::ptr::null()
}

alias! {
    __memchr = memchr(text: *const u8, byte: i32, bytes: usize) -> *const u8;
    __mempcpy = mempcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    __rawmemchr = rawmemchr(text: *const u8, byte: i32) -> *const u8;
    __wmemset = wmemset(to: *mut u32, word: u32, words: usize) -> *mut u32;
    __wmemchr = wmemchr(text: *const u32, word: u32, words: usize) -> *const u32;
    __libc_memmove = memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
}

#[cfg(test)]
mod tests;
