//! An L4-style microkernel: threads with fixed priorities, address spaces, synchronous messages, notifications.
//!
//! The same image runs alone, beside Linux, and behind nested paging. Tasks see `abi::task`.
//!
//! Invariants:
//!
//! 1. No memory is allocated after boot: every object that a task can make has its slot from the start.
//! 2. User mode can reach no panic and no unbounded loop. A system call is bounded by the numbers of threads, tasks and
//!    handles, and by the size of the structure that it copies.
//! 3. Kernel code is not preempted; a tick during kernel code is handled at its end.
//! 4. The kernel never dereferences an address from a task: it walks the task's tables (module [`space`]) and accesses
//!    the page through its own mapping.
//! 5. A thread is in at most one queue, which its state names. The running thread is in none.
//! 6. A thread's `caller` is a thread that waits for its reply.
//! 7. A page is never both writable and executable for a task.
//! 8. Kernel mode runs code of a task only if the checker of this image has accepted it (module [`typed`]). It is
//!    interrupted and resumed as user mode is, and leaves by the gates only.
//!
//! Must not know: Linux, or which layer it runs on. It sees `abi::layer` only.
//!
//! Unsafe code is in `arch` only: the boot block's functions, CR3, and access to the cokernel's memory. The rest also
//! compiles on the host, where it is tested with a simulated machine.
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
mod services;
pub mod space;
pub mod supervision;
pub mod task;
pub mod thread;
pub mod typed;

#[cfg(target_os = "none")]
pub mod arch;

#[cfg(test)]
mod fake;
