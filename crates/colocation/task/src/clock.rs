//! The time-stamp counter. `StartInfo::tsc_khz` is its rate.

/// The counter's value.
#[inline]
pub fn tsc() -> u64 {
    // SAFETY: reads a counter, which Linux lets user mode read.
    unsafe { core::arch::x86_64::_rdtsc() }
}
