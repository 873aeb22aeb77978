//! An L4-style microkernel: threads with fixed priorities, address spaces, synchronous messages, notifications.
//!
//! The same image runs alone, beside Linux, and behind nested paging. Tasks see `abi::task`.
//!
//! Invariants:
//!
//! 1. No memory is allocated after boot: every object that a task can make has its place from the start.
//! 2. No panic and no unbounded loop can be reached from user mode. What a system call does is bounded by the numbers of
//!    threads, tasks and handles, and by the size of the structure it copies.
//! 3. Kernel code is not preempted; a tick that lands in it is seen at its end.
//! 4. An address that a task gave is never used: memory of tasks is reached through the kernel's own mapping of the page,
//!    after a walk of the task's tables (module [`space`]).
//! 5. A thread is in one queue at most, and its state says in which. Whoever runs is in none.
//! 6. `caller` of a thread names one that waits for its reply, and nobody else.
//! 7. A page is never both writable and executable for a task.
//!
//! Must not know: Linux, or which layer it runs on. It sees `abi::layer` only.
//!
//! Unsafe code is in `arch` alone: the boot block's functions, CR3, and the view on the cokernel's memory. The rest is
//! the same on the host, where it is tested against a machine of vectors.
#![cfg_attr(not(test), no_std)]

pub mod boot;
mod calls;
pub mod elf;
mod fault;
mod ipc;
pub mod kernel;
pub mod machine;
pub mod memory;
pub mod queue;
pub mod ready;
pub mod space;
pub mod task;
pub mod thread;

#[cfg(target_os = "none")]
pub mod arch;

#[cfg(test)]
mod fake;
