//! The structures of `include/kyozon/seam.h`, which has the rules. A test compares both.

use std::ffi::{c_int, c_long, c_ulong, c_void};

/// Grows when the bytes of the structures, or their meaning, change.
pub const VERSION: c_ulong = 1;

/// Type of the entry in the auxiliary vector that holds the address of a [`Seam`].
pub const AT_KYOZON: c_ulong = 0x4b59_5a4e;

/// Bytes of the caller's stack that a function of the host may use.
pub const STACK_BYTES: usize = 1024;

/// The host's functions.
#[derive(Debug)]
#[repr(C)]
pub struct Seam {
    /// [`VERSION`].
    pub version: c_ulong,
    /// A system call: its number and six arguments.
    pub call:
        unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long,
    /// Starts a thread; returns its ID or a negative error number.
    pub start_thread: unsafe extern "C" fn(*const Thread) -> c_int,
    /// Unmaps the memory with the calling thread's stack, at this address and of this size, and ends the thread.
    pub unmap_exit: unsafe extern "C" fn(*mut c_void, c_ulong) -> !,
}

/// A thread to start.
#[derive(Debug)]
#[repr(C)]
pub struct Thread {
    /// What the thread executes.
    pub function: unsafe extern "C" fn(*mut c_void) -> c_int,
    /// Its argument.
    pub argument: *mut c_void,
    /// End of the stack, from which it grows down.
    pub stack_end: *mut c_void,
    /// Lowest byte of the stack.
    pub stack_start: *mut c_void,
    /// FS base of the thread.
    pub fs_base: *mut c_void,
    /// Receives the thread's ID before the thread's first instruction.
    pub tid: *mut c_int,
    /// Becomes 0 when the thread ends; one waiter of this futex wakes.
    pub clear_tid: *mut c_int,
}
