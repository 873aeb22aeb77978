//! Linux as a library: Debian's Linux 6.12 in this process. A system call is a function call.
//!
//! | module | contents |
//! |---|---|
//! | [`instance`] | a kernel: boots, halts, and boots again |
//! | [`thread`] | a host thread's task: raw system calls |
//! | [`calls`] | system calls with checked arguments |
//! | [`socket`] | sockets: connections, datagrams, options |
//! | [`net`] | interfaces, addresses and routes |
//! | [`host`] | the host's own system calls, by the same traits |
//! | [`process`] | this process as the kernel's host: clock, futexes, log |
//! | [`memory`] | the kernel's memory, with its image |
//! | [`fault`] | bad addresses passed to system calls give EFAULT |
//! | [`confined`] | a kernel in a process of its own, which can do nothing else |
//!
//! ```no_run
//! use liblinux::{Config, Instance};
//! let (instance, thread) = Instance::in_process(Config::new("/usr/local/lib/kyozon/linux.elf"))?;
//! // SAFETY: getpid takes no address.
//! assert_eq!(unsafe { thread.syscall(libc::SYS_getpid, [0; 6]) }, 1);
//! instance.halt(thread)?;
//! # Ok::<(), liblinux::Error>(())
//! ```
//!
//! Invariants:
//!
//! 1. A kernel's memory stays mapped while a thread of it exists, and is freed with the last one.
//! 2. Several kernels may run in one process, at once or one after the other: each has an image of its own.
//! 3. A kernel in the process is trusted. A defect of Linux that a file-system image or a packet reaches is a defect of
//!    this process. A confined kernel is hostile: its answers are checked.
//!
//! Licence: GPL-2.0-only, as the kernel that it loads.

pub mod calls;
pub mod confined;
pub mod fault;
pub mod host;
pub mod instance;
pub mod memory;
pub mod net;
mod netlink;
pub mod process;
pub mod socket;
pub mod thread;

pub use confined::Confined;
pub use instance::{Config, Error, Instance};
pub use kyozon_library_host::kernel::{Errno, Halted};
pub use thread::Thread;
