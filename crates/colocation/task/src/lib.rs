//! Runtime of the microkernel's user tasks: start, system calls, heap.
//!
//! A task is a binary for `x86_64-unknown-none` that names its function:
//!
//! ```text
//! #![no_std]
//! #![no_main]
//! kyozon_task::main!(run);
//! fn run(info: &'static kyozon_task::StartInfo) {
//!     let _ = kyozon_task::report!("task {} of {}", info.task, info.tasks);
//! }
//! ```
//!
//! and whose `build.rs` links it with this crate's `task.ld`. The task ends when `run` returns, or with a panic, which
//! is reported if the task may report.
//!
//! Invariants:
//!
//! 1. Safe functions keep memory safe for any arguments; the kernel checks them and answers with [`Error`].
//! 2. Unsafe code is in [`mod@start`], `raw`, `heap`, [`data`] and [`clock`], and at calls of `raw`, each with its
//!    effect on memory.
//!
//! Must not know: the purpose of any task.
#![cfg_attr(not(test), no_std)]

pub mod clock;
pub mod data;
mod error;
pub mod ipc;
pub mod linux;
pub mod notification;
mod raw;
pub mod task;
pub mod thread;

#[cfg(target_os = "none")]
mod heap;
#[cfg(target_os = "none")]
pub mod start;

pub use error::{Error, Result};
pub use kyozon_abi::task::StartInfo;
