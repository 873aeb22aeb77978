//! One queue of a device and the doorbell that the guest rings for it.

use crate::error::{Context, Result};
use kyozon_devices::ring::Ring;
use std::sync::{Mutex, MutexGuard};
use vmm_sys_util::eventfd::EventFd;

/// A queue, and its doorbell.
#[derive(Debug)]
pub struct Line {
    ring: Mutex<Ring>,
    /// What the guest rings.
    pub bell: EventFd,
}

impl Line {
    /// A queue that was not started.
    pub fn new() -> Result<Self> {
        let bell = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
        Ok(Self { ring: Mutex::default(), bell })
    }

    /// The queue, for this thread alone.
    pub fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(|e| e.into_inner())
    }
}
