//! Ending the guest, random numbers, and returning memory to the host.

use crate::{raw, Result};
use kyozon_abi::unikernel::*;

/// Ends the calling thread, and in a thread of a scope also the thread that opened the scope, with the same status. In
/// the first thread of a family it ends the whole family.
pub fn exit(status: u8) -> ! {
    end(status, EXIT_WITH_OWNER)
}

/// Ends the calling thread as `how` says: `EXIT_*`.
pub(crate) fn end(status: u8, how: u64) -> ! {
    let status = u64::from(status);
    loop {
        // SAFETY: the call touches no memory, and does not return.
        let _ = unsafe { raw::hypercall(ASK_EXIT, &[status, how]) };
    }
}

/// Fills a buffer with random bytes that are good enough for keys.
///
/// # Errors
///
/// The tender has no random numbers.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    for piece in bytes.chunks_mut(MAX_RANDOM_BYTES as usize) {
        // SAFETY: the tender writes these bytes, which the caller lent.
        unsafe { raw::hypercall(ASK_RANDOM, &[piece.as_mut_ptr() as u64, piece.len() as u64]) }?;
    }
    Ok(())
}

/// Adds memory to what this crate allocates. False if a machine died inside the heap, or if this is no guest.
///
/// # Safety
///
/// Nothing else uses this memory from now on.
pub unsafe fn extend_heap(address: usize, bytes: usize) -> bool {
    #[cfg(feature = "guest")]
    // SAFETY: the caller's promise.
    return unsafe { crate::heap::extend(address, bytes) };
    #[cfg(not(feature = "guest"))]
    {
        let _ = (address, bytes);
        false
    }
}

/// Returns whole pages of the heap, at `address`, to the host. They are zero when they are read next.
///
/// # Errors
///
/// [`Error::Address`](crate::Error::Address) if they are no whole pages of the heap.
///
/// # Safety
///
/// No code may rely on the contents of these pages.
pub unsafe fn discard(address: usize, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { raw::hypercall(ASK_DISCARD, &[address as u64, bytes as u64]) }.map(drop)
}
