//! Hypercalls and doorbells.

use crate::{boot, Error, Result};
use kyozon_abi::unikernel::CallBlock;

/// Asks the tender. Arguments that are not named are 0.
///
/// # Safety
///
/// What the call does to this guest's memory must be what the caller owns.
pub unsafe fn ask(number: u64, arguments: &[u64]) -> Result<u64> {
    let boot = boot();
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let block = boot.call as *mut CallBlock;
    // SAFETY: the block is a page of this peer, and this is its only thread; the tender put a function of this type at
    // `hypercall`.
    // Volatile, as the other side reads and writes between these lines.
    let result = unsafe {
        block.write_volatile(CallBlock { number, arguments: all, result: 0 });
        let hypercall = core::mem::transmute::<usize, extern "C" fn()>(boot.hypercall as usize);
        hypercall();
        (&raw const (*block).result).read_volatile()
    };
    Error::check(result)
}

/// Rings a doorbell: of a peer, or of a queue.
#[inline]
pub fn ring(number: u32) {
    // SAFETY: code of the tender's of this type, as long as the guest lives.
    let doorbell =
        unsafe { core::mem::transmute::<usize, extern "C" fn(u32)>(boot().doorbell as usize) };
    doorbell(number);
}
