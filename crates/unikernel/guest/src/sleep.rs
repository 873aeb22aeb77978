//! Sleeping and waking by tokens, as `std::thread::park` does, but for peers.

use crate::{clock, raw};
use core::time::Duration;
use kyozon_abi::unikernel::*;

/// Sleeps until this peer has its token, which it takes, or until the deadline in nanoseconds of [`clock::now`] has
/// passed. May return early. A token that was given before the call is not lost.
pub fn park(deadline: Option<u64>) {
    // SAFETY: the call touches no memory.
    let _ = unsafe { raw::hypercall(ASK_PARK, &[deadline.unwrap_or(NO_DEADLINE)]) };
}

/// Gives a peer its token. Never waits; does nothing if there is no peer with this number.
#[inline]
pub fn unpark(peer: usize) {
    if peer < MAX_PEERS {
        raw::ring(peer as u32);
    }
}

/// Sleeps for at least `time`.
pub fn sleep(time: Duration) {
    let end = clock::now().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    while clock::now() < end {
        park(Some(end));
    }
}
