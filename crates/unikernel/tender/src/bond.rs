//! What the end of a peer means for the peer to which it is bound.
//!
//! A bound peer borrows memory of its owner. If it dies at whatever instruction it is, nothing restores that memory, so
//! the owner must not see it again: it ends, too. The owner is told to end before the bound peer's end is announced.

use crate::peer::Peer;
use kyozon_abi::unikernel::STATUS_CRASH;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

/// A peer's share in the ends of others.
#[derive(Default)]
pub struct Bond {
    /// The family has ended this peer, and says that the memory that it borrowed is whole.
    released: AtomicBool,
    /// Status of the bound peer that ended this one.
    ended_by: OnceLock<u8>,
}

/// The end of a peer, as its owner is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// It left its owner's memory whole.
    Whole,
    /// It exited together with its owner, with this status.
    Exited(u8),
    /// It died, with this status.
    Died(u8),
    /// Another thread of the tender ended it.
    Stopped,
}

impl Bond {
    /// The owner goes on when this peer ends.
    pub fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
    }

    /// Status of the bound peer that ended this one, if one did.
    pub fn ended_by(&self) -> Option<u8> {
        self.ended_by.get().copied()
    }

    /// Records the status of a bound peer that ends this one. The first one counts.
    pub fn set_ended_by(&self, status: u8) {
        let _ = self.ended_by.set(status);
    }
}

impl Peer {
    /// The status with which the peer's owner must end, if it must.
    pub fn status_for_owner(&self, parting: Parting) -> Option<u8> {
        match parting {
            _ if self.bound.is_none() || self.bond.released.load(Ordering::SeqCst) => None,
            Parting::Whole => None,
            Parting::Exited(status) | Parting::Died(status) => Some(status),
            Parting::Stopped => Some(STATUS_CRASH as u8),
        }
    }
}
