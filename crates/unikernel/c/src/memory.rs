//! `malloc` and the other functions of the heap that all machines share. A word before each piece holds its size.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;

/// The alignment of C, which also leaves room for the word.
const ALIGN: usize = 16;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(ALIGN)?, ALIGN).ok()
}

/// As in C.
#[no_mangle]
pub extern "C" fn malloc(bytes: usize) -> *mut u8 {
    let Some(layout) = layout(bytes) else { return core::ptr::null_mut() };
    // SAFETY: the size is not 0, and the word lies inside.
    unsafe {
        let base = alloc(layout);
        if base.is_null() {
            return base;
        }
        base.cast::<usize>().write(bytes);
        base.add(ALIGN)
    }
}

/// The bytes of a piece.
///
/// # Safety
///
/// [`malloc`] returned the piece.
unsafe fn size(piece: *mut u8) -> usize {
    // SAFETY: the word before the piece holds its size.
    unsafe { piece.sub(ALIGN).cast::<usize>().read() }
}

/// As in C.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn free(piece: *mut u8) {
    if piece.is_null() {
        return;
    }
    // SAFETY: allocated with this layout, which was valid then.
    unsafe {
        if let Some(layout) = layout(size(piece)) {
            dealloc(piece.sub(ALIGN), layout);
        }
    }
}

/// As in C.
#[no_mangle]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let Some(total) = count.checked_mul(bytes) else { return core::ptr::null_mut() };
    let piece = malloc(total);
    if !piece.is_null() {
        // SAFETY: the piece has `total` bytes.
        unsafe { piece.write_bytes(0, total) };
    }
    piece
}

/// As in C.
///
/// # Safety
///
/// As in C.
#[no_mangle]
pub unsafe extern "C" fn realloc(piece: *mut u8, bytes: usize) -> *mut u8 {
    let to = malloc(bytes);
    if !piece.is_null() && !to.is_null() {
        // SAFETY: both pieces have at least so many bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(piece, to, size(piece).min(bytes));
            free(piece);
        }
    }
    to
}
