//! Hypercalls and doorbells.

use crate::start::own_boot;
use crate::{Error, Result};
use kyozon_abi::unikernel::CallBlock;

/// Makes a hypercall. Arguments that are not given are 0.
///
/// # Errors
///
/// The error that the tender answers.
///
/// # Safety
///
/// The caller must own the memory that the call reads or writes.
pub unsafe fn hypercall(number: u64, arguments: &[u64]) -> Result<u64> {
    let boot = own_boot();
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let block = boot.call as *mut CallBlock;
    // SAFETY: the block is a page of this peer, and this is its only thread; the tender put a function of this type at
    // `hypercall`. Accesses are volatile, as the tender reads and writes the block between them.
    let result = unsafe {
        block.write_volatile(CallBlock { number, arguments: all, result: 0 });
        let hypercall = core::mem::transmute::<usize, extern "C" fn()>(boot.hypercall as usize);
        hypercall();
        (&raw const (*block).result).read_volatile()
    };
    Error::check(result)
}

/// Rings the doorbell of a peer or of a queue.
#[inline]
pub fn ring(number: u32) {
    // SAFETY: the tender put a function of this type at `doorbell`, where it stays as long as the guest lives.
    let doorbell =
        unsafe { core::mem::transmute::<usize, extern "C" fn(u32)>(own_boot().doorbell as usize) };
    doorbell(number);
}
