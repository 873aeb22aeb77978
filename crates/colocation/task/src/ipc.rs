//! Messages.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use kyozon_abi::task::*;

/// A handle of an endpoint. Calls with a handle that this task does not have return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(pub u64);

/// Six words.
pub type Words = [u64; 6];

/// A page or handle that accompanies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Nothing.
    None,
    /// The page at `address` is shared; the receiver may write to it if `write`.
    Page {
        /// A multiple of 4096.
        address: u64,
        /// Requires that the sender may write to the page.
        write: bool,
    },
    /// A copy of a handle, with those of its rights that are in the mask `rights` (`HANDLE_*`).
    Handle {
        /// Its number.
        number: u64,
        /// Mask of rights.
        rights: u64,
    },
}

impl Transfer {
    fn to_register(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Page { address, write } => {
                address & !0xfff | TRANSFER_PAGE | if write { TRANSFER_WRITE } else { 0 }
            }
            Self::Handle { number, rights } => {
                (number & 0xf_ffff) << 12 | (rights & 0xff) << TRANSFER_RIGHTS | TRANSFER_HANDLE
            }
        }
    }

    /// The received transfer. The rights of a received handle are unknown.
    fn from_register(register: u64) -> Self {
        match register & TRANSFER_KIND {
            0 => Self::None,
            TRANSFER_HANDLE => Self::Handle { number: register >> 12, rights: 0 },
            _ => Self::Page { address: register & !0xfff, write: register & TRANSFER_WRITE != 0 },
        }
    }
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Badge of the sender's handle; `BADGE_FAULT` plus the task for a fault; 0 for a reply.
    pub badge: u64,
    /// Six words.
    pub words: Words,
    /// The page or handle that accompanied it.
    pub transfer: Transfer,
}

/// # Safety
///
/// As for [`raw::call`]: the caller must not use a granted page any more.
unsafe fn exchange(
    number: u64,
    endpoint: Endpoint,
    words: Words,
    transfer: u64,
) -> Result<Message> {
    let mut r = Registers { rdi: endpoint.0, rcx: transfer, words };
    // SAFETY: the caller's promise.
    Error::check(unsafe { raw::call(number, &mut r) })?;
    Ok(Message { badge: r.rdi, words: r.words, transfer: Transfer::from_register(r.rcx) })
}

impl Endpoint {
    /// This task's first endpoint.
    pub const OWN: Self = Self(HANDLE_OWN);

    /// The handle to send to the first endpoint of `task`. Other tasks than the first have it for the first only.
    pub const fn of_task(task: u32) -> Self {
        Self(HANDLE_TASKS + task as u64)
    }

    /// Makes an endpoint.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is touched.
        unsafe { raw::simple(ENDPOINT, 0, 0, 0) }.map(Self)
    }

    /// Makes another handle of the same endpoint; messages sent with it carry `badge`.
    pub fn mint(self, badge: u64, rights: u64) -> Result<Self> {
        // SAFETY: no memory is touched.
        unsafe { raw::simple(MINT, self.0, badge, rights) }.map(Self)
    }

    /// Sends a message and waits for the reply.
    #[inline]
    pub fn call(self, words: Words) -> Result<Message> {
        // SAFETY: nothing is transferred.
        unsafe { exchange(CALL, self, words, 0) }
    }

    /// Like [`Endpoint::call`], with a page or a handle.
    pub fn call_with(self, words: Words, transfer: Transfer) -> Result<Message> {
        // SAFETY: a shared page stays mapped. The peer may write to it like another thread, so it must be read as
        // shared memory. The kernel checks the address.
        unsafe { exchange(CALL, self, words, transfer.to_register()) }
    }

    /// Sends a message and gives the page at `page` to the receiver.
    ///
    /// # Safety
    ///
    /// This task must not use the page any more.
    pub unsafe fn call_granting(self, words: Words, page: u64, write: bool) -> Result<Message> {
        let register = page & !0xfff | TRANSFER_GRANT | if write { TRANSFER_WRITE } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { exchange(CALL, self, words, register) }
    }

    /// Waits for a message.
    #[inline]
    pub fn receive(self) -> Result<Message> {
        // SAFETY: nothing is transferred from this task.
        unsafe { exchange(RECEIVE, self, [0; 6], 0) }
    }

    /// Replies to the sender of the last message and waits for the next.
    #[inline]
    pub fn reply_receive(self, words: Words) -> Result<Message> {
        // SAFETY: nothing is transferred from this task.
        unsafe { exchange(REPLY_RECEIVE, self, words, 0) }
    }
}

/// Replies to the sender of the last message.
pub fn reply(words: Words) -> Result<()> {
    reply_with(words, Transfer::None)
}

/// Like [`reply`], with a page or a handle.
pub fn reply_with(words: Words, transfer: Transfer) -> Result<()> {
    // SAFETY: as in `Endpoint::call_with`.
    unsafe { exchange(REPLY, Endpoint(NO_HANDLE), words, transfer.to_register()) }.map(drop)
}

/// Accepts a transfer with the next message of this thread: a page at page number `page` of the share window, or a
/// handle.
pub fn accept(page: Option<u64>, handle: bool) -> Result<()> {
    let page = page.map_or(0, |n| TASK_SHARE_BASE + n * 4096);
    // SAFETY: a page is mapped only where none is.
    unsafe { raw::simple(ACCEPT, page | if handle { ACCEPT_HANDLE } else { 0 }, 0, 0) }.map(drop)
}

/// Unmaps the page at `address` in the share window.
///
/// # Safety
///
/// This task must not use the page any more.
pub unsafe fn unmap(address: u64) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { raw::simple(UNMAP, address, 0, 0) }.map(drop)
}

/// Closes a handle of any kind.
pub fn close(handle: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(CLOSE, handle, 0, 0) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_round_trip_through_a_register() {
        for t in [
            Transfer::None,
            Transfer::Page { address: TASK_SHARE_BASE, write: true },
            Transfer::Page { address: 0x1000, write: false },
        ] {
            assert_eq!(Transfer::from_register(t.to_register()), t);
        }
        let handle = Transfer::Handle { number: 5, rights: HANDLE_SEND };
        assert_eq!(handle.to_register(), 5 << 12 | 1 << 4 | 3);
        assert_eq!(Transfer::from_register(5 << 12 | 3), Transfer::Handle { number: 5, rights: 0 });
    }
}
