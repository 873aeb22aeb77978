//! Ending, random numbers, and memory that is given back.

use crate::{raw, Result};
use kyozon_abi::unikernel::*;

/// Ends the guest. A status above [`MAX_STATUS`] is none of a guest's, and becomes [`MAX_STATUS`].
pub fn exit(status: u8) -> ! {
    let status = u64::from(status).min(MAX_STATUS);
    loop {
        // SAFETY: the call touches no memory, and does not come back.
        let _ = unsafe { raw::ask(ASK_EXIT, &[status]) };
    }
}

/// Fills with random bytes that are fit for keys.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    for piece in bytes.chunks_mut(MAX_RANDOM_BYTES as usize) {
        // SAFETY: the tender writes these bytes, which are the caller's.
        unsafe { raw::ask(ASK_RANDOM, &[piece.as_mut_ptr() as u64, piece.len() as u64]) }?;
    }
    Ok(())
}

/// Gives pages of the heap back to the host. They are zero when next read.
///
/// # Safety
///
/// Nobody may rely on what they hold.
pub unsafe fn discard(address: usize, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { raw::ask(ASK_DISCARD, &[address as u64, bytes as u64]) }.map(drop)
}
