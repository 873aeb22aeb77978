//! How one meets a group: its folder, its messages, and a host program as a peer.
//!
//! | module | what it does |
//! |---|---|
//! | [`place`] | where groups are found: a folder for each, with a socket in it |
//! | [`socket`] | messages with descriptors |
//! | [`message`] | what is asked of a group's keeper, and what it says |
//! | [`clock`] | the group's clock |
//! | [`host`] | a host program as a peer: regions, tokens, and `kyozon_channel`'s traits |
//! | [`c`] | the same for C: `include/kyozon/join.h` |
//!
//! The tender and `kyozon ps` use the first three; a host program the others.
//!
//! Invariants:
//!
//! 1. A folder of groups is its owner's alone. Whose it is not is told so, and changes nothing.
//! 2. What comes by a socket is bounded, and is a message or an error.
//! 3. A host program that ends, however that happens, is dead for its group: its socket hangs up.
//!
//! Must not know: how guests are run, and what keeps a group together.
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
