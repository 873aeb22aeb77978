//! Joining, leaving, the clock and tokens.

use super::{deadline, rights, text, JoinHost, JoinWanted};
use crate::host::Host;
use std::ffi::c_char;
use std::ptr::null_mut;

/// Joins a group and maps `count` of its regions. Returns null if that fails, and writes one line with the reason to
/// `why`, at most `why_bytes` bytes with the zero byte.
///
/// # Safety
///
/// `wanted` has `count` elements; `why` has room for `why_bytes` bytes, or is null.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join(
    group: *const c_char,
    wanted: *const JoinWanted,
    count: usize,
    why: *mut c_char,
    why_bytes: usize,
) -> *mut JoinHost {
    let join = || {
        let mut regions = Vec::new();
        for index in 0..if wanted.is_null() { 0 } else { count } {
            // SAFETY: the caller's promise.
            let wanted = unsafe { &*wanted.add(index) };
            let rights = rights(wanted.rights).ok_or_else(|| {
                format!(
                    "rights {} are neither KYOZON_JOIN_READ nor KYOZON_JOIN_WRITE",
                    wanted.rights
                )
            })?;
            // SAFETY: the caller's promise.
            let name =
                unsafe { text(wanted.name) }.ok_or("a region's name is missing, or not UTF-8")?;
            regions.push((name, rights));
        }
        // SAFETY: the caller's promise.
        let group = unsafe { text(group) }.ok_or("the group's name is missing, or not UTF-8")?;
        Host::join(group, &regions).map_err(|error| error.to_string())
    };
    match join() {
        Ok(host) => Box::into_raw(Box::new(JoinHost(host))),
        Err(error) => {
            if !why.is_null() && why_bytes != 0 {
                let bytes = &error.as_bytes()[..error.len().min(why_bytes - 1)];
                // SAFETY: `why` has room for these bytes and the zero byte, by the caller's promise.
                unsafe {
                    why.copy_from(bytes.as_ptr().cast(), bytes.len());
                    why.add(bytes.len()).write(0);
                }
            }
            null_mut()
        }
    }
}

/// Leaves the group, and unmaps its regions. Its rings must be closed before.
///
/// # Safety
///
/// Null, or a host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_leave(host: *mut JoinHost) {
    if !host.is_null() {
        // SAFETY: the caller's promise; `kyozon_join` made the pointer from a box.
        drop(unsafe { Box::from_raw(host) });
    }
}

/// The number of this peer in its group.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_number(host: *const JoinHost) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.number() as u32
}

/// The group's clock, in nanoseconds.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_now(host: *const JoinHost) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.now()
}

/// Whether the group is over: its keeper is gone, and with it the state of all peers.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_is_over(host: *const JoinHost) -> bool {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.is_over()
}

/// Sleeps until this peer has its token, or until the deadline `until`. May return early.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_park(host: *const JoinHost, until: u64) {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.park(deadline(until));
}

/// Gives a peer its token. Never waits; does nothing if there is no peer with this number.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_unpark(host: *const JoinHost, peer: u32) {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.unpark(peer as usize);
}
