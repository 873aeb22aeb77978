//! The user-mode server around `monitor`: slices its work by ticks, tells of findings, undoes them.
//!
//! Invariants:
//!
//! 1. Each check is stepped at most once a tick: one step is one look, and Linux must have run in between.
//! 2. A finding is told once, when it is first confirmed. Its repair is tried again as long as it stands.
//! 3. What does not fit the slice of this tick waits for the next.
//!
//! Must not know: how a check works, who runs it, where Linux's memory comes from.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod case;
mod server;
mod system;

pub use server::Server;
pub use system::System;
