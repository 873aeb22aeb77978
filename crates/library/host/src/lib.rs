//! What library Linux asks of its host, and the loader of its kernel image.
//!
//! | module | contents |
//! |---|---|
//! | [`image`] | the kernel's ELF file: checked, and made ready at its address |
//! | [`kernel`] | a loaded kernel: the calls of both sides |
//!
//! A host is whatever offers memory, time, waiting and device registers: a process, later a unikernel. The kernel's
//! threads are the host's threads; it makes none.
//!
//! Invariants:
//!
//! 1. An image is read with checks. A file that is not a kernel image of this version is refused before any of it runs.
//! 2. After the entry's call the kernel has exactly the memory that the caller gave it.
//! 3. All `unsafe` is in [`kernel`].
//!
//! This crate must not know what a host is made of: no operating system's interface, no threads of its own.
#![no_std]

extern crate alloc;

pub mod image;
pub mod kernel;

use core::sync::atomic::AtomicU32;

/// What a host offers to a kernel. Any host thread calls any function at any time.
///
/// No function may call the kernel, except the function of [`kernel::Kernel::interrupt`].
pub trait Host: Sync {
    /// Nanoseconds that never go back.
    fn now(&self) -> u64;
    /// Nanoseconds since 1970.
    fn realtime(&self) -> u64;
    /// Takes text of the kernel's log.
    fn print(&self, text: &[u8]);
    /// Waits while `word` is `value`, until [`unpark`](Host::unpark), or until the deadline in nanoseconds on the clock
    /// of [`now`](Host::now). May return early.
    fn park(&self, word: &AtomicU32, value: u32, deadline: Option<u64>);
    /// Wakes up to `count` threads that wait on `word`.
    fn unpark(&self, word: &AtomicU32, count: u32);
    /// As [`park`](Host::park), for a thread that waits until its request is complete, and holds nothing. It may raise
    /// interrupts meanwhile: a host lets it serve devices.
    fn wait(&self, word: &AtomicU32, value: u32, deadline: Option<u64>) {
        self.park(word, value, deadline);
    }
    /// A full memory barrier on every running thread that calls the kernel. False if the host has none: then a kernel
    /// takes its lock by locked instructions.
    fn barrier(&self) -> bool;
    /// Reads 1, 2, 4 or 8 bytes of a device's registers. An address without a device reads as ones.
    fn mmio_read(&self, address: u64, bytes: u32) -> u64;
    /// Writes 1, 2, 4 or 8 bytes of a device's registers.
    fn mmio_write(&self, address: u64, bytes: u32, value: u64);
}
