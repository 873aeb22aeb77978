//! Threads, locks and memory for unikernels in C: what `include/pthread.h` and `include/kyozon.h` declare.
//!
//! A C program for a bare machine that uses POSIX threads is compiled anew and linked with this and `unikernel.ld`; its
//! threads are then virtual machines over one memory. scripts/images.sh shows how, `examples/primes.c` what.
//!
//! | module | what it is |
//! |---|---|
//! | `start` | from the tender's entry to `main` |
//! | `threads` | `pthread_create` and what belongs to it |
//! | `locks` | mutex, condition variable, barrier |
//! | `memory` | `malloc` and what belongs to it |
//!
//! Invariants: structures are as large as the headers say, and zero bytes are how each begins. A thread that crashes
//! costs its joiner and the next owner of its locks an error, never an endless wait; a barrier waits for those who
//! never come, as POSIX has it.
//!
//! Must not know: which back end runs it.
#![cfg_attr(feature = "image", no_std)]

#[cfg(feature = "image")]
extern crate alloc;

#[cfg(feature = "image")]
mod locks;
#[cfg(feature = "image")]
mod memory;
#[cfg(feature = "image")]
mod start;
#[cfg(feature = "image")]
mod threads;

/// Errors, by Linux's numbers.
#[cfg(feature = "image")]
mod error {
    pub const EPERM: i32 = 1;
    pub const ESRCH: i32 = 3;
    pub const EAGAIN: i32 = 11;
    pub const EBUSY: i32 = 16;
    pub const EINVAL: i32 = 22;
    pub const EDEADLK: i32 = 35;
    pub const ETIMEDOUT: i32 = 110;
    pub const EOWNERDEAD: i32 = 130;
}
