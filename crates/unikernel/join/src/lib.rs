//! How processes find and join a group: its folder, its messages, and a host program as a peer.
//!
//! | module | what it does |
//! |---|---|
//! | [`place`] | the folder of each group, with its socket |
//! | [`socket`] | messages with file descriptors |
//! | [`message`] | requests to a group's keeper, and its answers |
//! | [`clock`] | the group's clock |
//! | [`host`] | a host program as a peer: regions, tokens, and `kyozon_channel`'s traits |
//! | [`c`] | the same for C programs: `include/kyozon/join.h` |
//!
//! The tender and `kyozon ps` use the first three; a host program the others.
//!
//! Invariants:
//!
//! 1. A folder of groups is private to its owner. Other users get an error, and nothing changes.
//! 2. A packet from a socket has a maximum length, and is a message or an error.
//! 3. A host program that ends in whatever way counts as dead for its group, because its socket hangs up.
//!
//! Must not know: how guests run, and how the keeper manages a group.
#![deny(unsafe_code)]

pub mod c;
pub mod clock;
mod error;
pub mod host;
pub mod message;
pub mod place;
pub mod socket;

pub use error::{Error, Result};
pub use host::{Host, Mapped, PeerState, Rights};
