//! A host of [WASI](kyozon_typed_wasi) for a program in a Linux process: its handles are the process's descriptors.
//!
//! [`Start`] says what a program is given and calls a function with its interface. What has no right in the interface
//! is not reachable by it, whatever the process may do; the process is not confined otherwise.
//!
//! The process ignores SIGPIPE, as programs in Rust do, or a write to a pipe without readers ends it. With a limit of
//! file sizes it also ignores SIGXFSZ, or a program that exceeds the limit ends it.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("numbers of errors and signals are those of Linux on x86-64");

mod convert;
mod host;
mod start;

pub use host::Process;
pub use start::{Directory, Start};
