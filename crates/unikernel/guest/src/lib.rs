//! Guest side of a unikernel: entry, calls, console, heap, clock, sleeping and waking, regions, threads,
//! disks and networks.
//!
//! A unikernel is a binary that names its main function:
//!
//! ```text
//! #![no_std]
//! #![no_main]
//! use kyozon_unikernel::println;
//! kyozon_unikernel::main!(run);
//! fn run() -> u8 {
//!     println!("Hello from peer {}", kyozon_unikernel::me());
//!     0
//! }
//! ```
//!
//! Its package uses this crate's `image.rs` as build script and has a feature `image`, as `kyozon-unikernel-examples`
//! has. `kyozon run` starts it; the value of `run` is its exit status. A panic ends it with a backtrace.
//!
//! Decisions:
//!
//! - Images are static and linked at a fixed address: nothing is relocated at the start, text is the same in every
//!   guest, and an address in a report is one in the file.
//! - Code is position-independent all the same, as addresses are above 2 GiB.
//! - The target is the host's (`x86_64-unknown-linux-gnu`), linked without a C library; the module `memory` replaces
//!   the functions that the compiler calls. `x86_64-unknown-none` works too, but it computes floating point in software
//!   and has no vector registers, so the program would not be the one that runs on Linux.
//!
//! Invariants:
//!
//! 1. Safe functions keep memory safe whatever their arguments: the tender checks them, and answers with [`Error`].
//! 2. A guest has one thread of execution. Guests of a family share memory by Rust's rules for threads. Memory that
//!    untrusted peers may change lies in regions, and is accessed through atomics or raw pointers only.
//! 3. Memory that a device uses belongs to the heap, and is not freed before the device was stopped.
//! 4. Reading a clock that is the time-stamp counter, ringing a doorbell and accessing a region never call the tender.
//!
//! Must not know: which back end runs it. It sees `abi::unikernel` only.
#![no_std]

extern crate alloc;

pub mod arguments;
pub mod block;
pub mod clock;
pub mod console;
pub mod device;
mod error;
pub mod net;
pub mod peer;
pub mod private;
mod queue;
mod raw;
pub mod region;
pub mod sleep;
mod start;
pub mod system;
#[cfg(feature = "tcp")]
pub mod tcp;
pub mod thread;
pub mod vm;

#[cfg(feature = "guest")]
mod heap;
#[cfg(any(feature = "guest", test))]
mod magazines;
#[cfg(any(all(feature = "guest", not(target_os = "none")), test))]
mod memory;
#[cfg(feature = "guest")]
mod panic;

pub use error::{Error, Result};
pub use kyozon_abi::unikernel::GuestBoot;
pub use start::{boot, boot_address, me, peers, start};
pub use system::exit;
