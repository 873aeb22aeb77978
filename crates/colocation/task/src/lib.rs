//! Runtime of the microkernel's user tasks: start, system calls, heap.
//!
//! A task is a binary for `x86_64-unknown-none` that says what it does:
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
//! and whose `build.rs` links it with this crate's `task.ld`. When `run` returns, the task ends. A panic is reported,
//! where the task may report, and ends it too.
//!
//! Invariants:
//!
//! 1. What is safe here keeps memory safe whatever the arguments; the kernel checks them, and answers with [`Error`].
//! 2. Unsafe code is in [`mod@start`], `raw`, `heap`, [`data`] and [`clock`], and wherever `raw` is called: each call says what it
//!    does to memory.
//!
//! Must not know: what any one task does.
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
