//! A queue of a device, with its doorbell.

use crate::error::{Context, Result};
use kyozon_devices::ring::Ring;
use std::sync::{Mutex, MutexGuard};
use vmm_sys_util::eventfd::EventFd;

/// A queue and its doorbell.
#[derive(Debug)]
pub struct Queue {
    ring: Mutex<Ring>,
    /// The doorbell that the guest rings.
    pub doorbell: EventFd,
}

impl Queue {
    /// A stopped queue.
    ///
    /// # Errors
    ///
    /// Linux refuses another eventfd.
    pub fn new() -> Result<Self> {
        let doorbell = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
        Ok(Self { ring: Mutex::default(), doorbell })
    }

    /// Locks the queue's ring.
    pub fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(|e| e.into_inner())
    }
}
