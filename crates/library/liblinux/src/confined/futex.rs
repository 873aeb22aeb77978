//! Waiting on a word of memory that two processes share.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits while `word` is `value`, until [`wake`], a signal, or the end of `limit`.
pub fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let time = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: word and time live through the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, time) };
}

/// Wakes the thread that waits on `word`.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the kernel compares the address with those of waiting threads.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
