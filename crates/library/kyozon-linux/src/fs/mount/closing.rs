//! Descriptors that are closed when nobody uses them any more: by the next thread that makes system calls.

use liblinux::calls::{Calls, Fd, Result};
use liblinux::Errno;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;

/// How often, and how many milliseconds apart, room is looked for before a disk is full.
const PATIENCE: [u64; 4] = [0, 1, 10, 50];

/// An open descriptor of the kernel.
pub struct Held {
    /// Its number.
    pub fd: Fd,
    closing: Arc<Closing>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.closing.add(self.fd);
    }
}

/// Descriptors that wait for being closed, and how many are open.
#[derive(Default)]
pub struct Closing {
    waiting: Mutex<Vec<Fd>>,
    open: AtomicUsize,
}

impl Closing {
    /// A descriptor that was just opened.
    pub fn hold(self: &Arc<Self>, fd: Fd) -> Arc<Held> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Arc::new(Held { fd, closing: self.clone() })
    }

    /// How many descriptors are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Fd>> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn add(&self, fd: Fd) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.waiting().push(fd);
    }

    /// Closes those that nobody uses.
    pub fn sweep(&self, calls: &dyn Calls) {
        let waiting = std::mem::take(&mut *self.waiting());
        for fd in waiting {
            // A descriptor that was only read, or whose writes were reported, has nothing to lose.
            let _ = calls.close(fd);
        }
    }

    /// Does what takes room on the disk. The host tells this process that a deleted file is unused only after the
    /// program that deleted it goes on, and perhaps to another thread: its room may be free in a moment.
    pub fn with_room<T>(&self, calls: &dyn Calls, work: impl Fn() -> Result<T>) -> Result<T> {
        for pause in PATIENCE {
            match work() {
                Err(Errno(libc::ENOSPC | libc::EDQUOT)) => {
                    sleep(Duration::from_millis(pause));
                    self.sweep(calls);
                }
                done => return done,
            }
        }
        work()
    }
}

#[cfg(test)]
mod tests;
