//! SIGINT, SIGTERM and SIGHUP. The first one ends a command between two steps, so that images are unmounted, and a
//! typed program that runs; the second one ends the process at once.

use anyhow::{bail, Result};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

static RECEIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::SeqCst);
    kyozon_typed_runner::stop();
}

/// Handles the signals from here on, but those that the process ignores (nohup).
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: structures of integers, for which all zeros are valid. The handler only stores a number.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action);
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Whether a signal has come.
pub fn received() -> bool {
    RECEIVED.load(Ordering::SeqCst) != 0
}

/// An error if a signal has come.
pub fn check() -> Result<()> {
    if received() {
        bail!("interrupted");
    }
    Ok(())
}

/// Ends the process as the signal would have, if one has come: the shell that waits for it then knows.
pub fn end() {
    let signal = RECEIVED.load(Ordering::SeqCst);
    if signal != 0 {
        // SAFETY: the default action of these signals ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
