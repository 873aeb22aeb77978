//! The interface for C programs; `include/kyozon/join.h` is generated from this module.
//!
//! A host, its rings and its locks belong to the thread that joined. Strings end with a zero byte. Deadlines are
//! nanoseconds of the group's clock. A call with a null pointer returns `JOIN_ARGUMENT`.
#![allow(unsafe_code)]

pub mod host;
pub mod lock;
pub mod region;
pub mod ring;

use crate::host::{Host, Mapped, Rights};
use kyozon_channel::border::Bytes;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};
use std::ffi::{c_char, CStr};

/// A deadline that never comes.
pub const JOIN_NO_DEADLINE: u64 = 0xffff_ffff_ffff_ffff;

/// The right to read a region.
pub const JOIN_READ: u32 = 1;
/// The right to read and write a region.
pub const JOIN_WRITE: u32 = 3;

/// The peer never had the region mapped.
pub const JOIN_ABSENT: u32 = 0;
/// The peer has the region mapped.
pub const JOIN_HERE: u32 = 1;
/// The peer left the group.
pub const JOIN_LEFT: u32 = 2;
/// The peer crashed, or was ended.
pub const JOIN_DEAD: u32 = 3;

/// The deadline has passed.
pub const JOIN_TIMED_OUT: i64 = -1;
/// The caller holds the lock already.
pub const JOIN_DEADLOCK: i64 = -2;
/// A peer that the others waited for has died.
pub const JOIN_POISONED: i64 = -3;
/// The object was not made for a peer with the caller's number.
pub const JOIN_STRANGER: i64 = -4;
/// The other side has closed the ring, and everything that it sent was received.
pub const JOIN_CLOSED: i64 = -5;
/// The other side of the ring is dead, and everything that it sent was received.
pub const JOIN_PEER_DIED: i64 = -6;
/// A peer did not keep the protocol.
pub const JOIN_CORRUPT: i64 = -7;
/// The record is longer than half of the ring.
pub const JOIN_TOO_LONG: i64 = -8;
/// The buffer is too short for the next record, which stays in the ring.
pub const JOIN_TOO_SHORT: i64 = -9;
/// An argument is invalid: there is no such region or no right to write to it, or the offset is outside the region or
/// not aligned.
pub const JOIN_ARGUMENT: i64 = -10;

/// A region that a program wants to map.
#[repr(C)]
pub struct JoinWanted {
    /// Its name.
    pub name: *const c_char,
    /// `JOIN_READ` or `JOIN_WRITE`.
    pub rights: u32,
}

/// A region that a program has mapped.
#[repr(C)]
pub struct JoinRegion {
    /// First byte of the data, at the same address in every peer.
    pub data: *mut u8,
    /// Bytes of data.
    pub bytes: u64,
    /// `JOIN_READ` or `JOIN_WRITE`.
    pub rights: u32,
}

/// The state of a peer.
#[repr(C)]
pub struct JoinPeer {
    /// `JOIN_ABSENT` to `JOIN_DEAD`.
    pub state: u32,
    /// How many peers had this number, up to now.
    pub generation: u32,
}

/// A program in its group.
pub struct JoinHost(Host);

/// One side of a ring between two peers.
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

fn deadline(nanoseconds: u64) -> Option<u64> {
    (nanoseconds != JOIN_NO_DEADLINE).then_some(nanoseconds)
}

fn rights(bits: u32) -> Option<Rights> {
    match bits {
        JOIN_READ => Some(Rights::Read),
        JOIN_WRITE => Some(Rights::Write),
        _ => None,
    }
}

/// A string of the caller; `None` if it is null or not UTF-8.
///
/// # Safety
///
/// Null, or a string that does not change during `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// A mapped region of a host, by name.
///
/// # Safety
///
/// Null, or a host that has not left, and does not leave before what is made of the result is freed; a name as for
/// [`text`].
unsafe fn mapped(host: *const JoinHost, name: *const c_char) -> Option<Mapped<'static>> {
    // SAFETY: the caller's promise.
    unsafe { host.as_ref()?.0.region(text(name)?) }
}
