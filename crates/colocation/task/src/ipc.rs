//! Messages.

use crate::raw::{self, Registers};
use crate::{Error, Result};
use kyozon_abi::task::*;

/// A handle of an endpoint. It may be one that this task does not have: the kernel then says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint(pub u64);

/// Six words.
pub type Words = [u64; 6];

/// What goes with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Nothing.
    None,
    /// The page at `address` is shared. The receiver may write to it where `write` says so.
    Page {
        /// A multiple of 4096.
        address: u64,
        /// Needs a page that the sender may write to.
        write: bool,
    },
    /// A copy of a handle, with those of its rights that are in `rights` (`HANDLE_*`).
    Handle {
        /// Its number.
        number: u64,
        /// What the copy may keep.
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

    /// What came: of a handle, the rights are not told.
    fn from_register(register: u64) -> Self {
        match register & TRANSFER_KIND {
            0 => Self::None,
            TRANSFER_HANDLE => Self::Handle { number: register >> 12, rights: 0 },
            _ => Self::Page { address: register & !0xfff, write: register & TRANSFER_WRITE != 0 },
        }
    }
}

/// A message that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Of the handle that it was sent with; `BADGE_FAULT` plus the task where a thread faulted; 0 of a reply.
    pub badge: u64,
    /// Six words.
    pub words: Words,
    /// What came with it.
    pub transfer: Transfer,
}

/// # Safety
///
/// As [`raw::call`]: a page that is granted is gone.
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
    /// The endpoint that this task has from its start.
    pub const OWN: Self = Self(HANDLE_OWN);

    /// To send to the endpoint that task `task` has from its start. Tasks but the first know only the first.
    pub const fn of_task(task: u32) -> Self {
        Self(HANDLE_TASKS + task as u64)
    }

    /// Makes one.
    pub fn new() -> Result<Self> {
        // SAFETY: no memory is touched.
        unsafe { raw::simple(ENDPOINT, 0, 0, 0) }.map(Self)
    }

    /// Another handle of the same endpoint: what is sent with it comes with `badge`.
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

    /// As [`Endpoint::call`], with a page or a handle.
    pub fn call_with(self, words: Words, transfer: Transfer) -> Result<Message> {
        // SAFETY: a page that is shared stays; what the other side writes to it is as from another thread, so it should
        // be read as such. The kernel checks the address.
        unsafe { exchange(CALL, self, words, transfer.to_register()) }
    }

    /// Sends a message and the page at `page`, which this task then does not have any more.
    ///
    /// # Safety
    ///
    /// Nobody uses that page from then on.
    pub unsafe fn call_granting(self, words: Words, page: u64, write: bool) -> Result<Message> {
        let register = page & !0xfff | TRANSFER_GRANT | if write { TRANSFER_WRITE } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { exchange(CALL, self, words, register) }
    }

    /// Waits for a message.
    #[inline]
    pub fn receive(self) -> Result<Message> {
        // SAFETY: nothing is transferred from here.
        unsafe { exchange(RECEIVE, self, [0; 6], 0) }
    }

    /// Replies to the sender of the last message and waits for the next.
    #[inline]
    pub fn reply_receive(self, words: Words) -> Result<Message> {
        // SAFETY: nothing is transferred from here.
        unsafe { exchange(REPLY_RECEIVE, self, words, 0) }
    }
}

/// Replies to the sender of the last message.
pub fn reply(words: Words) -> Result<()> {
    reply_with(words, Transfer::None)
}

/// As [`reply`], with a page or a handle.
pub fn reply_with(words: Words, transfer: Transfer) -> Result<()> {
    // SAFETY: as in `Endpoint::call_with`.
    unsafe { exchange(REPLY, Endpoint(NO_HANDLE), words, transfer.to_register()) }.map(drop)
}

/// What this thread takes with its next message: a page at page `page` of the share window, a handle.
pub fn accept(page: Option<u64>, handle: bool) -> Result<()> {
    let page = page.map_or(0, |n| TASK_SHARE_BASE + n * 4096);
    // SAFETY: a page comes only where none is.
    unsafe { raw::simple(ACCEPT, page | if handle { ACCEPT_HANDLE } else { 0 }, 0, 0) }.map(drop)
}

/// Takes away the page at `address` in the share window.
///
/// # Safety
///
/// Nobody uses it from then on.
pub unsafe fn unmap(address: u64) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { raw::simple(UNMAP, address, 0, 0) }.map(drop)
}

/// Closes any handle.
pub fn close(handle: u64) -> Result<()> {
    // SAFETY: no memory is touched.
    unsafe { raw::simple(CLOSE, handle, 0, 0) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_fit_a_register() {
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
