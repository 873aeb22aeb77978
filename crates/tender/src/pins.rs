//! Which CPU a guest runs on, where that was said.

use anyhow::{ensure, Result};
use std::io::Error;

/// CPUs, one for each guest in turn; none: wherever the kernel likes.
#[derive(Debug, Default)]
pub struct Pins(Vec<usize>);

/// CPUs that this thread may run on.
pub fn allowed() -> Vec<usize> {
    // SAFETY: a set of this function's, which the kernel fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

impl Pins {
    /// These, which this thread may run on.
    pub fn new(cpus: &[usize]) -> Result<Self> {
        let allowed = if cpus.is_empty() { Vec::new() } else { allowed() };
        for cpu in cpus {
            ensure!(allowed.contains(cpu), "CPU {cpu} cannot be used; these can: {allowed:?}");
        }
        Ok(Self(cpus.to_vec()))
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts this thread, and the guest's process where it has one, onto the CPU of the `number`th guest.
    pub fn pin(&self, number: usize, child: Option<i32>) -> Result<()> {
        let Some(cpu) = self.0.get(number % self.0.len().max(1)) else { return Ok(()) };
        // SAFETY: a set of this function's, with a number below its size.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(*cpu, &mut set);
            set
        };
        for thread in [Some(0), child].into_iter().flatten() {
            // SAFETY: a set that lives, of the size that is said.
            let done = unsafe { libc::sched_setaffinity(thread, size_of_val(&set), &set) };
            ensure!(done == 0, "CPU {cpu}: {}", Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_where_it_was_put() {
        let all = allowed();
        let pins = Pins::new(&all).unwrap();
        for number in 0..3 {
            let here = std::thread::scope(|scope| {
                scope.spawn(|| pins.pin(number, None).map(|()| allowed())).join().unwrap()
            });
            assert_eq!(here.unwrap(), [all[number % all.len()]]);
        }
        assert_eq!(allowed(), all);
        assert!(Pins::new(&[]).unwrap().pin(7, None).is_ok());
        let error = Pins::new(&[1 << 20]).unwrap_err().to_string();
        assert!(error.starts_with("CPU 1048576 cannot be used; these can: "), "{error}");
    }
}
