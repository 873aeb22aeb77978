//! The user-mode server around `monitor`: divides its work into one slice per tick, reports findings and repairs them.
//!
//! Invariants:
//!
//! 1. Each check is stepped at most once per tick: one step is one look, and Linux must have run in between.
//! 2. A finding is reported once, when it is first confirmed, and is open until it is repaired or gone. Its repair is
//!    retried for as long as it is found.
//! 3. Work that does not fit into this tick's slice waits for the next tick.
//!
//! Must not know: how a check works, what runs this server, where Linux's memory comes from.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod case;
mod disarm;
mod journal;
mod kept;
mod server;
mod slice;
mod system;
mod table;
mod watch;

pub use server::{NoRoom, Server};
pub use slice::Slice;
pub use system::System;
