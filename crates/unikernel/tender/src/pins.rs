//! Which CPU a guest runs on, where that was said.

use crate::error::{ensure, Context, Result};
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// CPUs, one for each guest in turn; none: wherever the kernel likes.
#[derive(Debug, Default)]
pub struct Pins {
    cpus: Vec<usize>,
    /// Guests that have one.
    given: AtomicUsize,
}

/// CPUs that this thread may run on.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

impl Pins {
    /// These, which this thread may run on; the first `guests` are for the guests of the start.
    pub fn new(cpus: &[usize], guests: usize) -> Result<Self> {
        let allowed = if cpus.is_empty() { Vec::new() } else { allowed() };
        for cpu in cpus {
            ensure!(
                Options,
                allowed.contains(cpu),
                "CPU {cpu} cannot be used; these can: {allowed:?}"
            );
        }
        Ok(Self { cpus: cpus.to_vec(), given: AtomicUsize::new(guests) })
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Puts this thread, and the guest's process where it has one, onto the CPU of the `number`th guest of the start,
    /// or of the next one that was made later.
    pub fn pin(&self, number: Option<usize>, child: Option<i32>) -> Result<()> {
        if self.cpus.is_empty() {
            return Ok(());
        }
        let number = number.unwrap_or_else(|| self.given.fetch_add(1, Ordering::Relaxed));
        let cpu = &self.cpus[number % self.cpus.len()];
        let mut set = CpuSet::new();
        set.set(*cpu);
        sched_setaffinity(None, &set).with_context(|| format!("CPU {cpu}"))?;
        if let Some(child) = child.and_then(Pid::from_raw) {
            sched_setaffinity(Some(child), &set).with_context(|| format!("CPU {cpu}"))?;
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
        let pins = Pins::new(&all, 2).unwrap();
        for (at, number) in [Some(0), Some(1), None, None].into_iter().enumerate() {
            let here = std::thread::scope(|scope| {
                scope.spawn(|| pins.pin(number, None).map(|()| allowed())).join().unwrap()
            });
            assert_eq!(here.unwrap(), [all[at % all.len()]]);
        }
        assert_eq!(allowed(), all);
        assert!(Pins::new(&[], 1).unwrap().pin(Some(7), None).is_ok());
        let error = Pins::new(&[1 << 20], 1).unwrap_err().to_string();
        assert!(error.starts_with("CPU 1048576 cannot be used; these can: "), "{error}");
    }
}
