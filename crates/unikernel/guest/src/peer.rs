//! Peers of the family without the rules of [`thread`](crate::thread), for a runtime that has rules of its own.

use crate::{raw, system, vm, Error, Result};
use kyozon_abi::unikernel::*;
use kyozon_channel::park::Peer;

/// Starts a peer of this family, which executes `entry` on the `bytes` of memory from `stack` on, as [`ASK_SPAWN`]
/// says. `bound` is the peer that ends if the new one dies.
///
/// # Errors
///
/// [`Error::Full`]: the group has no number for it, or the host no memory. Others are those of [`ASK_SPAWN`].
///
/// # Safety
///
/// `entry` never returns. Nothing else uses the stack until the peer is gone, and what the peer does is sound in any
/// thread.
pub unsafe fn spawn(
    entry: unsafe extern "C" fn(),
    argument: u64,
    stack: *mut u8,
    bytes: usize,
    bound: Option<usize>,
) -> Result<Peer> {
    let bound = bound.map_or(0, |peer| peer as u64 + 1);
    let entry = entry as usize as u64;
    // SAFETY: the caller's promise.
    let name = unsafe {
        raw::hypercall(ASK_SPAWN, &[entry, argument, stack as u64, bytes as u64, bound])
    }?;
    Peer::new(name as u8, (name >> 32) as u32).ok_or(Error::Full)
}

/// This peer.
pub fn own() -> Peer {
    use kyozon_channel::park::Park;
    vm::Vm.me()
}

/// Whether a peer of the group is gone: it never touches memory again.
pub fn is_gone(peer: Peer) -> bool {
    vm::gone(peer)
}

/// Whether this peer's processor has the instructions of FSGSBASE.
pub fn has_fsgsbase() -> bool {
    crate::start::own_boot().features & FEATURE_FSGSBASE != 0
}

/// Ends this peer, and with it what is bound to it.
pub fn leave() -> ! {
    system::end(0, EXIT_ALONE)
}

/// Ends this peer and the one to which it is bound, with this status.
pub fn end_with_owner(status: u8) -> ! {
    system::end(status, EXIT_WITH_OWNER)
}
