//! Where the two sides run: on CPUs of their own. Two that wait for each other on one CPU measure its scheduler.

/// The calling thread takes a side, 0 or 1.
#[cfg(feature = "image")]
pub fn take(_: usize) {}

/// The calling thread takes a side, 0 or 1.
#[cfg(not(feature = "image"))]
pub fn take(side: usize) {
    use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
    use std::sync::OnceLock;
    // As it was before the first side was taken.
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    let allowed = ALLOWED.get_or_init(|| {
        let set = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
    });
    if let Some(cpu) = allowed.get(side % allowed.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(*cpu);
        // Where that cannot be, it runs where it is.
        let _ = sched_setaffinity(None, &set);
    }
}
