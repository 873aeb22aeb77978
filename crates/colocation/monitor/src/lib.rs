//! The monitor: a profile of a kernel, walkers over its structures, checks, repairs.
//!
//! Everything reads through the [`KernelMemory`](memory::KernelMemory) trait, so that the same checks run beside a live
//! kernel and over a dump.
//!
//! Invariants:
//!
//! 1. No `unsafe`. What is read is hostile: every walk is bounded, every pointer is checked before it is followed.
//! 2. A finding was confirmed against concurrent change before it is reported.
//! 3. A repair states what it expects to find; if something else stands there, nothing is written.
//!
//! Tests that feed it errors (their names end in `stumble`) do more rounds where `KYOZON_FUZZ` says how many.
//!
//! Must not know: how memory is read, who prints findings, which isolation it runs behind.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod check;
#[cfg(test)]
pub(crate) mod fake;
pub mod finding;
pub mod kernel;
pub mod memory;
pub mod profile;
pub mod tasks;
pub mod text;
pub mod walk;
