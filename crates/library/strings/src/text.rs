//! Functions on text that a zero ends. Their contracts are those of ISO C and of glibc; letters are those of ASCII.

use core::cmp::Ordering;
use core::ptr::null;

/// Compares two texts, at most `most` bytes, after each byte went through `map`.
#[inline(always)]
unsafe fn compare(a: *const u8, b: *const u8, most: usize, map: impl Fn(u8) -> u8) -> i32 {
    for i in 0..most {
        // SAFETY: the caller's promise: both texts are valid up to a difference, a zero, or `most` bytes.
        let (x, y) = unsafe { (map(*a.add(i)), map(*b.add(i))) };
        match x.cmp(&y) {
            Ordering::Equal if x == 0 => return 0,
            Ordering::Equal => (),
            _ => return i32::from(x) - i32::from(y),
        }
    }
    0
}

/// Bytes at the start of `text` for which `keep` holds; the zero ends it.
#[inline(always)]
unsafe fn span(text: *const u8, keep: impl Fn(u8) -> bool) -> usize {
    let mut i = 0;
    // SAFETY: the caller's promise: a zero ends the text.
    unsafe {
        while *text.add(i) != 0 && keep(*text.add(i)) {
            i += 1;
        }
    }
    i
}

/// Whether the byte is in the text `set`.
unsafe fn contains(set: *const u8, byte: u8) -> bool {
    // SAFETY: the caller's promise: a zero ends the set.
    unsafe { *set.add(span(set, |other| other != byte)) == byte && byte != 0 }
}

/// strlen(3).
#[no_mangle]
pub unsafe extern "C" fn strlen(text: *const u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { span(text, |_| true) }
}

/// strnlen(3).
#[no_mangle]
pub unsafe extern "C" fn strnlen(text: *const u8, most: usize) -> usize {
    let mut i = 0;
    // SAFETY: the caller's promise: the text is valid up to a zero or `most` bytes.
    while i < most && unsafe { *text.add(i) } != 0 {
        i += 1;
    }
    i
}

/// strcmp(3).
#[no_mangle]
pub unsafe extern "C" fn strcmp(a: *const u8, b: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { compare(a, b, usize::MAX, |byte| byte) }
}

/// strncmp(3).
#[no_mangle]
pub unsafe extern "C" fn strncmp(a: *const u8, b: *const u8, most: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { compare(a, b, most, |byte| byte) }
}

/// strcasecmp(3).
#[no_mangle]
pub unsafe extern "C" fn strcasecmp(a: *const u8, b: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { compare(a, b, usize::MAX, |byte| byte.to_ascii_lowercase()) }
}

/// strncasecmp(3).
#[no_mangle]
pub unsafe extern "C" fn strncasecmp(a: *const u8, b: *const u8, most: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { compare(a, b, most, |byte| byte.to_ascii_lowercase()) }
}

/// strcasecmp_l(3), in the locale "C".
#[no_mangle]
pub unsafe extern "C" fn strcasecmp_l(a: *const u8, b: *const u8, _: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { strcasecmp(a, b) }
}

/// strncasecmp_l(3), in the locale "C".
#[no_mangle]
pub unsafe extern "C" fn strncasecmp_l(a: *const u8, b: *const u8, most: usize, _: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { strncasecmp(a, b, most) }
}

/// strchrnul(3).
#[no_mangle]
pub unsafe extern "C" fn strchrnul(text: *const u8, byte: i32) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { text.add(span(text, |other| other != byte as u8)) }
}

/// strchr(3).
#[no_mangle]
pub unsafe extern "C" fn strchr(text: *const u8, byte: i32) -> *const u8 {
    // SAFETY: the caller's promise; the result is in the text, or its zero.
    unsafe {
        let found = strchrnul(text, byte);
        if *found == byte as u8 {
            found
        } else {
            null()
        }
    }
}

/// strrchr(3).
#[no_mangle]
pub unsafe extern "C" fn strrchr(text: *const u8, byte: i32) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let mut left = strlen(text) + 1;
        while left > 0 {
            left -= 1;
            if *text.add(left) == byte as u8 {
                return text.add(left);
            }
        }
    }
    null()
}

/// stpcpy(3).
#[no_mangle]
pub unsafe extern "C" fn stpcpy(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = strlen(from);
        crate::bytes::memcpy(to, from, bytes + 1).add(bytes)
    }
}

/// strcpy(3).
#[no_mangle]
pub unsafe extern "C" fn strcpy(to: *mut u8, from: *const u8) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { stpcpy(to, from) };
    to
}

/// strncpy(3).
#[no_mangle]
pub unsafe extern "C" fn strncpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let text = strnlen(from, bytes);
        crate::bytes::memcpy(to, from, text);
        crate::bytes::memset(to.add(text), 0, bytes - text);
    }
    to
}

/// strspn(3).
#[no_mangle]
pub unsafe extern "C" fn strspn(text: *const u8, set: *const u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { span(text, |byte| contains(set, byte)) }
}

/// strcspn(3).
#[no_mangle]
pub unsafe extern "C" fn strcspn(text: *const u8, set: *const u8) -> usize {
    // SAFETY: the caller's promise.
    unsafe { span(text, |byte| !contains(set, byte)) }
}

/// strpbrk(3).
#[no_mangle]
pub unsafe extern "C" fn strpbrk(text: *const u8, set: *const u8) -> *const u8 {
    // SAFETY: the caller's promise; the result is in the text, or its zero.
    unsafe {
        let found = text.add(strcspn(text, set));
        if *found == 0 {
            null()
        } else {
            found
        }
    }
}

/// strstr(3).
#[no_mangle]
pub unsafe extern "C" fn strstr(text: *const u8, part: *const u8) -> *const u8 {
    // SAFETY: the caller's promise: `at` stays in the text.
    unsafe {
        let bytes = strlen(part);
        let mut at = text;
        loop {
            if strncmp(at, part, bytes) == 0 {
                return at;
            }
            if *at == 0 {
                return null();
            }
            at = at.add(1);
        }
    }
}

/// wcsnlen(3).
#[no_mangle]
pub unsafe extern "C" fn wcsnlen(text: *const u32, most: usize) -> usize {
    let mut i = 0;
    // SAFETY: the caller's promise: the text is valid up to a zero or `most` words.
    while i < most && unsafe { *text.add(i) } != 0 {
        i += 1;
    }
    i
}

/// wcslen(3).
#[no_mangle]
pub unsafe extern "C" fn wcslen(text: *const u32) -> usize {
    // SAFETY: the caller's promise.
    unsafe { wcsnlen(text, usize::MAX) }
}

alias! {
    __strnlen = strnlen(text: *const u8, most: usize) -> usize;
    __strcasecmp = strcasecmp(a: *const u8, b: *const u8) -> i32;
    __strncasecmp = strncasecmp(a: *const u8, b: *const u8, most: usize) -> i32;
    __strcasecmp_l = strcasecmp_l(a: *const u8, b: *const u8, locale: usize) -> i32;
    __strncasecmp_l = strncasecmp_l(a: *const u8, b: *const u8, most: usize, locale: usize) -> i32;
    __strchrnul = strchrnul(text: *const u8, byte: i32) -> *const u8;
    __stpcpy = stpcpy(to: *mut u8, from: *const u8) -> *mut u8;
    __libc_strstr = strstr(text: *const u8, part: *const u8) -> *const u8;
    __wcsnlen = wcsnlen(text: *const u32, most: usize) -> usize;
    __wcslen = wcslen(text: *const u32) -> usize;
    index = strchr(text: *const u8, byte: i32) -> *const u8;
    rindex = strrchr(text: *const u8, byte: i32) -> *const u8;
}

#[cfg(test)]
mod tests;
