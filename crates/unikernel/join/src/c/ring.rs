//! Rings between two peers.

use super::{code, deadline, mapped, JoinHost, JoinRing, Side, JOIN_ARGUMENT};
use kyozon_channel::spsc::{Reader, Writer};
use std::ffi::c_char;
use std::ptr::null_mut;

/// Attaches to one side of the ring at `offset` of a region's data, as the writer if `writes`. The ring has `bytes`
/// bytes of data, and a header of 256 bytes.
///
/// # Safety
///
/// As for [`mapped`].
unsafe fn ring(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    bytes: usize,
    writes: bool,
) -> Option<JoinRing> {
    // SAFETY: the caller's promise.
    let group = unsafe { mapped(host, name) }?;
    let (control, data) = group.shared().ok()?.spsc(offset, bytes)?;
    let side = if writes {
        Side::Writer(Writer::attach(control, data, &group).ok()?)
    } else {
        Side::Reader(Reader::attach(control, data, &group).ok()?)
    };
    Some(JoinRing { side, group })
}

fn boxed(ring: Option<JoinRing>) -> *mut JoinRing {
    ring.map_or(null_mut(), |ring| Box::into_raw(Box::new(ring)))
}

/// Attaches as the writer of the ring at `offset` of a region's data, a multiple of 128. The ring has `bytes` bytes of
/// data, a power of two, at least 64, and a header of 256 bytes. Returns null if it does not fit into the region, or if
/// the region is read-only.
///
/// # Safety
///
/// A host that has not left, and does not leave before the ring is closed.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_writer(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    bytes: usize,
) -> *mut JoinRing {
    // SAFETY: the caller's promise.
    boxed(unsafe { ring(host, name, offset, bytes, true) })
}

/// Attaches as the reader of a ring; arguments and result are those of `kyozon_join_writer`.
///
/// # Safety
///
/// A host that has not left, and does not leave before the ring is closed.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_reader(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    bytes: usize,
) -> *mut JoinRing {
    // SAFETY: the caller's promise.
    boxed(unsafe { ring(host, name, offset, bytes, false) })
}

/// Sends a record; waits for room until the deadline `until`. Returns 0, or an error.
///
/// # Safety
///
/// A ring that was not closed; `bytes` bytes at `data` can be read.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_send(
    ring: *mut JoinRing,
    data: *const u8,
    bytes: usize,
    until: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    match unsafe { ring.as_mut() } {
        Some(JoinRing { side: Side::Writer(writer), group }) if !data.is_null() => {
            // SAFETY: the caller's promise.
            let record = unsafe { std::slice::from_raw_parts(data, bytes) };
            writer.send(record, &*group, deadline(until)).map_or_else(code, |()| 0)
        }
        _ => JOIN_ARGUMENT,
    }
}

/// Waits for a record until the deadline `until`, and copies it to `to`. Returns the record's bytes, or an error.
///
/// # Safety
///
/// A ring that was not closed; `room` bytes at `to` can be written.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_receive(
    ring: *mut JoinRing,
    to: *mut u8,
    room: usize,
    until: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    match unsafe { ring.as_mut() } {
        Some(JoinRing { side: Side::Reader(reader), group }) if !to.is_null() => {
            // SAFETY: the caller's promise.
            let buffer = unsafe { std::slice::from_raw_parts_mut(to, room) };
            reader.recv(buffer, &*group, deadline(until)).map_or_else(code, |bytes| bytes as i64)
        }
        _ => JOIN_ARGUMENT,
    }
}

/// Closes one side of a ring, and frees it.
///
/// # Safety
///
/// Null, or a ring that was not closed.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_close(ring: *mut JoinRing) {
    if ring.is_null() {
        return;
    }
    // SAFETY: the caller's promise; `boxed` made the pointer from a box.
    let JoinRing { side, group } = *unsafe { Box::from_raw(ring) };
    match side {
        Side::Writer(writer) => writer.close(&group),
        Side::Reader(reader) => reader.close(&group),
    }
}
