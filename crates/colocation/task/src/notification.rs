//! Notifications: 64 bits that one thread sets and another takes.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use kyozon_abi::task::{NOTIFICATION, POLL, SIGNAL, WAIT};

/// A handle of a notification. Calls with a handle that this task does not have return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification(pub u64);

impl Notification {
    /// Makes a notification.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is touched.
        unsafe { raw::simple(NOTIFICATION, 0, 0, 0) }.map(Self)
    }

    /// Sets bits. Never waits.
    pub fn signal(self, bits: u64) -> Result<()> {
        // SAFETY: no memory is touched.
        unsafe { raw::simple(SIGNAL, self.0, bits, 0) }.map(drop)
    }

    fn take(self, number: u64) -> Result<u64> {
        let mut r = Registers { rdi: self.0, ..Registers::default() };
        // SAFETY: no memory is touched.
        Error::check(unsafe { raw::call(number, &mut r) })?;
        Ok(r.words[0])
    }

    /// Waits until a bit is set, and takes all bits.
    pub fn wait(self) -> Result<u64> {
        self.take(WAIT)
    }

    /// Takes all bits without waiting; 0 if none is set.
    pub fn poll(self) -> Result<u64> {
        self.take(POLL)
    }
}
