//! Regions, and the state of the peers that share them.

use super::{
    mapped, text, JoinHost, JoinPeer, JoinRegion, JOIN_ABSENT, JOIN_ARGUMENT, JOIN_DEAD, JOIN_HERE,
    JOIN_LEFT, JOIN_READ, JOIN_WRITE,
};
use crate::host::{PeerState, Rights};
use std::ffi::c_char;

/// Writes where a region is mapped to `to`. Returns 0, or `JOIN_ARGUMENT`.
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
    let (Some(region), false) = (unsafe { mapped(host, name) }, to.is_null()) else {
        return JOIN_ARGUMENT;
    };
    let rights = if region.rights() == Rights::Write { JOIN_WRITE } else { JOIN_READ };
    let place = JoinRegion { data: region.data(), bytes: region.bytes() as u64, rights };
    // SAFETY: the caller's promise.
    unsafe { to.write(place) };
    0
}

/// Maps a region that a guest has granted to this peer since it joined. Returns 0, or `JOIN_ARGUMENT` if the region
/// was not granted, or not with these rights.
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
    let Some(rights) = super::rights(rights) else { return JOIN_ARGUMENT };
    host.0.map(name, rights).map_or(JOIN_ARGUMENT, |_| 0)
}

/// Writes the state of a peer, as the header of a region shows it, to `to`. Returns 0, or `JOIN_ARGUMENT`.
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
    let (Some(region), false) = (unsafe { mapped(host, name) }, to.is_null()) else {
        return JOIN_ARGUMENT;
    };
    let (state, generation) = region.peer(peer as usize);
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
