//! Rings in memory that two sides share; locks, a barrier and a condition variable come with unikernels.
//!
//! | module | what it is |
//! |---|---|
//! | [`memory`] | shared memory as words: the only `unsafe`, and what a model checker replaces |
//! | [`slot`] | one record that is read while it may be written: a sequence lock |
//! | [`ring`] | slots in a circle: one writer, and readers that it does not wait for |
//! | [`events`] | the ring of [`kyozon_abi::events`]: lines and the status of checks |
//!
//! The event ring has no consumer index. Linux is its reader and gets it read-only behind nested paging, and a cokernel
//! must not wait for Linux: who is too slow loses the oldest records, and sees how many. Rings whose writer waits for
//! its reader come with unikernels, which need them.
//!
//! Invariants:
//!
//! 1. A hostile peer causes wrong data, a gap or a stop, never an access outside the ring or a loop without end: what
//!    is read from shared memory is checked or reduced before it is used, and every loop here has a bound that does not
//!    come from there.
//! 2. Shared memory is read and written by atomic accesses to whole words only: two sides never race in the sense of
//!    the memory model. Order comes from fences. A reader only ever loads, relaxed: that is what is allowed on pages
//!    without write permission.
//! 3. Memory stands behind traits, so that the same code is checked under a model checker (`tests/model.rs`), and with
//!    a peer that changes it between two loads (`tests/hostile.rs`).
//!
//! Must not know: who sleeps or how, and who is on the other side.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod events;
pub mod memory;
pub mod ring;
pub mod slot;
