//! Rings, locks, a barrier and a condition variable in memory that two sides share.
//!
//! For the microkernel's event ring, for virtual machines used like threads, and for a tender and its guest.
//!
//! Invariants:
//!
//! 1. A hostile peer causes wrong data or a stop, never an access outside the ring or a loop without end:
//!    every index read from shared memory is reduced before it is used.
//! 2. Locks exclude among honest peers. A dead or hostile peer costs a time-out or `Poisoned`.
//! 3. Atomics stand behind a type parameter, so that the same code is checked under a model checker.
//!
//! Must not know: who sleeps or how. Waiting is a trait that the user of this crate implements.
#![no_std]
