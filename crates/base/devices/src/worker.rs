//! A thread of a device, and the bells that wake it.

use rustix::event::{eventfd, EventfdFlags};
use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// An eventfd. Ringing it several times before the thread looks counts once.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    ///
    /// Linux refuses another descriptor.
    pub fn new() -> Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Wakes the thread. Does not block.
    pub fn ring(&self) {
        // The write fails only if the counter is full; then the bell has been rung.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it silent. Returns whether it had been rung.
    pub fn clear(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A thread. Dropping it stops the thread and waits for its end.
#[derive(Debug)]
pub struct Worker {
    stop: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that runs `work` until the bell that it gets is rung. It handles no signals from outside: those
    /// are for the program's own threads.
    ///
    /// # Errors
    ///
    /// Linux refuses another descriptor or thread.
    pub fn start(name: &str, work: impl FnOnce(&Bell) + Send + 'static) -> Result<Self> {
        let stop = Arc::new(Bell::new()?);
        let rung = stop.clone();
        let signals = Blocked::all();
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(&rung));
        drop(signals);
        Ok(Self { stop, thread: Some(thread?) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Signals that an instruction causes. An interrupt may run the guest's code in this thread, whose faults have a
/// handler.
const FAULTS: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Blocks the calling thread's signals, except faults. A new thread inherits that. Dropping it restores the signals.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Self {
        // SAFETY: all zeros are a valid value, and the functions access only these two values.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&mut all);
            for fault in FAULTS {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Self(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the value is the one that Linux returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests;
