//! CPU time.

use std::mem::MaybeUninit;

/// Nanoseconds that all threads of this process computed, in programs and in the host's kernel.
pub fn nanoseconds() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is valid; the call cannot fail for this process. It consists of integers.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3)
        .sum()
}
