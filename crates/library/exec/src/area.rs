//! Where the program's files and heap go: into an area of our own, with free space around each, because the rewriter
//! needs the places where its jumps land ([`crate::patch`]). Without this, the host would put the program's libraries
//! directly below ours.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Where the area begins, at the least.
const START: u64 = 1 << 40;
/// The area's start is a random multiple of this.
const STEP: u64 = 1 << 24;
/// Free bytes behind each range: after `syscall; cmp $-4095, %rax` a jump lands 20 MiB further on.
const GAP: u64 = 64 << 20;

static NEXT: OnceLock<AtomicU64> = OnceLock::new();

fn start() -> AtomicU64 {
    let mut random = 0u16;
    // SAFETY: the buffer is valid. Without random bytes the area is where it always is.
    unsafe { libc::getrandom((&raw mut random).cast(), size_of::<u16>(), 0) };
    AtomicU64::new(START + u64::from(random) * STEP)
}

/// An address for `bytes`, to be passed to mmap(2) as a hint.
pub fn hint(bytes: u64) -> u64 {
    let bytes = bytes.next_multiple_of(1 << 21) + GAP;
    NEXT.get_or_init(start).fetch_add(bytes, Ordering::Relaxed)
}
