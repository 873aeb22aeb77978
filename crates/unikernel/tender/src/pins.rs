//! Pins guests to CPUs.

use crate::error::{ensure, Context, Result};
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The CPUs of the guests, which get them in turn. If there are none, Linux chooses.
#[derive(Debug, Default)]
pub struct Pins {
    cpus: Vec<usize>,
    /// Number of the next guest that is spawned later.
    next: AtomicUsize,
}

/// CPUs that the calling thread may run on.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

impl Pins {
    /// Guest `n` of the first `guests` guests gets CPU `n` of `cpus`, modulo their count.
    ///
    /// # Errors
    ///
    /// The calling thread may not run on one of the CPUs.
    pub fn new(cpus: &[usize], guests: usize) -> Result<Self> {
        let allowed = if cpus.is_empty() { Vec::new() } else { allowed() };
        for cpu in cpus {
            ensure!(
                Options,
                allowed.contains(cpu),
                "CPU {cpu} is not available: use some of {allowed:?}"
            );
        }
        Ok(Self { cpus: cpus.to_vec(), next: AtomicUsize::new(guests) })
    }

    /// Whether no guest is pinned.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Pins the calling thread, and the process `child` if the guest has one. `number` is the number of a guest that
    /// existed at the start; `None` takes the number of the next spawned guest.
    ///
    /// # Errors
    ///
    /// Linux refuses the CPU.
    pub fn pin(&self, number: Option<usize>, child: Option<i32>) -> Result<()> {
        if self.cpus.is_empty() {
            return Ok(());
        }
        let number = number.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        let cpu = &self.cpus[number % self.cpus.len()];
        let mut set = CpuSet::new();
        set.set(*cpu);
        sched_setaffinity(None, &set).with_context(|| format!("cannot use CPU {cpu}"))?;
        if let Some(child) = child.and_then(Pid::from_raw) {
            sched_setaffinity(Some(child), &set)
                .with_context(|| format!("cannot use CPU {cpu}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_get_cpus_in_turn() {
        let all = allowed();
        let pins = Pins::new(&all, 2).unwrap();
        for (i, number) in [Some(0), Some(1), None, None].into_iter().enumerate() {
            let cpus = std::thread::scope(|scope| {
                scope.spawn(|| pins.pin(number, None).map(|()| allowed())).join().unwrap()
            });
            assert_eq!(cpus.unwrap(), [all[i % all.len()]]);
        }
        assert_eq!(allowed(), all);
        assert!(Pins::new(&[], 1).unwrap().pin(Some(7), None).is_ok());
        let error = Pins::new(&[1 << 20], 1).unwrap_err().to_string();
        assert!(error.starts_with("CPU 1048576 is not available: use some of "), "{error}");
    }
}
