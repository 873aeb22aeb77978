//! The host of programs of the C library in a unikernel: it answers their system calls in the guest itself.
//!
//! `kyozon run` loads the image of this package and the program beside it. The program runs in the same address space
//! and at the same privilege; it calls the host through the seam of `kyozon/seam.h`. A thread of the program is a
//! virtual machine, or a process, of the host's family.
//!
//! | module | system calls |
//! |---|---|
//! | [`calls`] | the table of all; limits, the machine's name |
//! | [`files`], [`tree`] | descriptors; a file system in memory |
//! | [`pages`], [`memory`] | `mmap` and its relatives |
//! | [`futex`] | `futex` |
//! | [`threads`] | threads: start, end, numbers |
//! | [`signals`] | `rt_sigaction`, `tgkill` and their relatives |
//! | [`time`] | clocks and sleeping |
//! | [`entry`] | the seam's three functions, in assembly, and the program's start |
//!
//! Invariants:
//!
//! 1. The host uses neither the FS base nor more of a program's stack than the seam allows: each machine has a private
//!    stack, on which calls are answered. A handler of a signal runs when that stack is empty.
//! 2. A thread changes nothing of another thread but its pending signals and its place among a futex's waiters.
//! 3. Each thread is bound to the first one: if it dies, the program ends.
//!
//! A call trusts the program's pointers, as both are one program: a bad one ends it with a crash report instead of
//! `EFAULT`.
#![no_std]

#[cfg(test)]
extern crate std;

extern crate alloc;

pub mod calls;
#[cfg(feature = "image")]
pub mod entry;
pub mod errno;
pub mod files;
pub mod futex;
pub mod memory;
pub mod numbers;
pub mod pages;
pub mod signals;
pub mod threads;
pub mod time;
pub mod tree;

use kyozon_channel::border::{LockError, Mutex, MutexGuard};
use kyozon_unikernel::vm::{with_member, Member};

/// What a system call answers: a value, or a negative error number.
pub type Answer = i64;

/// Calls `work` with what `mutex` protects. If a thread died while it held the lock, the program is about to end, and
/// this thread waits for that.
fn with<T, R>(mutex: &Mutex<T>, work: impl FnOnce(&mut T) -> R) -> R {
    with_member(|me: &Member| {
        let guard: Result<MutexGuard<'_, T, Member>, LockError<_>> = mutex.lock(me, None);
        match guard {
            Ok(mut guard) => work(&mut guard),
            Err(_) => loop {
                kyozon_unikernel::sleep::park(None);
            },
        }
    })
}
