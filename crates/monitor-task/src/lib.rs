//! The user-mode server around `monitor`: slices its work by budget and hands findings to the event ring.
//!
//! Must not know: how a check works.
#![no_std]
