//! Rings, locks, barrier and condition variable in memory that several peers share.
//!
//! | module | contents |
//! |---|---|
//! | [`memory`] | shared memory as words by index, for the event ring: unsafe code; a model checker replaces it |
//! | [`slot`] | a sequence lock: one record that may be read while it is written |
//! | [`ring`] | a ring of slots with one writer, which does not wait for its readers |
//! | [`events`] | the event ring of [`kyozon_abi::events`]: lines and the status of checks |
//! | [`word`] | one shared atomic word, on which locks and rings are built; a model checker replaces it |
//! | [`park`] | what a primitive needs from its group: sleep, wake, a clock, which peers live |
//! | [`wait`] | the set of waiters, one bit per peer; spin, then sleep |
//! | [`sync`] | mutex, reader-writer lock, condition variable, semaphore, barrier |
//! | [`data`] | payload bytes that a peer may change while they are read |
//! | [`spsc`] | ring of records from one writer to one reader, written and read in place |
//! | [`mpmc`] | ring of records between any number of writers and readers |
//! | [`border`] | structures, payload and lock-protected data in raw memory: unsafe code |
//! | [`error`] | errors of locks, barriers and rings |
//! | [`fuzz`] | turns input bytes into ring operations and a hostile peer, for a fuzzer and a test |
//! | `threads` | a group of threads in one process (feature `std`) |
//!
//! How to choose, by the trust in the other peers:
//!
//! | | a write waits | a hostile peer can | a dead peer costs |
//! |---|---|---|---|
//! | [`events`] | never; a reader that is too slow loses records | cause wrong data, gaps | nothing |
//! | [`spsc`] | for the reader | cause wrong data, an error, a time-out | an error |
//! | [`mpmc`] | for a reader | cause wrong data, an error, a time-out | the record that it was writing or reading |
//! | [`sync`] | | break the exclusion, cause an error, a time-out | `Poisoned`, or a time-out |
//!
//! The event ring has no consumer index. Linux reads it, in mode vmm from pages that it cannot write, and a cokernel
//! must not wait for Linux. A reader that is too slow loses the oldest records and sees how many.
//!
//! Invariants:
//!
//! 1. A hostile peer causes wrong data, a gap, an error or a stop, never an access outside the ring, a panic or an
//!    endless loop. A value from shared memory is read once, and checked or reduced before it is used. Every loop here
//!    that does not sleep has a bound that does not come from shared memory. Every sleep ends at its deadline, and the
//!    sleeper checks at each heartbeat which peers have died.
//! 2. Shared memory is read and written by atomic accesses only, so two sides never have a data race in the sense of
//!    the memory model ([`border`] explains how payload complies). In the event ring, fences establish the order, and a
//!    reader only performs relaxed loads, which pages without write permission allow. In all other structures, a side
//!    that writes and then checks for a sleeper, and a side that announces its sleep and then reads, both use
//!    sequentially consistent operations: these have one total order, so one side sees the other.
//! 3. Memory is accessed through traits, so that the same code runs under a model checker (`tests/model*.rs`) and
//!    against a peer that changes memory between two loads (`tests/hostile*.rs`).
//! 4. Every structure starts as zero bytes, has an asserted layout and holds no pointer: it may lie in any region, at
//!    any address.
//!
//! This crate must not know how a peer sleeps, nor what is on the other side.
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![deny(unsafe_code)]

pub mod border;
pub mod data;
pub mod error;
pub mod events;
pub mod fuzz;
pub mod memory;
pub mod mpmc;
pub mod park;
pub mod ring;
pub mod slot;
pub mod spsc;
pub mod sync;
#[cfg(feature = "std")]
pub mod threads;
pub mod wait;
pub mod word;
