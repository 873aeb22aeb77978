//! What the child of a vfork does to the memory of its parent. The child has a copy of the memory, because it must not
//! touch the library. What it changes in the parent's stack frames is shown to the parent, though: that is how
//! posix_spawn(3) learns of an execve(2) that failed.

use crate::host;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes above the stack pointer of the call.
const BYTES: usize = 16 << 10;

/// Memory that both processes share.
#[repr(C)]
struct Page {
    shown: u8,
    bytes: [u8; BYTES],
}

/// The parent's frames, before the call.
pub struct Frames {
    page: *mut Page,
    stack: u64,
    before: Vec<u8>,
}

/// In a child: where the parent looks, and which memory that is.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());
static STACK: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

impl Frames {
    /// Notes the frames above `stack`, in the parent.
    pub fn new(stack: u64) -> Option<Self> {
        let mut before = vec![0; BYTES];
        let bytes = host::read(stack, &mut before).ok()?;
        before.truncate(bytes);
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u64;
        let arguments = [0, size_of::<Page>() as u64, protection, flags, u64::MAX, 0];
        let page = host::call(libc::SYS_mmap, &arguments);
        (page > 0).then_some(Self { page: page as *mut Page, stack, before })
    }

    /// Takes over what the child changed, in the parent, which was asleep meanwhile.
    pub fn take(self) {
        // SAFETY: the page was mapped for this; the child has left the memory. The frames belong to the calling
        // thread's program, and were readable. Bytes that the child left alone are not written.
        unsafe {
            if (*self.page).shown == 1 {
                for (i, &before) in self.before.iter().enumerate() {
                    let now = (*self.page).bytes[i];
                    if now != before {
                        (self.stack as *mut u8).add(i).write_volatile(now);
                    }
                }
            }
        }
        host::call(libc::SYS_munmap, &[self.page as u64, size_of::<Page>() as u64]);
    }
}

/// This process is the child.
pub fn set(frames: Option<Frames>) {
    let (page, stack) = frames.map_or_else(
        || (std::ptr::null_mut(), std::ptr::null_mut()),
        |frames| (frames.page, frames.stack as *mut u8),
    );
    PAGE.store(page, Ordering::Relaxed);
    STACK.store(stack, Ordering::Relaxed);
}

/// The child leaves the memory: shows the parent what it changed. Does nothing in other processes.
pub fn show() {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return;
    }
    let stack = STACK.load(Ordering::Relaxed) as u64;
    // SAFETY: only this process writes the page, while the parent sleeps.
    unsafe {
        if host::read(stack, &mut (*page).bytes).is_ok() {
            (*page).shown = 1;
        }
    }
}
