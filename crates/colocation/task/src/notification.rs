//! Notifications: 64 bits that one side sets and the other takes.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use kyozon_abi::task::{NOTIFICATION, POLL, SIGNAL, WAIT};

/// A handle of a notification. It may be one that this task does not have: the kernel then says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification(pub u64);

impl Notification {
    /// Makes one.
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

    /// Waits until a bit is set, and takes all.
    pub fn wait(self) -> Result<u64> {
        self.take(WAIT)
    }

    /// Takes all, also none.
    pub fn poll(self) -> Result<u64> {
        self.take(POLL)
    }
}
