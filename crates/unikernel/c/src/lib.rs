//! Threads, locks and memory for unikernels in C: the functions of `include/pthread.h` and `include/kyozon.h`.
//!
//! A freestanding C program that uses POSIX threads is recompiled, and linked with this library by `unikernel.ld`. Its
//! threads are then virtual machines that share memory. scripts/images.sh shows the commands, `examples/primes.c` a
//! program.
//!
//! | module | purpose |
//! |---|---|
//! | `start` | from the tender's entry to `main` |
//! | `threads` | `pthread_create`, and the other functions of threads |
//! | `locks` | mutex, condition variable, barrier |
//! | `users` | which thread uses which of them |
//! | `memory` | `malloc`, and the other functions of the heap |
//!
//! Invariants: structures have the sizes in the headers, and zero bytes initialize each of them. If a thread crashes,
//! its joiner and the next owner of its locks get an error; they never wait for ever. A barrier waits for missing
//! threads, as in POSIX. A function that destroys an object returns when no thread touches it any more.
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
#[cfg(any(feature = "image", test))]
mod users;

/// Error numbers, those of Linux.
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
