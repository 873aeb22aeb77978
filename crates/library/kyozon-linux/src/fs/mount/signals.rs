//! Signals that end a mount.

use std::mem::MaybeUninit;
use std::ptr;

/// They unmount. A signal that the process ignores stays ignored, as nohup(1) wants SIGHUP.
const ENDING: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The signals, blocked.
#[derive(Clone, Copy)]
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them in the calling thread, and so in all threads and processes that it starts from here on: a kernel in
    /// another process lives until everything is written.
    pub fn block() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initializes the set; the signals exist.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in ENDING {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        };
        // SAFETY: the set is valid; the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        Self(set)
    }

    /// Waits for one of them.
    pub fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both are valid. The only error is that the set has a signal that does not exist.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}
