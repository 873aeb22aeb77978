//! A placeholder that outlives its descriptor. Opening and closing a file of the library would cost two calls of the
//! host for its placeholder. The last one that was closed therefore stays, for the next file, if its number is the one
//! that open(2) must return: the lowest that is free.
//!
//! Nobody else may notice: before the host executes any call of the program, the placeholder is closed. The gate sends
//! all calls to the dispatcher while there is one.

use crate::host;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of the placeholder plus 1, with [`CLOSE_ON_EXEC`]; 0 is none. The gate reads it.
pub static RESERVED: AtomicU32 = AtomicU32::new(0);
const CLOSE_ON_EXEC: u32 = 1 << 31;

/// In the low half a number below which none is free, in the high half a count of closed descriptors.
static LOWEST: AtomicU64 = AtomicU64::new(0);
const NUMBER: u64 = 0xffff_ffff;

/// A descriptor is about to be closed, of either kernel.
pub fn closing(fd: u64) {
    let next = |old: u64| Some(((old >> 32) + 1) << 32 | (old & NUMBER).min(fd & NUMBER));
    let _ = LOWEST.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
}

/// What [`found`] needs, from before the host chooses a number.
pub fn before() -> u64 {
    LOWEST.load(Ordering::Acquire)
}

/// The host chose `fd` as the lowest number. Nothing is learnt if a descriptor was closed meanwhile.
pub fn found(before: u64, fd: u64) {
    let next = (before & !NUMBER) | (fd + 1);
    let _ = LOWEST.compare_exchange(before, next, Ordering::AcqRel, Ordering::Relaxed);
}

/// Keeps the placeholder of `fd`, which is closed ([`closing`] was called), if it is the lowest number. Otherwise the
/// caller closes it.
pub fn keep(fd: u64, close_on_exec: bool) -> bool {
    let flag = if close_on_exec { CLOSE_ON_EXEC } else { 0 };
    LOWEST.load(Ordering::Acquire) & NUMBER == fd
        && RESERVED
            .compare_exchange(0, (fd as u32 + 1) | flag, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
}

/// Takes the placeholder for a new descriptor, if its number is still the lowest.
pub fn take(close_on_exec: bool) -> Option<u64> {
    if RESERVED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let value = RESERVED.swap(0, Ordering::AcqRel);
    let fd = u64::from((value & !CLOSE_ON_EXEC).checked_sub(1)?);
    let before = before();
    if before & NUMBER != fd || (value & CLOSE_ON_EXEC != 0) != close_on_exec {
        host::call(libc::SYS_close, &[fd]);
        return None;
    }
    found(before, fd);
    Some(fd)
}

/// Closes the placeholder: the host is about to execute a call of the program.
#[inline]
pub fn release() {
    if RESERVED.load(Ordering::Relaxed) != 0 {
        let value = RESERVED.swap(0, Ordering::AcqRel) & !CLOSE_ON_EXEC;
        if value > 0 {
            host::call(libc::SYS_close, &[u64::from(value) - 1]);
        }
    }
}
