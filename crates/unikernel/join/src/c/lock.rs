//! Locks in regions.

use super::{code, deadline, mapped, JoinHost, JOIN_ARGUMENT};
use kyozon_channel::sync::{Acquired, RawMutex};
use std::ffi::c_char;

/// Takes the lock at `offset` of a region's data, a multiple of 8. Returns 0; 1 if the lock is taken, but a peer died
/// while it held it; or an error.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_lock(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    until: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    let Some(group) = (unsafe { mapped(host, name) }) else { return JOIN_ARGUMENT };
    let lock = group.shared().ok().and_then(|region| region.get::<RawMutex>(offset));
    match lock.map(|lock| lock.lock(&group, deadline(until))) {
        Some(Ok(Acquired::Clean)) => 0,
        Some(Ok(Acquired::Poisoned)) => 1,
        Some(Err(error)) => code(error),
        None => JOIN_ARGUMENT,
    }
}

/// Releases the lock; `poisoned` says that the data that it guards is inconsistent. Returns 0, or `JOIN_ARGUMENT`.
///
/// # Safety
///
/// A host that has not left, and holds the lock.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_unlock(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    poisoned: bool,
) -> i64 {
    // SAFETY: the caller's promise.
    let Some(group) = (unsafe { mapped(host, name) }) else { return JOIN_ARGUMENT };
    let lock = group.shared().ok().and_then(|region| region.get::<RawMutex>(offset));
    let Some(lock) = lock else { return JOIN_ARGUMENT };
    lock.unlock(&group, if poisoned { Acquired::Poisoned } else { Acquired::Clean });
    0
}
