//! Rings, locks, barrier and condition variable in memory that several sides share.
//!
//! | module | what it is |
//! |---|---|
//! | [`memory`] | shared memory as words by index, for the event ring: unsafe code, and what a model checker replaces |
//! | [`slot`] | one record that is read while it may be written: a sequence lock |
//! | [`ring`] | slots in a circle: one writer, and readers that it does not wait for |
//! | [`events`] | the ring of [`kyozon_abi::events`]: lines and the status of checks |
//! | [`word`] | one shared word: what locks and rings are written over, and what a model checker replaces |
//! | [`park`] | what a primitive asks of its group: sleep, wake, time, who lives |
//! | [`wait`] | who waits, as one bit a peer; spin, then sleep |
//! | [`sync`] | mutex, reader-writer lock, condition variable, semaphore, barrier |
//! | [`data`] | payload that a peer may change while it is read |
//! | [`spsc`] | ring of records between two; the writer waits for the reader; written and read in place |
//! | [`mpmc`] | ring of records between any number |
//! | [`border`] | structures, payload and data with locks in raw memory: unsafe code |
//! | [`error`] | why something could not be done |
//! | [`fuzz`] | bytes in, ring operations and a hostile peer out: for a fuzzer, and a test |
//! | `threads` | a group of threads in one process (feature `std`) |
//!
//! Whom one trusts decides what one takes:
//!
//! | | writes wait | a hostile peer can | a dead peer costs |
//! |---|---|---|---|
//! | [`events`] | never: who is too slow loses records | cause wrong data, gaps | nothing |
//! | [`spsc`] | for the reader | cause wrong data, an error, a time-out | an error |
//! | [`mpmc`] | for a reader | cause wrong data, an error, a time-out | the record that he was at |
//! | [`sync`] | | break the exclusion, cause an error, a time-out | `Poisoned`, or a time-out |
//!
//! The event ring has no consumer index. Linux is its reader and gets it read-only behind nested paging, and a cokernel
//! must not wait for Linux: who is too slow loses the oldest records, and sees how many.
//!
//! Invariants:
//!
//! 1. A hostile peer causes wrong data, a gap, an error or a stop, never an access outside the ring, a panic or a loop
//!    without end: what is read from shared memory is read once and checked or reduced before it is used, and every
//!    loop here that does not sleep has a bound that does not come from there. What sleeps ends at its deadline, and
//!    looks at each heartbeat who has died.
//! 2. Shared memory is read and written by atomic accesses only: two sides never race in the sense of the memory model
//!    ([`border`] says how payload keeps to that). In the event ring order comes from fences, and a reader only ever
//!    loads, relaxed: that is what is allowed on pages without write permission. Elsewhere, where a side writes and
//!    then looks whether another sleeps, both do so in the one total order of sequentially consistent operations.
//! 3. Memory stands behind traits, so that the same code is checked under a model checker (`tests/model*.rs`), and with
//!    a peer that changes it between two loads (`tests/hostile*.rs`).
//! 4. Zero bytes are how each structure begins, its layout is asserted, and it holds no pointer: it may lie in any
//!    region, at any address.
//!
//! Must not know: how one sleeps, and who is on the other side.
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
