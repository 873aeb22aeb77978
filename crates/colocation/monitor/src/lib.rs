//! The monitor finds tampering with a Linux kernel: kernel profile, structure walks, checks and repairs.
//!
//! All reads go through the [`KernelMemory`](memory::KernelMemory) trait, so the same checks run beside a live kernel
//! and over a memory dump.
//!
//! Invariants:
//!
//! 1. No `unsafe`. Linux's memory is untrusted: every walk is bounded, and every pointer is checked before it is
//!    followed.
//! 2. A finding is confirmed against concurrent changes before it is reported.
//! 3. A repair states the value that it expects in each word; if one differs, nothing is written.
//!
//! Tests with random input run as many rounds as the environment variable `KYOZON_FUZZ` says, if it is set.
//!
//! Must not know: how memory is read, what reports findings, which isolation mode is in use.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bpf;
pub mod check;
pub mod class;
pub(crate) mod confirm;
pub mod cpus;
pub mod crash_kernel;
pub mod descriptors;
pub mod disarm;
#[cfg(test)]
pub(crate) mod fake;
pub mod finding;
pub mod gates;
pub mod hooks;
pub mod kernel;
pub mod liveness;
pub mod mappings;
pub mod memory;
pub mod modules;
pub mod mounts;
pub(crate) mod owner;
pub mod policy;
pub mod profile;
pub mod random;
pub mod registers;
pub mod registry;
pub mod rings;
pub mod settings;
pub mod sockets;
pub mod tasks;
pub mod text;
pub mod walk;
