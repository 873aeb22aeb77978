//! CPUs and their time.

use std::mem::MaybeUninit;

/// Nanoseconds that all threads of this process computed: in programs, of which the library is a part, and in the
/// host's kernel.
pub fn nanoseconds() -> [f64; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is valid; the call cannot fail for this process. It consists of integers.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3)
}

/// The CPUs that the calling thread may use.
pub fn allowed() -> Vec<usize> {
    // SAFETY: the set consists of integers, and the calls access only the set.
    unsafe {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// Keeps the calling thread on a CPU.
pub fn pin(cpu: usize) {
    // SAFETY: as above.
    unsafe {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}
