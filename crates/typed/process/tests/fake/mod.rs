//! Imports for tests, some of which give views.

use std::arch::naked_asm;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Once;

use kyozon_typed_checker::program::{RETURNS_VIEW, VIEW_IS_WRITABLE};

const PAGE: usize = 4096;

/// Bytes of the views, and where they are: the one that is read, and the one that may be written.
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static READ: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// A page for views, around which nothing is accessible.
fn page(write: bool) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which replaces none.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), 3 * PAGE, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let page = start.wrapping_byte_add(PAGE);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a page of the mapping, of which there are no references after this block.
    unsafe {
        assert_eq!(libc::mprotect(page, PAGE, both), 0);
        let bytes = std::slice::from_raw_parts_mut(page.cast::<u8>(), PAGE);
        bytes.iter_mut().enumerate().for_each(|(n, byte)| *byte = contents(n));
        let protection = if write { both } else { libc::PROT_READ };
        assert_eq!(libc::mprotect(page, PAGE, protection), 0);
    }
    page as usize
}

/// Byte n of the page of the view that is read.
fn contents(n: usize) -> u8 {
    (n * 7 + n / 256 * 3) as u8
}

// A program calls its imports with any stack pointer that is a multiple of 8, so what they run needs no more.

#[unsafe(naked)]
extern "C" fn view() {
    naked_asm!(
        "mov rax, [rip + {start}]",
        "mov rdx, [rip + {length}]",
        "ret",
        start = sym READ,
        length = sym LENGTH,
    )
}

#[unsafe(naked)]
extern "C" fn writable_view() {
    naked_asm!(
        "mov rax, [rip + {start}]",
        "mov rdx, [rip + {length}]",
        "ret",
        start = sym WRITTEN,
        length = sym LENGTH,
    )
}

extern "C" fn nothing() {}

/// Functions by their numbers. The first of each kind of view gives the last `length` bytes of a page, so that an
/// access behind them ends the process.
pub fn imports(length: usize) -> Vec<extern "C" fn()> {
    static PAGES: Once = Once::new();
    static ENDS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    PAGES.call_once(|| {
        ENDS[0].store(page(false) + PAGE, Ordering::Relaxed);
        ENDS[1].store(page(true) + PAGE, Ordering::Relaxed);
    });
    assert!(length <= PAGE);
    LENGTH.store(length, Ordering::Relaxed);
    READ.store(ENDS[0].load(Ordering::Relaxed) - length, Ordering::Relaxed);
    WRITTEN.store(ENDS[1].load(Ordering::Relaxed) - length, Ordering::Relaxed);
    let mut all =
        vec![nothing as extern "C" fn(); usize::from(RETURNS_VIEW | VIEW_IS_WRITABLE) + 1];
    all[usize::from(RETURNS_VIEW)] = view;
    all[usize::from(RETURNS_VIEW | VIEW_IS_WRITABLE)] = writable_view;
    all
}

/// What the view of so many bytes holds.
#[allow(dead_code)]
pub fn bytes(length: usize) -> Vec<u8> {
    (PAGE - length..PAGE).map(contents).collect()
}
