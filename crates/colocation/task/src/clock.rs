//! The time-stamp counter; `StartInfo::tsc_khz` says how fast it goes.

/// The counter.
#[inline]
pub fn tsc() -> u64 {
    // SAFETY: reads a counter; Linux leaves it to user mode.
    unsafe { core::arch::x86_64::_rdtsc() }
}
