//! The laboratory: boots stock Debian kernels in emulators, runs scenarios in them, measures.
//!
//! A developer's tool, not installed. From the outside in:
//!
//! | module | what it does |
//! |---|---|
//! | [`suite`] | every test of the project, one total |
//! | [`scenario`] | a folder with a `test.toml` is a test |
//! | [`demo`], [`bench`] | the main job on real kernels; the figures |
//! | [`guest`] | a running guest: commands and files in and out |
//! | [`batch`] | a guest whose whole input is fixed before it starts: repeatable to the instruction |
//! | [`bochs`] | the same in the second emulator, which has AMD-V and VT-x of its own |
//! | [`emulator`] | QEMU and Bochs as processes that cannot outlive this one |
//! | [`initramfs`], [`protocol`] | the guest's first file system, and the protocol of its agent |
//! | [`stale`] | the one failure of QEMU after which a test runs once more |
//! | [`kernels`], [`module`] | kernel packages, unpacked and never installed; modules built against them |
//! | [`wire`], [`talk`] | the other end of a unikernel's network: a TCP client there |
//! | [`product`] | the project's own module, images and command, put into a guest |
//!
//! A scenario in Rust is a page:
//!
//! ```no_run
//! use kyozon_lab::{guest::Guest, kernels::Kernel, spec::Spec};
//! # fn main() -> anyhow::Result<()> {
//! let kernel = Kernel::cached("6.12", "cloud")?;
//! let mut guest = Guest::boot(&Spec::new(&kernel).smp(2))?;
//! assert_eq!(guest.run("uname -r")?.expect_success()?.trim(), kernel.release);
//! guest.shutdown()?;
//! # Ok(()) }
//! ```
//!
//! Invariants:
//!
//! 1. Every wait has a limit, and every emulator is killed when its handle is dropped or this process dies.
//! 2. Nothing is written outside the cache and temporary directories, except results on request.
//! 3. An error is one line: what was tried, what is wrong and what to do.
//!
//! Must not know: what any scenario is about.
#![deny(unsafe_code)]

pub mod batch;
pub mod bench;
pub mod bochs;
pub mod booted;
pub mod cache;
pub mod deaf;
pub mod demo;
pub mod emulator;
pub mod fuzz;
pub mod guest;
pub mod initramfs;
pub mod jobs;
pub mod kernels;
pub mod module;
pub mod process;
pub mod product;
pub mod protocol;
pub mod scenario;
pub mod spec;
pub mod stale;
pub mod storm;
pub mod suite;
pub mod talk;
pub mod wire;
