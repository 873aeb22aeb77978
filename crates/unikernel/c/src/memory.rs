//! `malloc` and what belongs to it, over the heap that all machines share: a word before each piece has its size.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;

/// As C aligns, and room for the word.
const ALIGN: usize = 16;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(ALIGN)?, ALIGN).ok()
}

/// As in C.
#[no_mangle]
pub extern "C" fn malloc(bytes: usize) -> *mut u8 {
    let Some(layout) = layout(bytes) else { return core::ptr::null_mut() };
    // SAFETY: not of no bytes; the word lies inside.
    unsafe {
        let base = alloc(layout);
        if base.is_null() {
            return base;
        }
        base.cast::<usize>().write(bytes);
        base.add(ALIGN)
    }
}

/// How many bytes a piece has.
///
/// # Safety
///
/// It is of [`malloc`].
unsafe fn size(at: *mut u8) -> usize {
    // SAFETY: the word before it.
    unsafe { at.sub(ALIGN).cast::<usize>().read() }
}

/// As in C.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn free(at: *mut u8) {
    if at.is_null() {
        return;
    }
    // SAFETY: allocated with this layout, as it could be.
    unsafe {
        if let Some(layout) = layout(size(at)) {
            dealloc(at.sub(ALIGN), layout);
        }
    }
}

/// As in C.
#[no_mangle]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let Some(all) = count.checked_mul(bytes) else { return core::ptr::null_mut() };
    let at = malloc(all);
    if !at.is_null() {
        // SAFETY: a piece of so many bytes.
        unsafe { at.write_bytes(0, all) };
    }
    at
}

/// As in C.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn realloc(at: *mut u8, bytes: usize) -> *mut u8 {
    let to = malloc(bytes);
    if !at.is_null() && !to.is_null() {
        // SAFETY: both pieces have as many bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(at, to, size(at).min(bytes));
            free(at);
        }
    }
    to
}
