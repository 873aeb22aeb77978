//! The same for C; `include/kyozon/join.h` is generated from this file.
//!
//! A host, its rings and its locks belong to the thread that joined. Strings end with a zero byte. Deadlines are
//! nanoseconds of the group's clock. What is asked of a null pointer is answered with `JOIN_ARGUMENT`.
#![allow(unsafe_code)]

use crate::host::{Host, Mapped, PeerState, Rights};
use kyozon_channel::border::Bytes;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};
use kyozon_channel::sync::{Acquired, RawMutex};
use std::ffi::{c_char, CStr};
use std::ptr::null_mut;

/// A deadline that never comes.
pub const JOIN_NO_DEADLINE: u64 = 0xffff_ffff_ffff_ffff;

/// To read a region.
pub const JOIN_READ: u32 = 1;
/// To read and write it.
pub const JOIN_WRITE: u32 = 3;

/// A peer never had the region mapped.
pub const JOIN_ABSENT: u32 = 0;
/// It has it mapped.
pub const JOIN_HERE: u32 = 1;
/// It ended by its own will.
pub const JOIN_LEFT: u32 = 2;
/// It crashed, or was ended.
pub const JOIN_DEAD: u32 = 3;

/// The deadline has passed.
pub const JOIN_TIMED_OUT: i64 = -1;
/// The caller holds the lock already.
pub const JOIN_DEADLOCK: i64 = -2;
/// Somebody died whom the others waited for.
pub const JOIN_POISONED: i64 = -3;
/// Not made for a peer of the caller's number.
pub const JOIN_STRANGER: i64 = -4;
/// The other side has closed the ring, and all that it sent was received.
pub const JOIN_CLOSED: i64 = -5;
/// The other side of the ring is dead, and all that it sent was received.
pub const JOIN_PEER_DIED: i64 = -6;
/// A peer did not keep the protocol.
pub const JOIN_CORRUPT: i64 = -7;
/// The record is longer than half of the ring.
pub const JOIN_TOO_LONG: i64 = -8;
/// The buffer is too short for the next record, which stays.
pub const JOIN_TOO_SHORT: i64 = -9;
/// An argument makes no sense: no such region, not to be written, not inside it, not aligned.
pub const JOIN_ARGUMENT: i64 = -10;

/// A region that a program wants.
#[repr(C)]
pub struct JoinWanted {
    /// Its name.
    pub name: *const c_char,
    /// `JOIN_READ` or `JOIN_WRITE`.
    pub rights: u32,
}

/// A region that it has.
#[repr(C)]
pub struct JoinRegion {
    /// First byte of the data, at the same address in every peer.
    pub data: *mut u8,
    /// Bytes of data.
    pub bytes: u64,
    /// `JOIN_READ` or `JOIN_WRITE`.
    pub rights: u32,
}

/// What has become of a peer.
#[repr(C)]
pub struct JoinPeer {
    /// `JOIN_ABSENT` to `JOIN_DEAD`.
    pub state: u32,
    /// How many peers of this number there were.
    pub generation: u32,
}

/// A program in its group.
pub struct JoinHost(Host);

/// One side of a ring between two.
pub struct JoinRing {
    side: Side,
    group: Mapped<'static>,
}

enum Side {
    Writer(Writer<&'static Control, Bytes<'static>>),
    Reader(Reader<&'static Control, Bytes<'static>>),
}

fn code(error: Error) -> i64 {
    match error {
        Error::TimedOut => JOIN_TIMED_OUT,
        Error::Deadlock => JOIN_DEADLOCK,
        Error::Poisoned => JOIN_POISONED,
        Error::NotAMember => JOIN_STRANGER,
        Error::Closed => JOIN_CLOSED,
        Error::PeerDied => JOIN_PEER_DIED,
        Error::Corrupt => JOIN_CORRUPT,
        Error::RecordTooLong { .. } => JOIN_TOO_LONG,
        Error::BufferTooShort { .. } => JOIN_TOO_SHORT,
    }
}

fn deadline(at: u64) -> Option<u64> {
    (at != JOIN_NO_DEADLINE).then_some(at)
}

/// A string of the caller's.
///
/// # Safety
///
/// Null, or a string that stays as it is for so long.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// A region of a host's, by name.
///
/// # Safety
///
/// Null, or a host that has not left, and does not before what is made of this is freed; a name as for [`text`].
unsafe fn region(host: *const JoinHost, name: *const c_char) -> Option<Mapped<'static>> {
    // SAFETY: the caller's promise.
    unsafe { host.as_ref()?.0.region(text(name)?) }
}

/// Joins a group and maps `count` of its regions. Null where that cannot be; then `why`, of `why_bytes` bytes, says why
/// in a line.
///
/// # Safety
///
/// `wanted` has `count` elements, `why` room for so many bytes, or is null.
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
        for at in 0..if wanted.is_null() { 0 } else { count } {
            // SAFETY: the caller's promise.
            let wanted = unsafe { &*wanted.add(at) };
            let rights = match wanted.rights {
                JOIN_READ => Rights::Read,
                JOIN_WRITE => Rights::Write,
                other => return Err(format!("{other} is no right")),
            };
            // SAFETY: the caller's promise.
            regions.push((unsafe { text(wanted.name) }.ok_or("a region has a name")?, rights));
        }
        // SAFETY: the caller's promise.
        let group = unsafe { text(group) }.ok_or("a group has a name")?;
        Host::join(group, &regions).map_err(|error| error.to_string())
    };
    match join() {
        Ok(host) => Box::into_raw(Box::new(JoinHost(host))),
        Err(error) => {
            if !why.is_null() && why_bytes != 0 {
                let bytes = &error.as_bytes()[..error.len().min(why_bytes - 1)];
                // SAFETY: room for as many bytes, by the caller's promise.
                unsafe {
                    why.copy_from(bytes.as_ptr().cast(), bytes.len());
                    why.add(bytes.len()).write(0);
                }
            }
            null_mut()
        }
    }
}

/// Leaves the group: regions are unmapped. Its rings must be freed before.
///
/// # Safety
///
/// Null, or a host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_leave(host: *mut JoinHost) {
    if !host.is_null() {
        // SAFETY: the caller's promise; it was made from a box.
        drop(unsafe { Box::from_raw(host) });
    }
}

/// Number of this peer in its group.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_number(host: *const JoinHost) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.number() as u32
}

/// Nanoseconds of the group's clock.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_now(host: *const JoinHost) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.now()
}

/// Whether the group is over: nobody says any more who lives.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_is_over(host: *const JoinHost) -> bool {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.is_over()
}

/// Sleeps until this peer has its token, or until the deadline. May return early.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_park(host: *const JoinHost, until: u64) {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.park(deadline(until));
}

/// Gives a peer its token. Never waits; a number that is no peer's does nothing.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_unpark(host: *const JoinHost, peer: u32) {
    // SAFETY: the caller's promise.
    unsafe { &*host }.0.unpark(peer as usize);
}

/// Where a region is. 0, or `JOIN_ARGUMENT`.
///
/// # Safety
///
/// A host that has not left; `to` can be written.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_region(
    host: *const JoinHost,
    name: *const c_char,
    to: *mut JoinRegion,
) -> i64 {
    // SAFETY: the caller's promise.
    let (Some(mapped), false) = (unsafe { region(host, name) }, to.is_null()) else {
        return JOIN_ARGUMENT;
    };
    let rights = if mapped.rights() == Rights::Write { JOIN_WRITE } else { JOIN_READ };
    let found = JoinRegion { data: mapped.data(), bytes: mapped.bytes() as u64, rights };
    // SAFETY: the caller's promise.
    unsafe { to.write(found) };
    0
}

/// Maps a region that a guest has granted this peer meanwhile. 0, or `JOIN_ARGUMENT` where it was not granted, or not
/// with these rights.
///
/// # Safety
///
/// A host that has not left.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_map(
    host: *const JoinHost,
    name: *const c_char,
    rights: u32,
) -> i64 {
    // SAFETY: the caller's promise.
    let (Some(host), Some(name)) = (unsafe { host.as_ref() }, unsafe { text(name) }) else {
        return JOIN_ARGUMENT;
    };
    let rights = match rights {
        JOIN_READ => Rights::Read,
        JOIN_WRITE => Rights::Write,
        _ => return JOIN_ARGUMENT,
    };
    host.0.map(name, rights).map_or(JOIN_ARGUMENT, |_| 0)
}

/// What has become of a peer, as a region tells. 0, or `JOIN_ARGUMENT`.
///
/// # Safety
///
/// A host that has not left; `to` can be written.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_peer(
    host: *const JoinHost,
    name: *const c_char,
    peer: u32,
    to: *mut JoinPeer,
) -> i64 {
    // SAFETY: the caller's promise.
    let (Some(mapped), false) = (unsafe { region(host, name) }, to.is_null()) else {
        return JOIN_ARGUMENT;
    };
    let (state, generation) = mapped.peer(peer as usize);
    let state = match state {
        PeerState::Absent => JOIN_ABSENT,
        PeerState::Present => JOIN_HERE,
        PeerState::Left => JOIN_LEFT,
        PeerState::Dead => JOIN_DEAD,
    };
    // SAFETY: the caller's promise.
    unsafe { to.write(JoinPeer { state, generation }) };
    0
}

/// A side of the ring at `offset` of a region's data, with `bytes` bytes of its own; the ring takes 256 more.
///
/// # Safety
///
/// As for [`region`].
unsafe fn ring(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    bytes: usize,
    writes: bool,
) -> Option<JoinRing> {
    // SAFETY: the caller's promise.
    let group = unsafe { region(host, name) }?;
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

/// The writer of the ring at `offset` of a region's data, a multiple of 128; it has `bytes` bytes, a power of two, at
/// least 64, and takes 256 more. Null where there is no room for it, or no right.
///
/// # Safety
///
/// A host that has not left, and does not before this is freed.
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

/// The reader of a ring, as `kyozon_join_writer`.
///
/// # Safety
///
/// A host that has not left, and does not before this is freed.
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

/// Sends a record, and waits for room. 0, or why not.
///
/// # Safety
///
/// A ring that was not freed; `bytes` bytes at `data` can be read.
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

/// Waits for a record, and copies it to `to`. Bytes of the record, or why there is none.
///
/// # Safety
///
/// A ring that was not freed; `room` bytes at `to` can be written.
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

/// Closes a side of a ring, and frees it.
///
/// # Safety
///
/// Null, or a ring that was not freed.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_close(ring: *mut JoinRing) {
    if ring.is_null() {
        return;
    }
    // SAFETY: the caller's promise; it was made from a box.
    let JoinRing { side, group } = *unsafe { Box::from_raw(ring) };
    match side {
        Side::Writer(writer) => writer.close(&group),
        Side::Reader(reader) => reader.close(&group),
    }
}

/// Takes the lock at `offset` of a region's data, a multiple of 8. 0; 1 where it is taken, and somebody died in it; or
/// why not.
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
    let Some(group) = (unsafe { region(host, name) }) else { return JOIN_ARGUMENT };
    let lock = group.shared().ok().and_then(|region| region.get::<RawMutex>(offset));
    match lock.map(|lock| lock.lock(&group, deadline(until))) {
        Some(Ok(Acquired::Clean)) => 0,
        Some(Ok(Acquired::Poisoned)) => 1,
        Some(Err(error)) => code(error),
        None => JOIN_ARGUMENT,
    }
}

/// Gives the lock back; `poisoned` where what it guards is not in order. 0, or `JOIN_ARGUMENT`.
///
/// # Safety
///
/// A host that has not left, and has the lock.
#[no_mangle]
pub unsafe extern "C" fn kyozon_join_unlock(
    host: *const JoinHost,
    name: *const c_char,
    offset: usize,
    poisoned: bool,
) -> i64 {
    // SAFETY: the caller's promise.
    let Some(group) = (unsafe { region(host, name) }) else { return JOIN_ARGUMENT };
    let lock = group.shared().ok().and_then(|region| region.get::<RawMutex>(offset));
    let Some(lock) = lock else { return JOIN_ARGUMENT };
    lock.unlock(&group, if poisoned { Acquired::Poisoned } else { Acquired::Clean });
    0
}
